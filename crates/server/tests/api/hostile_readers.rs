//! Readers with a valid token that request as much as they can: they get a limited share, and then 429 with `Retry-After`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::{Value, json};

use crate::harness::Server;

fn cluster(at: usize) -> Value {
    json!({
        "id": format!("c{at}"), "cluster_name": format!("c{at}"), "cluster_dns": format!("c{at}.example"),
        "environment": "dev", "namespaces": [{"id": "one"}],
        "labels": {"note": "x".repeat(60), "at": at.to_string()},
    })
}

fn fleet(clusters: usize) -> Server {
    let clusters: Vec<_> = (0..clusters).map(cluster).collect();
    Server::crud_with(&json!({"namespaces": [{"id": "one"}, {"id": "two"}], "clusters": clusters}))
}

/// How often documents of a past revision were read from the store.
fn loads(server: &Server, documents: &str) -> u64 {
    let name = format!("flux_resourceset_past_loads_total{{documents=\"{documents}\"}} ");
    let metrics = server.get_open("/metrics").body;
    metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}

/// Sends a request and does not read the answer.
fn send_get(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(harness::LONG)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer read-token\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status and the headers of an answer.
fn head(stream: &TcpStream) -> (u16, String) {
    let mut lines = BufReader::with_capacity(1, stream).lines().map(Result::unwrap);
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    (status, lines.take_while(|line| !line.is_empty()).map(|line| line + "\n").collect())
}

#[test]
fn writes_go_on_while_many_read_the_past() {
    let server = fleet(1_500);
    server.patch("/clusters/c0", &json!({"environment": "qa"}));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in 0..10 {
            let (server, over) = (&server, &over);
            let path = if reader % 2 == 0 { "/namespaces?revision=1" } else { "/clusters?revision=1" };
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let status = server.get(path).status;
                    assert!([200, 429].contains(&status), "{status}");
                }
            });
        }
        let write = |count: u32| {
            let note = json!({"labels": {"note": count.to_string()}});
            server.patch("/clusters/c1", &note).status
        };
        let statuses: Vec<_> = (0..60).map(write).collect();
        over.store(true, Ordering::Relaxed);
        assert_eq!(statuses, [200; 60]);
    });
}

#[test]
fn many_requests_for_one_revision_read_the_store_once() {
    let server = fleet(200);
    server.patch("/clusters?all=true", &json!({"environment": "qa"}));
    thread::scope(|scope| {
        let send_get = || server.get("/clusters?revision=1&environment=dev&limit=1");
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(send_get)).collect();
        for reader in readers {
            let answer = reader.join().unwrap();
            assert_eq!((answer.status, &answer.headers["x-total-count"]), (200, &"200".parse().unwrap()));
        }
    });
    assert_eq!(loads(&server, "cluster"), 1);
    assert_eq!(server.get("/clusters?revision=1&environment=qa").json(), json!([]));
    assert_eq!(server.get("/clusters?environment=qa").headers["x-total-count"], "200");
    assert_eq!(loads(&server, "cluster"), 1, "it is cached for a short time");
}

