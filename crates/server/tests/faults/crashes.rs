//! A server is killed while it writes.

use std::{thread, time::Duration};

use harness::Postgres;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::world::{converge, start, start_again};

/// A thousand writes, all or none, at whatever moment the writer is killed.
#[test]
fn a_writer_that_is_killed_in_mid_batch() {
    let url = Postgres::shared().database();
    let reader = start(&url, "read-only");
    let mut writer = start(&url, "crud");
    let mut expected = 0;
    for round in 0..12_u64 {
        let write = |at: u64| json!({"op": "put", "kind": "namespace", "id": format!("b{round}-{at}"), "body": {}});
        let batch: Vec<Value> = (0..1_000).map(write).collect();
        let acknowledged = thread::scope(|scope| {
            let answer = scope.spawn(|| writer.try_write("POST", "/batch", &json!({"writes": batch})));
            thread::sleep(Duration::from_millis(round * 15));
            writer.signal(Signal::SIGKILL);
            answer.join().unwrap() == Some(200)
        });
        writer = start_again(writer, &url, "crud");
        let count = |server: &crate::server::Server| {
            let list = server.get("/namespaces?limit=100000").json();
            list.as_array().unwrap().iter().filter(|it| it["id"].as_str().unwrap().starts_with('b')).count()
        };
        let found = count(&writer);
        assert!(found == expected || found == expected + 1_000, "{found} of {expected} and 1000");
        assert!(!acknowledged || found == expected + 1_000, "an acknowledged batch is found");
        expected = found;
    }
    assert!(expected > 0, "some were in time");
    converge(&[&writer, &reader], &url);
}
