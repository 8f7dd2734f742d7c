//! Deletes, under the first law: never by accident.

use model::Value;
use serde_json::json;

use super::fleet_of;
use crate::harness::Server;

fn answers(server: &Server, count: usize) -> Vec<String> {
    let polls = (0..count).flat_map(|at| {
        ["platform-components", "namespaces", "rolebindings"]
            .map(|path| server.poll(&format!("c{at:05}.example"), path).body)
    });
    polls.collect()
}

#[test]
fn a_definition_in_use_is_not_deleted_and_answers_stay_as_they_are() {
    let server = Server::crud_with(&fleet_of(12));
    let before = answers(&server, 12);
    let answer = server.delete("/namespaces/shared");
    assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("referenced")));
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("cluster/c00000") && detail.contains("and 2 more"), "{detail}");
    let named: Vec<_> = answer.json()["errors"].as_array().unwrap().iter().map(|it| it["document"].clone()).collect();
    assert_eq!(named, (0..12).map(|at| json!(format!("cluster/c{at:05}"))).collect::<Vec<_>>(), "all are named");
    assert_eq!(answers(&server, 12), before);
    let answer = server.delete("/platform_components/base");
    assert!(answer.json()["detail"].as_str().unwrap().contains("cluster/c00000"), "{}", answer.body);
}

#[test]
fn a_cascade_removes_the_references_in_the_same_change() {
    let server = Server::crud_with(&fleet_of(3));
    assert_eq!(server.delete("/namespaces/shared?cascade=true").status, 200);
    assert_eq!(server.get_open("/ready").json()["revision"], json!(2), "one change");
    assert_eq!(server.poll("c00000.example", "namespaces").json(), json!({"inputs": []}));
    assert_eq!(server.get("/problems").json(), json!([]));
    assert_eq!(server.delete("/platform_components/base?cascade=true").status, 200);
    assert_eq!(
        server.get("/platform_components/app").json()["depends_on"],
        json!([]),
        "dependants lose the dependency too"
    );
    assert_eq!(server.get("/problems").json(), json!([]));
}

