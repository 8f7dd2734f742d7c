//! The first law: never delete by accident. An incomplete 200 is never sent.

use std::{fs, sync::Arc};

use model::{Op, Revision, Value};
use serde_json::json;
use store::{SqliteStore, Store as _};

use crate::harness::{Server, append, block_on, command, eventually, put, repository};

const DEMO: &str = "demo-cluster-01.k8s.example.com";

/// A cluster of one namespace.
fn seed(namespaces: Value) -> Value {
    json!({
        "clusters": [{"id": "one", "cluster_name": "one", "cluster_dns": "one.example", "environment": "dev",
            "namespaces": namespaces}],
        "namespaces": [{"id": "a"}]
    })
}

#[test]
fn an_unknown_dns_name_is_404() {
    let server = Server::demo();
    let answer = server.poll("never.example", "namespaces");
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("unknown-cluster")));
}

#[test]
fn an_empty_fleet_never_answers_with_an_empty_list() {
    let server = Server::start(&[]);
    assert_eq!(server.poll(DEMO, "namespaces").status, 404);
    let answer = server.get("/api/v2/flux/clusters");
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("blank-fleet")));
}

#[test]
fn a_decommissioned_cluster_gets_empty_lists_and_a_restored_one_gets_everything_back() {
    let server = Server::demo();
    let before = server.poll(DEMO, "platform-components").body;
    let seed: Value = serde_json::from_str(&fs::read_to_string(repository("data/seed.json")).unwrap()).unwrap();
    let mut cluster = seed["clusters"][0].clone();
    let id = cluster.as_object_mut().unwrap().remove("_id").unwrap();
    cluster["id"] = id;
    let Op::Put(body) = put(&cluster) else { unreachable!() };
    server.append(&[("cluster", "demo-cluster-01", Op::Retire(body.clone()))]);
    server.wait_until("the cluster is decommissioned", || server.poll(DEMO, "namespaces").body == r#"{"inputs":[]}"#);
    for path in ["platform-components", "namespaces", "rolebindings"] {
        assert_eq!(server.poll(DEMO, path).body, r#"{"inputs":[]}"#);
        assert_eq!(
            server.poll(DEMO, &format!("{path}?empty=explicit")).json(),
            json!({"inputs": [{"id": "none", "none": true,
                "cluster": {"name": "demo-cluster-01", "dns": DEMO, "environment": "dev"}}]})
        );
    }

    server.append(&[("cluster", "demo-cluster-01", put(&cluster))]);
    server.wait_until("the cluster is restored", || server.poll(DEMO, "platform-components").body == before);

    server.append(&[("cluster", "demo-cluster-01", Op::Retire(body))]);
    server.append(&[("cluster", "demo-cluster-01", Op::Remove)]);
    server.wait_until("the name is unknown again", || server.poll(DEMO, "namespaces").status == 404);
}

#[test]
fn a_missing_store_is_not_an_empty_store() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let server = Server::launch(folder, &[("DATABASE_URL", "sqlite://data/flux-resourceset.db?mode=rw")]);
    for attempt in 1..=3 {
        let tried = || server.log().matches("the fleet is not loaded").count();
        server.wait_until("the store is tried again", || tried() >= attempt);
        assert_eq!(server.get_open("/health").status, 200);
        for answer in [server.get_open("/ready"), server.poll(DEMO, "namespaces"), server.get("/problems")] {
            assert_eq!((answer.status, &answer.json()["code"]), (503, &json!("not-ready")));
            assert!(answer.headers.contains_key("retry-after"));
        }
    }
    assert!(server.get_open("/metrics").body.contains("\nflux_resourceset_ready 0\n"));
    let log = server.log();
    assert!(log.contains("the fleet is not loaded: the store cannot be used at the moment"), "{log}");
    // Once the volume is mounted, the server becomes ready without a restart.
    let cluster = json!({"id": "one", "cluster_name": "one", "cluster_dns": "one.example", "environment": "dev"});
    append(&server.database(), &[("cluster", "one", put(&cluster))]);
    server.wait_until("it is ready", || server.get_open("/ready").status == 200);
    assert_eq!(server.poll("one.example", "namespaces").status, 200);
}

#[test]
fn a_corrupt_database_stops_the_start_and_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/flux-resourceset.db");
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(&file, "this was a database once ".repeat(1_000)).unwrap();
    let before = fs::read(&file).unwrap();
    let output = command(folder.path()).env("SEED_FILE", repository("data/seed.json")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.lines().last().unwrap().starts_with("flux-resourceset: the store is damaged: "), "{stderr}");
    assert!(fs::read(&file).unwrap() == before);
}

