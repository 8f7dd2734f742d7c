//! A DNS name moves to another cluster only on purpose: a client that polls under a former name of its cluster never gets an
//! answer that deletes anything.

use model::Value;
use serde_json::json;

use crate::{harness::Server, operators::fleet_of};

const TYPES: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

/// The ids that a poll under a name returns for each type; None for an error status.
fn ids_under(server: &Server, dns: &str) -> Vec<Option<Vec<String>>> {
    let ids = |path| {
        let answer = server.poll(dns, path);
        let inputs = answer.json()["inputs"].as_array().cloned();
        inputs.map(|inputs| inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect())
    };
    TYPES.map(ids).into()
}

fn code(answer: &crate::harness::Answer) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

fn new_cluster(id: &str, dns: &str) -> Value {
    json!({"id": id, "cluster_name": id, "cluster_dns": dns, "environment": "dev"})
}

/// A fleet of two whose first cluster was renamed.
fn renamed() -> Server {
    let server = Server::crud_with(&fleet_of(2));
    assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": "new.example"})).status, 200);
    server
}

#[test]
fn a_renamed_cluster_is_still_answered_completely_under_its_former_name() {
    let server = Server::crud_with(&fleet_of(2));
    let before = ids_under(&server, "c00000.example");
    assert!(before.iter().flatten().any(|ids| !ids.is_empty()), "{before:?}");
    let plan = server.patch("/clusters/c00000?dry_run=true", &json!({"cluster_dns": "new.example"})).json();
    assert_eq!(plan["totals"]["dev"]["removed"], json!(0), "{plan}");
    assert_eq!(server.get("/problems").json(), json!([]));

    let answer = server.patch("/clusters/c00000", &json!({"cluster_dns": "New.Example."}));
    assert_eq!(answer.json()["former_dns"], json!(["c00000.example"]));
    for name in ["c00000.example", "C00000.example.", "new.example"] {
        assert_eq!(ids_under(&server, name), before, "{name}");
    }
    let problems = server.get("/problems").json();
    assert_eq!(problems[0]["rule"], json!("former-dns-polled"), "{problems}");
    assert!(problems[0]["message"].as_str().unwrap().contains("c00000.example"), "{problems}");
    assert_eq!(problems.as_array().unwrap().len(), 1);

    // Renamed back, it has lost no name.
    let answer = server.patch("/clusters/c00000", &json!({"cluster_dns": "c00000.example"}));
    assert_eq!(answer.json()["former_dns"], json!(["New.Example."]));
    assert_eq!(server.get("/problems").json(), json!([]), "no former name is polled now");
    assert_eq!(ids_under(&server, "new.example"), before);
}

#[test]
fn former_names_survive_a_restart_and_a_decommission() {
    let server = renamed();
    let before = ids_under(&server, "c00000.example");
    let folder = server.folder().clone();
    server.signal(nix::sys::signal::SIGTERM);
    assert!(server.wait().success());
    let server = Server::start_in(folder, &[("API_MODE", "crud")]);
    assert_eq!(ids_under(&server, "c00000.example"), before);
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    for name in ["c00000.example", "new.example"] {
        assert_eq!(ids_under(&server, name), vec![Some(vec![]); 3], "{name}");
        assert_eq!(code(&server.post("/clusters", &new_cluster("other", name))), (409, json!("dns-held")), "{name}");
    }
    // Created again under a third name, it still answers to both.
    assert_eq!(server.post("/clusters", &new_cluster("c00000", "third.example")).status, 201);
    let names = server.get("/clusters/c00000").json()["former_dns"].clone();
    assert_eq!(names, json!(["c00000.example", "new.example"]));
}

#[test]
fn a_name_of_another_cluster_is_refused_and_the_error_names_its_owner() {
    let server = renamed();
    let before: Vec<_> =
        ["c00000.example", "new.example", "c00001.example"].map(|name| ids_under(&server, name)).into();
    for name in ["c00000.example", "new.example", "NEW.example."] {
        let created = server.post("/clusters", &new_cluster("other", name));
        assert_eq!(code(&created), (409, json!("dns-held")), "{name}: {}", created.body);
        assert!(created.json()["detail"].as_str().unwrap().contains("\"c00000\""), "{}", created.body);
        let patched = server.patch("/clusters/c00001", &json!({"cluster_dns": name}));
        assert_eq!(code(&patched), (409, json!("dns-held")), "{name}");
        let mut body = server.get("/clusters/c00001").json();
        body["cluster_dns"] = json!(name);
        assert_eq!(code(&server.put("/clusters/c00001", &body)), (409, json!("dns-held")), "{name}");
        let batch = json!({"writes": [{"op": "create", "kind": "cluster", "body": new_cluster("other", name)}]});
        assert_eq!(code(&server.post("/batch", &batch)), (409, json!("dns-held")), "{name}");
    }
    // A rename and a takeover in one change.
    let batch = json!({"writes": [
        {"op": "patch", "kind": "cluster", "id": "c00001", "body": {"cluster_dns": "other.example"}},
        {"op": "create", "kind": "cluster", "body": new_cluster("other", "c00001.example")},
    ]});
    assert_eq!(code(&server.post("/batch", &batch)), (409, json!("dns-held")));
    let after: Vec<_> = ["c00000.example", "new.example", "c00001.example"].map(|name| ids_under(&server, name)).into();
    assert_eq!(after, before);
}