#[test]
fn only_the_decommissioned_cluster_gets_empty_lists_and_a_restore_undoes_that() {
    let server = Server::crud_with(&fleet_of(3));
    let before = answers(&server, 3);
    assert_eq!(server.delete("/clusters/c00001").status, 200);
    let during = answers(&server, 3);
    assert_eq!((&during[..3], &during[6..]), (&before[..3], &before[6..]), "the other clusters are not affected");
    assert!(during[3..6].iter().all(|body| body == r#"{"inputs":[]}"#), "{during:?}");
    let decommissioned = server.get("/clusters/c00001");
    assert_eq!((decommissioned.status, &decommissioned.json()["code"]), (410, &json!("decommissioned")));
    assert_eq!(server.get("/clusters?decommissioned=true").json()[0]["id"], json!("c00001"));
    assert_eq!(server.get("/clusters").json().as_array().map(Vec::len), Some(2));
    assert_eq!(server.patch("/clusters/c00001", &json!({"environment": "qa"})).status, 410);

    assert_eq!(server.post("/clusters/c00001/restore", &json!({})).status, 200);
    assert_eq!(answers(&server, 3), before);
    assert_eq!(server.post("/clusters/c00001/restore", &json!({})).status, 409);

    assert_eq!(server.delete("/clusters/c00001?purge=true").status, 409, "only a tombstone is purged");
    server.delete("/clusters/c00001");
    assert_eq!(server.delete("/clusters/c00001?purge=true").status, 200);
    assert_eq!(server.poll("c00001.example", "namespaces").status, 404);
    assert_eq!(server.get("/clusters/c00001").status, 404);
}

#[test]
fn a_delete_can_always_be_undone() {
    let mut seed = fleet_of(1);
    seed["clusters"][0]["namespaces"] = json!([{"id": "ghost"}, {"id": "shared"}]);
    let server = Server::crud_with(&seed);
    let before = server.poll("c00000.example", "namespaces").body;
    server.delete("/clusters/c00000");
    let answer = server.post("/clusters/c00000/restore", &json!({}));
    assert_eq!(answer.status, 200, "an old problem must not leave the cluster decommissioned: {}", answer.body);
    assert_eq!(server.poll("c00000.example", "namespaces").body, before);
    server.delete("/clusters/c00000");
    assert_eq!(server.post("/changes/4/revert", &json!({})).status, 200, "nor must it block a revert");
    assert_eq!(server.get("/problems").json()[0]["rule"], json!("missing-definition"), "it is still reported");
}

#[test]
fn creating_over_a_tombstone_is_validated_unlike_a_restore() {
    let seed = fleet_of(1);
    let server = Server::crud_with(&seed);
    server.delete("/clusters/c00000");
    let mut again = seed["clusters"][0].clone();
    again["namespaces"] = json!([{"id": "shard"}]);
    let answer = server.post("/clusters", &again);
    assert_eq!(
        (answer.status, &answer.json()["errors"][0]["rule"]),
        (422, &json!("missing-definition")),
        "a typo is a typo"
    );
}

#[test]
fn a_tombstone_never_answers_for_a_live_cluster() {
    let seed = fleet_of(1);
    let server = Server::crud_with(&seed);
    server.delete("/clusters/c00000");
    let mut rebuilt = seed["clusters"][0].clone();
    (rebuilt["id"], rebuilt["cluster_name"]) = (json!("rebuilt"), json!("rebuilt"));
    let answer = server.post("/clusters", &rebuilt);
    assert_eq!((answer.status, &answer.json()["errors"][0]["rule"]), (409, &json!("tombstone-dns")), "{}", answer.body);
    assert_eq!(server.delete("/clusters/c00000?purge=true").status, 200);
    assert_eq!(server.post("/clusters", &rebuilt).status, 201);
    server.patch("/clusters/rebuilt", &json!({"cluster_dns": "other.example"}));
    assert_eq!(server.poll("c00000.example", "namespaces").status, 200, "a former name is still answered");
    server.delete("/clusters/rebuilt/former_dns/c00000.example");
    assert_eq!(server.poll("c00000.example", "namespaces").status, 404, "a name that was released is unknown");
}

#[test]
fn patches_of_a_component_are_removed_with_it() {
    let server = Server::crud_with(&fleet_of(2));
    let misspelt = server.put("/clusters/c00000/patches/ap", &json!({"a": "b"}));
    assert_eq!((misspelt.status, &misspelt.json()["errors"][0]["rule"]), (422, &json!("patch-without-definition")));
    server.put("/clusters/c00000/patches/app", &json!({"a": "b"}));
    for cluster in ["c00000", "c00001"] {
        assert_eq!(server.delete(&format!("/clusters/{cluster}/platform_components/app")).status, 200);
    }
    assert_eq!(server.delete("/platform_components/app").status, 409, "a cluster still patches it");
    assert_eq!(server.delete("/platform_components/app?cascade=true").status, 200);
    assert_eq!(server.get("/clusters/c00000").json()["patches"], json!({}));
}

#[test]
fn a_protected_cluster_is_not_deleted() {
    let server = Server::crud_with(&fleet_of(1));
    server.patch("/clusters/c00000", &json!({"deletion_protection": true}));
    let answer = server.delete("/clusters/c00000");
    assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("protected")));
    server.patch("/clusters/c00000", &json!({"deletion_protection": false}));
    assert_eq!(server.delete("/clusters/c00000").status, 200);
}

#[test]
fn creating_a_decommissioned_cluster_again_lifts_the_tombstone() {
    let seed = fleet_of(1);
    let server = Server::crud_with(&seed);
    server.delete("/clusters/c00000");
    let again: &Value = &seed["clusters"][0];
    assert_eq!(server.post("/clusters", again).status, 201);
    assert_eq!(server.post("/clusters", again).status, 409);
    assert_eq!(server.poll("c00000.example", "namespaces").json()["inputs"].as_array().map(Vec::len), Some(1));
}