#[test]
fn a_document_that_was_damaged_on_disk_stops_the_start() {
    let server = Server::demo();
    let (folder, database) = (server.folder().clone(), server.database());
    drop(server);
    sql(&database, "UPDATE fleet_writes SET body = replace(body, 'podinfo', 'qodinfo') WHERE kind = 'cluster'");
    let output = command(folder.path()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("its checksum does not agree with its content"), "{stderr}");
}

fn sql(database: &std::path::Path, statement: &str) {
    rusqlite::Connection::open(database).unwrap().execute_batch(statement).unwrap();
}

/// As if the file had been restored from a backup of the beginning.
fn lose_all_changes(database: &std::path::Path) {
    for statement in [
        "DELETE FROM fleet_writes",
        "DELETE FROM fleet_current",
        "DELETE FROM fleet_changes",
        "UPDATE fleet_log SET head = horizon, epoch = horizon_epoch, digest = horizon_digest, documents = 0",
    ] {
        sql(database, statement);
    }
}

#[test]
fn a_change_log_that_lost_its_last_changes_is_not_followed() {
    let server = Server::crud();
    server.append(&[("namespace", "extra", put(&json!({"id": "extra"})))]);
    server.wait_until("the change is seen", || server.get_open("/ready").json()["revision"] == json!(2));
    let before = server.poll(DEMO, "namespaces").body;
    lose_all_changes(&server.database());
    server.wait_until("it is detected", || server.get_open("/ready").json()["store"] == json!("diverged"));
    assert_eq!(server.poll(DEMO, "namespaces").body, before, "the snapshot is still served");
    let refused = server.patch("/namespaces/podinfo", &json!({"labels": {"a": "b"}}));
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (503, &json!("store-diverged")),
        "and no change is made on it"
    );
    assert!(refused.headers.contains_key("retry-after"));
    let diverged = "the change log diverged from the served snapshot: it is at revision 0 ";
    server.wait_until("it is logged", || server.log().contains(diverged));
    assert!(server.get_open("/metrics").body.contains("\nflux_resourceset_store_diverged 1\n"));
    server.append(&[("namespace", "a", put(&json!({"id": "a"}))), ("namespace", "b", put(&json!({"id": "b"})))]);
    server.append(&[("namespace", "c", put(&json!({"id": "c"})))]);
    server.append(&[("namespace", "d", put(&json!({"id": "d"})))]);
    server.after_a_refresh();
    assert_eq!(
        server.get_open("/ready").json()["store"],
        json!("diverged"),
        "more changes of another history do not help"
    );
    let moved = server.folder().path().join("moved.db");
    fs::rename(server.database(), &moved).unwrap();
    server.after_a_refresh();
    fs::rename(&moved, server.database()).unwrap();
    server.after_a_refresh();
    assert_eq!(server.get_open("/ready").json()["store"], json!("diverged"), "and neither does an outage");
    assert_eq!(server.poll(DEMO, "namespaces").body, before);
}

#[test]
fn a_moved_or_replaced_database_file_is_detected() {
    let server = Server::demo();
    let before = server.poll(DEMO, "namespaces").body;
    let moved = server.folder().path().join("moved.db");
    fs::rename(server.database(), &moved).unwrap();
    server.wait_until("it is detected", || server.get_open("/ready").json()["store"] == json!("unavailable"));
    fs::copy(&moved, server.database()).unwrap();
    server.after_a_refresh();
    assert_eq!(server.get_open("/ready").json()["store"], json!("unavailable"), "a copy is not the same change log");
    assert_eq!(server.poll(DEMO, "namespaces").body, before);
    fs::rename(&moved, server.database()).unwrap();
    server
        .wait_until("the store is followed again", || server.get_open("/ready").json()["store"] == json!("following"));
    let at_head = || server.log().matches("the served snapshot is at the head of the change log").count();
    server.wait_until("it is logged", || at_head() >= 2);
    assert_eq!(at_head(), 2, "{}", server.log());
}

/// While a server is paused, the change log grows and is pruned beyond the server's revision.
#[test]
fn a_server_behind_the_retention_horizon_loads_the_whole_snapshot() {
    let server = Server::demo();
    server.signal(nix::sys::signal::Signal::SIGSTOP);
    for id in ["a", "b", "c"] {
        server.append(&[("namespace", id, put(&json!({"id": id})))]);
    }
    prune(&server.database(), 3);
    server.signal(nix::sys::signal::Signal::SIGCONT);
    server.wait_until("it has caught up", || server.get_open("/ready").json()["revision"] == json!(4));
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"].as_array().map(Vec::len), Some(3));
    server.wait_until("it follows", || server.get_open("/ready").json()["store"] == json!("following"));
}

