//! Another database replaces the first one: with all commits, or without the last ones.

use harness::{Postgres, Proxy};
use serde_json::json;

use crate::{
    server::Server,
    world::{
        Writing, answers, assert_nothing_lost, converge, finish_without_failures, load, start, start_again,
        wait_for_store,
    },
};

/// What a server logs each time its change log diverges.
const DIVERGED: &str = "the change log diverged from the served snapshot";

/// A primary, a proxy to it, and the URLs through the proxy and without it.
fn primary() -> (Postgres, Proxy, String, String) {
    let postgres = Postgres::start();
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let proxy = Proxy::to(postgres.port());
    let url = format!("postgres://postgres@127.0.0.1:{}/fleet", proxy.port());
    let direct = postgres.url("fleet");
    (postgres, proxy, url, direct)
}

#[test]
fn a_standby_with_everything_takes_over() {
    let (primary, proxy, url, _) = primary();
    let servers = [start(&url, "crud"), start(&url, "crud"), start(&url, "read-only")];
    let all: Vec<_> = servers.iter().collect();
    let standby = primary.standby();
    let loads = load(&all, 600);
    let writing = Writing::start(servers[..2].iter().map(|server| server.address().to_owned()).collect());
    writing.wait_for_more(50);
    // From now on no commit is acknowledged, so the standby can receive all that were.
    proxy.refuse();
    standby.wait_for_replay_of(&primary);
    primary.kill();
    standby.promote();
    proxy.retarget(standby.port());
    proxy.heal();
    writing.wait_for_more(50);
    let acknowledged = writing.finish();
    let url = standby.url("fleet");
    converge(&all, &url);
    finish_without_failures(loads);
    assert_nothing_lost(&url, &acknowledged);
    assert!(servers.iter().all(|server| !server.log().contains(DIVERGED)));
}

/// The standby was behind. Servers with a newer snapshot go on serving it until an operator accepts the change log.
#[test]
fn a_standby_without_the_last_commits_takes_over() {
    let (primary, proxy, url, _) = primary();
    let (writer, reader, restarted) = (start(&url, "crud"), start(&url, "read-only"), start(&url, "read-only"));
    assert_eq!(writer.put("/clusters/c1/namespaces/n1", &json!({})).status, 200);
    let standby = primary.standby();
    standby.wait_for_replay_of(&primary);
    standby.stop();
    assert_eq!(writer.put("/clusters/c1/namespaces/n2", &json!({})).status, 200);
    assert_eq!(writer.put("/clusters/c2/namespaces/n2", &json!({})).status, 200);
    converge(&[&writer, &reader, &restarted], &primary.url("fleet"));
    let before = answers(&writer);
    let loads = load(&[&writer, &reader], 400);

    primary.kill();
    proxy.refuse();
    standby.run();
    standby.promote();
    proxy.retarget(standby.port());
    proxy.heal();
    for server in [&writer, &reader, &restarted] {
        wait_for_store(server, "diverged");
        assert!(server.get_open("/metrics").body.contains("\nflux_resourceset_store_diverged 1\n"));
        assert!(server.log().contains(DIVERGED), "{}", server.log());
        assert!(answers(server) == before, "the snapshot is still served");
    }
    let refused = writer.put("/clusters/c3/namespaces/n3", &json!({}));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("store-diverged")));
    let restarted = start_again(restarted, &url, "read-only");
    wait_for_store(&restarted, "diverged");
    assert!(answers(&restarted) == before, "not even a restart makes it serve the older fleet");
    finish_without_failures(loads);

    accept(&writer);
    converge(&[&writer, &reader, &restarted], &standby.url("fleet"));
    let lost = answers(&writer);
    assert!(lost != before && !lost["/api/v2/flux/clusters/c2.example/namespaces"].contains("\"n2\""));
    assert_eq!(writer.put("/clusters/c3/namespaces/n3", &json!({})).status, 200);

    // The old primary comes back. No server follows it.
    primary.run();
    proxy.retarget(primary.port());
    wait_for_store(&reader, "diverged");
    reader.wait_until("it is logged again", || reader.log().matches(DIVERGED).count() >= 2);
    proxy.retarget(standby.port());
    wait_for_store(&reader, "following");
    converge(&[&writer, &reader, &restarted], &standby.url("fleet"));
}

/// Reviews what the change log would remove, and accepts it.
fn accept(writer: &Server) {
    let store = writer.get("/store").json();
    assert_eq!(store["status"], json!("diverged"));
    let revision = store["log"]["revision"].as_u64().unwrap();
    assert!(revision < store["picture"]["revision"].as_u64().unwrap());
    let digest = store["log"]["digest"].as_str().unwrap();
    let plan = writer.post(&format!("/store/accept?dry_run=true&expected_digest={digest}"), &json!({})).json();
    let removed = plan["clusters"].as_array().unwrap().iter();
    let removed: Vec<_> =
        removed.map(|cluster| (&cluster["id"], &cluster["inputs"]["namespaces"]["removed"])).collect();
    assert_eq!(removed, [(&json!("c1"), &json!(["n2"])), (&json!("c2"), &json!(["n2"]))]);
    assert_eq!(writer.post("/store/accept", &json!({})).status, 400, "the request has to name the reviewed change log");
    let other = store["picture"]["digest"].as_str().unwrap();
    assert_eq!(writer.post(&format!("/store/accept?expected_digest={other}"), &json!({})).status, 412);
    let reason = [("x-change-reason", "the primary burnt down")];
    let path = format!("/store/accept?expected_digest={digest}");
    let accepted = writer.write("POST", &path, &json!({}), &reason);
    assert_eq!((accepted.status, &accepted.json()["epoch"]), (200, &json!(1)), "{}", accepted.body);
    assert_eq!(accepted.json()["overrules"], store["picture"]["digest"]);
    let again = writer.post(&path, &json!({}));
    assert_eq!((again.status, &again.json()["code"]), (412, &json!("log-changed")));
    let change = writer.get(&format!("/changes/{}", accepted.json()["revision"])).json();
    assert_eq!((&change["reason"], &change["epoch"]), (&json!("the primary burnt down"), &json!(1)));
}

#[test]
fn an_older_backup_is_restored_under_running_servers() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let (writer, reader) = (start(&url, "crud"), start(&url, "read-only"));
    assert_eq!(writer.put("/clusters/c1/namespaces/n1", &json!({})).status, 200);
    let backup = writer.folder().path().join("backup");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flux-resourceset"));
        let output = command.args(arguments).env("DATABASE_URL", &url).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let file = backup.to_str().unwrap();
    assert!(run(&["backup", file]).0);
    for cluster in ["c1", "c2"] {
        assert_eq!(writer.put(&format!("/clusters/{cluster}/namespaces/n2"), &json!({})).status, 200);
    }
    converge(&[&writer, &reader], &url);
    let before = answers(&writer);
    let loads = load(&[&writer, &reader], 200);
    let (done, stderr) = run(&["restore", file]);
    assert!(!done && stderr.contains("--replace"), "{stderr}");
    let (done, stderr) = run(&["restore", "--replace", file]);
    assert!(done, "{stderr}");
    for server in [&writer, &reader] {
        wait_for_store(server, "diverged");
        assert!(answers(server) == before);
    }
    finish_without_failures(loads);
    accept(&writer);
    converge(&[&writer, &reader], &url);
    assert!(answers(&reader) != before);
}