#[test]
fn clients_cannot_change_the_list_of_former_names() {
    let server = renamed();
    let mut body = server.get("/clusters/c00000").json();
    body.as_object_mut().unwrap().remove("former_dns");
    let answer = server.put("/clusters/c00000", &body);
    assert_eq!(
        (answer.status, &answer.json()["former_dns"]),
        (200, &json!(["c00000.example"])),
        "without the field, the list stays"
    );
    for (patch, media) in [
        (json!({"former_dns": null}), "application/merge-patch+json"),
        (json!({"former_dns": []}), "application/merge-patch+json"),
        (json!([{"op": "remove", "path": "/former_dns"}]), "application/json-patch+json"),
    ] {
        let answer = server.write("PATCH", "/clusters/c00000", &patch, &[("content-type", media)]);
        assert_eq!((answer.status, &answer.json()["former_dns"]), (200, &json!(["c00000.example"])), "{patch}");
    }
    let added = server.patch("/clusters/c00001", &json!({"former_dns": ["mine.example"]}));
    assert_eq!((added.status, &added.json()["errors"][0]["rule"]), (422, &json!("server-owned")), "{}", added.body);
    assert_eq!(server.poll("mine.example", "namespaces").status, 404);

    let reverted = server.post("/clusters/c00000/revert", &json!({"revision": 1}));
    assert_eq!(reverted.json()["former_dns"], json!(["new.example"]), "{}", reverted.body);
    assert_eq!(reverted.json()["cluster_dns"], json!("c00000.example"));
}

#[test]
fn a_plan_counts_what_a_poller_under_a_released_name_would_lose() {
    let server = renamed();
    let total: usize = ids_under(&server, "c00000.example").iter().flatten().map(Vec::len).sum();
    assert_eq!(server.delete("/clusters/c00000/former_dns/nosuch.example").status, 404);
    assert_eq!(
        server.delete("/clusters/c00000/former_dns/new.example").status,
        404,
        "the present name is not a former one"
    );
    let released = server.delete("/clusters/c00000/former_dns/C00000.example");
    assert_eq!((released.status, released.json().get("former_dns")), (200, None), "{}", released.body);
    assert_eq!(server.poll("c00000.example", "namespaces").status, 404, "an error deletes nothing");

    let plan = server.post("/clusters?dry_run=true", &new_cluster("heir", "c00000.example")).json();
    let removed: u64 = plan["totals"].as_object().unwrap().values().map(|it| it["removed"].as_u64().unwrap()).sum();
    assert_eq!(removed, u64::try_from(total).unwrap(), "{plan}");
    assert_eq!(plan["clusters"][0]["id"], json!("heir"));
    assert_eq!(server.post("/clusters", &new_cluster("heir", "c00000.example")).status, 201);
    // The name now belongs to another cluster.
    let stolen = server.patch("/clusters/c00000", &json!({"cluster_dns": "c00000.example"}));
    assert_eq!(code(&stolen), (409, json!("dns-held")));
}

#[test]
fn a_cluster_keeps_at_most_sixteen_former_names() {
    let server = Server::crud_with(&fleet_of(1));
    for at in 0..16 {
        assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": format!("n{at}.example")})).status, 200);
    }
    let refused = server.patch("/clusters/c00000", &json!({"cluster_dns": "n16.example"}));
    assert_eq!((refused.status, &refused.json()["errors"][0]["rule"]), (422, &json!("former-dns-limit")));
    assert_eq!(ids_under(&server, "c00000.example"), ids_under(&server, "n15.example"));
}

#[test]
fn a_tombstone_is_not_restored_over_the_name_of_a_live_cluster() {
    let server = Server::crud_with(&fleet_of(2));
    assert_eq!(server.delete("/clusters/c00001").status, 200);
    assert_eq!(server.delete("/clusters/c00001?purge=true").status, 200);
    let mut heir = new_cluster("heir", "c00001.example");
    heir["namespaces"] = json!([{"id": "shared"}]);
    assert_eq!(server.post("/clusters", &heir).status, 201);
    let reverted = server.post("/changes/3/revert", &json!({}));
    assert_eq!(code(&reverted), (409, json!("dns-held")), "{}", reverted.body);
    // Otherwise the tombstone would answer a cluster that still polls under the name once it is released.
    assert_eq!(server.patch("/clusters/heir", &json!({"cluster_dns": "heir.example"})).status, 200);
    assert_eq!(server.delete("/clusters/heir/former_dns/c00001.example").status, 200);
    assert_eq!(server.poll("c00001.example", "namespaces").status, 404);
    // Once no cluster has the name, the tombstone is restored.
    assert_eq!(server.post("/changes/3/revert", &json!({})).status, 200);
}

#[test]
fn one_change_cannot_make_a_cluster_lose_its_former_name() {
    let server = Server::crud_with(&fleet_of(2));
    let before = ids_under(&server, "c00000.example");
    let mut moved = server.get("/clusters/c00000").json();
    moved["cluster_dns"] = json!("moved.example");
    let writes = json!({"writes": [
        {"op": "delete", "kind": "cluster", "id": "c00000"},
        {"op": "purge", "id": "c00000"},
        {"op": "create", "kind": "cluster", "body": moved}
    ]});
    let refused = server.post("/batch", &writes);
    assert_eq!(code(&refused), (409, json!("not-decommissioned")), "{}", refused.body);
    assert_eq!(ids_under(&server, "c00000.example"), before);
    // Deleted and created again in one change, it keeps the name.
    let writes = json!({"writes": [writes["writes"][0], writes["writes"][2]]});
    assert_eq!(server.post("/batch", &writes).status, 200);
    assert_eq!(ids_under(&server, "c00000.example"), before);
}