/// A change log that lost its last changes stays refused, even if it grows beyond the snapshot and is pruned there.
#[test]
fn a_diverged_change_log_is_not_loaded_after_it_was_pruned() {
    let server = Server::demo();
    server.append(&[("namespace", "extra", put(&json!({"id": "extra"})))]);
    server.wait_until("the change is seen", || server.get_open("/ready").json()["revision"] == json!(2));
    lose_all_changes(&server.database());
    server.wait_until("it is detected", || server.get_open("/ready").json()["store"] == json!("diverged"));
    for id in ["a", "b", "c", "d", "e"] {
        server.append(&[("namespace", id, put(&json!({"id": id})))]);
    }
    prune(&server.database(), 4);
    server.after_a_refresh();
    let ready = server.get_open("/ready").json();
    assert_eq!((&ready["store"], &ready["revision"]), (&json!("diverged"), &json!(2)));
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"].as_array().map(Vec::len), Some(3));
}

fn prune(database: &std::path::Path, horizon: u64) {
    let dsn = format!("sqlite://{}?mode=rw", database.display()).parse().unwrap();
    block_on(async { SqliteStore::open(&dsn).await.unwrap().prune(Revision(horizon)).await.unwrap() });
}

#[test]
fn a_clean_stop_leaves_everything_in_one_database_file() {
    let server = Server::demo();
    let (folder, database) = (server.folder().clone(), server.database());
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.wait().code(), Some(0));
    fs::copy(&database, folder.path().join("copy.db")).unwrap();
    let server = Server::start_in(folder, &[("DATABASE_URL", "sqlite://copy.db?mode=rw")]);
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"].as_array().map(Vec::len), Some(3));
}

/// With a renamed `list` or `kind`, a server does not find the references of a type.
#[test]
fn a_renamed_list_or_kind_in_a_type_file_is_an_error_and_not_an_empty_answer() {
    let seed = json!({
        "clusters": [{"id": "one", "cluster_name": "one", "cluster_dns": "one.example", "environment": "dev",
            "network_policies": [{"id": "a"}]}],
        "network_policies": [{"id": "a", "target_namespace": "x", "ingress_rules": []}]
    });
    let folder = tempfile::tempdir().unwrap();
    let types = folder.path().join("types");
    fs::create_dir(&types).unwrap();
    let text = fs::read_to_string(repository("docs/examples/resources/network_policy.yaml")).unwrap();
    fs::write(types.join("np.yaml"), &text).unwrap();
    fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
    let folder = Arc::new(folder);
    let settings = [("SEED_FILE", "seed.json"), ("RESOURCES_DIR", "types")];
    let server = Server::start_in(folder.clone(), &settings);
    assert_eq!(server.poll("one.example", "network-policies").json()["inputs"].as_array().map(Vec::len), Some(1));
    drop(server);

    let renamed_list = text.replace("schema:\n", "schema:\n  x-flux: {list: policies}\n");
    let renamed_kind = text
        .replace("kind: network_policy", "kind: net_policy")
        .replace("schema:\n", "schema:\n  x-flux: {list: network_policies, path: network-policies}\n");
    for text in [renamed_list, renamed_kind] {
        fs::write(types.join("np.yaml"), text).unwrap();
        let server = Server::start_in(folder.clone(), &settings);
        let answer = server.poll("one.example", "network-policies");
        assert_eq!((answer.status, &answer.json()["code"]), (503, &json!("types-changed")));
        assert_ne!(server.get("/problems").json(), json!([]));
    }

    // The same with a built-in type, whose list the cluster's schema still declares.
    let built_in = fs::read_to_string(repository("resources/namespace.yaml")).unwrap();
    let types = tempfile::tempdir().unwrap();
    fs::write(types.path().join("namespace.yaml"), built_in.replace("list: namespaces", "list: spaces")).unwrap();
    let demo = repository("data/seed.json");
    let server =
        Server::start(&[("SEED_FILE", demo.to_str().unwrap()), ("RESOURCES_DIR", types.path().to_str().unwrap())]);
    assert_eq!(server.poll(DEMO, "namespaces").json()["code"], json!("unread-list"));
    let folder = server.folder().clone();
    drop(server);
    let server = Server::start_in(folder, &[("API_MODE", "crud"), ("RESOURCES_DIR", types.path().to_str().unwrap())]);
    let answer = server.put("/clusters/demo-cluster-01/namespaces/podinfo", &json!({}));
    assert_eq!(
        answer.json()["errors"][0]["rule"],
        json!("unread-list"),
        "one reference would make the list look complete: {}",
        answer.body
    );
    assert_eq!(server.poll(DEMO, "namespaces").status, 500);
    assert_eq!(server.delete("/clusters/demo-cluster-01").status, 200);
    assert_eq!(
        server.post("/clusters/demo-cluster-01/restore", &json!({})).status,
        200,
        "a delete can still be undone"
    );
    assert_eq!(server.poll(DEMO, "namespaces").status, 500);
}