#[test]
fn reading_one_past_document_or_cluster_never_loads_the_fleet() {
    let server = fleet(50);
    let before = server.poll("c7.example", "namespaces").body;
    server.patch("/namespaces/one", &json!({"labels": {"n": "2"}}));
    server.patch("/clusters?all=true", &json!({"environment": "qa"}));
    server.delete("/clusters/c8");
    let inputs = |id: &str, revision: u64| server.get(&format!("/clusters/{id}/inputs/namespaces?revision={revision}"));
    assert_eq!(inputs("c7", 1).body, before);
    assert_ne!(inputs("c7", 2).body, before);
    assert_eq!(inputs("c8", 3).json()["inputs"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/clusters/c7?revision=1").json()["environment"], json!("dev"));
    assert_eq!((inputs("ghost", 1).status, server.get("/clusters/ghost?revision=1").status), (404, 404));
    assert_eq!((loads(&server, "cluster"), loads(&server, "definitions")), (0, 3));
}

#[test]
fn the_number_of_change_streams_is_limited() {
    let server = Server::crud();
    let mut streams: Vec<_> = (0..32).map(|_| send_get(&server, "/changes/stream")).collect();
    for stream in &streams {
        assert_eq!(head(stream).0, 200);
    }
    let (status, headers) = head(&send_get(&server, "/changes/stream"));
    assert!(status == 429 && headers.contains("retry-after: "), "{status} {headers}");
    assert_eq!(server.patch("/namespaces/podinfo", &json!({"labels": {"n": "1"}})).status, 200);
    drop(streams.pop());
    server.wait_until("a slot is free", || head(&send_get(&server, "/changes/stream")).0 == 200);
}

#[test]
fn a_change_of_the_whole_fleet_is_sent_in_chunks_and_can_be_reverted() {
    let server = fleet(300);
    let before = server.get("/clusters").body;
    server.patch("/clusters?all=true", &json!({"environment": "qa"}));
    let change = server.get("/changes/2");
    assert_eq!(change.headers["transfer-encoding"], "chunked");
    let change = change.json();
    let writes = change["writes"].as_array().unwrap();
    assert_eq!(writes.len(), 300);
    let environments =
        |at: usize| (writes[at]["before"]["environment"].clone(), writes[at]["after"]["environment"].clone());
    assert!((0..300).all(|at| environments(at) == (json!("dev"), json!("qa"))), "{}", writes[0]);

    let listed = &server.get("/changes").json()[0];
    assert_eq!((listed["writes"].as_array().map(Vec::len), &listed["total"]), (Some(50), &json!(300)));
    let stream = send_get(&server, "/changes/stream?after=1");
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let event = lines.into_iter().find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    assert_eq!(&serde_json::from_str::<Value>(&event).unwrap(), listed);

    assert_eq!(server.post("/changes/2/revert", &json!({})).status, 200);
    assert_eq!(server.get("/clusters").body, before);
}

#[test]
fn slow_readers_of_large_answers_do_not_block_small_ones() {
    let annotation = "x".repeat(60_000);
    let namespace = |at: usize| json!({"id": format!("n{at}"), "annotations": {"note": annotation}});
    let namespaces: Vec<_> = (0..300).map(namespace).collect();
    let server = Server::crud_with(&json!({"namespaces": namespaces, "clusters": [cluster(0)]}));
    let slow: Vec<_> = (0..16).map(|_| send_get(&server, "/namespaces")).collect();
    for stream in &slow {
        assert_eq!(head(stream).0, 200);
    }
    let refused = server.get("/namespaces");
    assert_eq!((refused.status, refused.json()["code"].clone()), (429, json!("too-many-requests")));
    assert_eq!(refused.headers["retry-after"], "2");
    assert_eq!(server.get("/namespaces?limit=1").status, 200);
    assert_eq!(server.get("/clusters").status, 200);
    assert_eq!(server.put("/clusters/c0/namespaces/n1", &json!({})).status, 200);
    drop(slow);
    server.wait_until("the slots are free", || server.get("/namespaces").status == 200);
    let whole = server.get("/namespaces");
    assert_eq!(
        (whole.json().as_array().map(Vec::len), &whole.headers["x-total-count"]),
        (Some(300), &"300".parse().unwrap())
    );
}

/// An answer that is built as a whole is limited like one that is sent in chunks.
#[test]
fn large_answers_that_are_not_streamed_take_the_same_slots() {
    // More than fits into the socket buffers of both sides.
    let patches: Value =
        (0..13).map(|at| (format!("k{at}.{}", "x".repeat(500)), json!("1"))).collect::<model::Map>().into();
    let cluster = |at: usize| {
        json!({
            "id": format!("c{at}"), "cluster_name": format!("c{at}"), "cluster_dns": format!("c{at}.example"),
            "environment": "dev", "platform_components": [{"id": "app"}], "patches": {"app": patches},
        })
    };
    let server = Server::crud_with(&json!({
        "platform_components": [{"id": "app", "component_path": "p", "oci_url": "oci://registry.example/p"}],
        "clusters": (0..800).map(cluster).collect::<Vec<_>>(),
    }));
    // One after another: while one is computed, others may wait for a few seconds only.
    let take_slot = |_| {
        let stream = send_get(&server, "/problems?limit=10000");
        assert_eq!(head(&stream).0, 200);
        stream
    };
    let slow: Vec<_> = (0..16).map(take_slot).collect();
    for path in ["/problems?limit=10000", "/api/v2/flux/clusters", "/clusters"] {
        let refused = server.get(path);
        assert_eq!((refused.status, refused.json()["code"].clone()), (429, json!("too-many-requests")), "{path}");
    }
    assert_eq!(server.get("/problems?limit=10").status, 200, "a small one takes no slot");
    assert_eq!(server.get_open("/openapi.yaml").status, 200, "it is in memory once, for all requests");
    assert_eq!(server.poll("c7.example", "platform-components").status, 200);
    drop(slow);
    server.wait_until("the slots are free", || server.get("/problems?limit=10000").status == 200);
    assert_eq!(server.get("/problems?limit=10000").json().as_array().map(Vec::len), Some(10_000));
}

#[test]
fn metrics_are_current_however_many_requests_there_are() {
    let server = Server::crud();
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(server.get_open("/metrics").status, 200));
        }
        for at in 2..6 {
            server.patch("/namespaces/podinfo", &json!({"labels": {"n": at.to_string()}}));
            let metrics = server.get_open("/metrics").body;
            assert!(metrics.contains(&format!("\nflux_resourceset_revision {at}\n")), "{metrics}");
        }
    });
}