#[test]
fn a_seed_is_loaded_once() {
    let server = Server::seeded(&seed(json!([{"id": "a"}])));
    let before = server.poll("one.example", "namespaces").body;
    let folder = server.folder().clone();
    drop(server);
    fs::write(folder.path().join("seed.json"), seed(json!([])).to_string()).unwrap();
    let server = Server::start_in(folder.clone(), &[("SEED_FILE", "seed.json")]);
    assert_eq!(server.poll("one.example", "namespaces").body, before);
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
    drop(server);
    fs::write(folder.path().join("seed.json"), "no longer a seed").unwrap();
    let server = Server::start_in(folder, &[("SEED_FILE", "seed.json")]);
    assert_eq!(server.poll("one.example", "namespaces").body, before, "a seed that is not needed is not read");
}

#[test]
fn a_dangling_reference_is_skipped_and_reported() {
    let server = Server::seeded(&seed(json!([{"id": "ghost"}, {"id": "a"}])));
    let inputs = &server.poll("one.example", "namespaces").json()["inputs"];
    assert_eq!((inputs.as_array().map(Vec::len), &inputs[0]["id"]), (Some(1), &json!("a")));
    let problems = server.get("/problems");
    assert_eq!(problems.headers["x-total-count"], "1");
    assert_eq!(
        problems.json(),
        json!([{"kind": "cluster", "id": "one", "pointer": "/namespaces/0", "rule": "missing-definition",
            "message": "namespace \"ghost\" is not defined"}])
    );
    assert!(server.get_open("/metrics").body.contains("\nflux_resourceset_problems{rule=\"missing-definition\"} 1\n"));
    let log = server.log();
    assert!(log.contains("cluster \"one\" /namespaces/0: namespace \"ghost\" is not defined"), "{log}");
}

#[test]
fn an_invalid_seed_is_refused_as_a_whole() {
    let twins = json!({"clusters": [
        {"id": "one", "cluster_name": "one", "cluster_dns": "x.example", "environment": "dev"},
        {"id": "two", "cluster_name": "two", "cluster_dns": "X.example.", "environment": "dev"}]});
    let mut patched = seed(json!([]));
    patched["clusters"][0]["patches"] = json!({"app": {"a..b": "1"}});
    let cases = [
        (twins, "cluster \"two\" has the DNS name \"x.example\""),
        (patched, "/patches/app/a..b"),
        (seed(json!([{"id": "a"}, {"id": "a"}])), "\"a\" is in the list twice"),
        (seed(json!([{"id": "a", "enabled": true}])), "clusters/one: /namespaces/0"),
        (json!({"namespaces": [{"id": "none"}]}), "reserved"),
    ];
    for (seed, part) in cases {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        let output = command(folder.path()).env("SEED_FILE", "seed.json").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let last = stderr.lines().last().unwrap();
        assert!(last.starts_with("flux-resourceset: SEED_FILE seed.json: ") && last.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn an_answer_that_is_too_large_for_flux_is_an_error_and_never_truncated() {
    let names: Vec<_> = (0..10_001).map(|at| format!("n{at}")).collect();
    let list: Vec<_> = names.iter().map(|name| json!({"id": name})).collect();
    let big: Vec<_> =
        (0..5).map(|at| json!({"id": format!("big{at}"), "annotations": {"x": "y".repeat(200_000)}})).collect();
    let mut large = seed(big.iter().map(|big| json!({"id": big["id"]})).collect());
    large["namespaces"] = json!(big);
    let mut many = seed(json!(list));
    many["namespaces"] = json!(list);
    for (seed, code) in [(large, "answer-too-large"), (many, "too-many-inputs")] {
        let server = Server::seeded(&seed);
        let answer = server.poll("one.example", "namespaces");
        assert_eq!((answer.status, &answer.json()["code"]), (500, &json!(code)));
        assert_eq!(server.poll("one.example", "rolebindings").status, 200, "other types are answered");
        server.wait_until("it is logged", || server.log().contains("a request failed: the answer has "));
    }
}

#[test]
fn two_servers_on_one_file_start_together_and_see_each_others_changes() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let seed = repository("data/seed.json");
    let settings = [("SEED_FILE", seed.to_str().unwrap())];
    let servers = [(); 2].map(|()| Server::launch(folder.clone(), &settings));
    for server in &servers {
        server.wait_until("it is ready", || server.get_open("/ready").status == 200);
        assert_eq!(server.get_open("/ready").json()["revision"], json!(1), "one of them loaded the seed");
    }
    let revision = servers[0].append(&[("namespace", "extra", put(&json!({"id": "extra"})))]);
    for server in &servers {
        let is_there = &mut || server.get_open("/ready").json()["revision"] == json!(revision);
        eventually("both see the change", is_there);
    }
}
