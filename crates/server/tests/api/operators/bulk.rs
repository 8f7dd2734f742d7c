//! Batches, bulk patches and dry runs.

use serde_json::json;

use super::fleet_of;
use crate::harness::Server;

#[test]
fn a_batch_is_one_change_and_all_or_nothing() {
    let server = Server::crud_with(&fleet_of(2));
    let good = json!({"writes": [
        {"op": "create", "kind": "namespace", "body": {"id": "team"}},
        {"op": "assign", "cluster": "c00000", "kind": "namespaces", "id": "team"},
        {"op": "put", "kind": "rolebinding", "id": "readers", "body": {"role": "view"}},
        {"op": "patch", "kind": "clusters", "id": "c00001", "body": {"rolebindings": [{"id": "readers"}]}},
        {"op": "unassign", "cluster": "c00001", "kind": "namespace", "id": "shared"},
        {"op": "delete", "kind": "namespace", "id": "unused"}
    ]});
    let answer = server.post("/batch", &good);
    assert_eq!((answer.status, &answer.json()["revision"]), (200, &json!(2)), "{}", answer.body);
    assert_eq!(answer.json()["documents"].as_array().map(Vec::len), Some(5));
    assert_eq!(server.poll("c00000.example", "namespaces").json()["inputs"][1]["id"], json!("team"));

    let bad = json!({"writes": [
        {"op": "create", "kind": "namespace", "body": {"id": "other"}},
        {"op": "create", "kind": "namespace", "body": {"id": "team"}},
        {"op": "delete", "kind": "namespace", "id": "ghost"}
    ]});
    let answer = server.post("/batch", &bad);
    let pointers: Vec<_> = answer.json()["errors"].as_array().unwrap().iter().map(|it| it["pointer"].clone()).collect();
    assert_eq!((answer.status, pointers), (422, vec![json!("/writes/1"), json!("/writes/2")]), "{}", answer.body);
    assert_eq!(server.get("/namespaces/other").status, 404, "no write of the batch was made");
    assert_eq!(server.post("/batch", &json!({"writes": [{"op": "explode"}]})).status, 400);
    let other = json!({"writes": [{"op": "put", "kind": "namespace", "id": "one", "body": {"id": "two"}}]});
    let answer = server.post("/batch", &other);
    assert_eq!(
        (answer.status, &answer.json()["errors"][0]["pointer"]),
        (422, &json!("/writes/0/id")),
        "{}",
        answer.body
    );
    let unknown = server.post("/batch", &json!({"writes": [{"op": "delete", "kind": "gateway", "id": "x"}]}));
    assert_eq!((unknown.status, &unknown.json()["errors"][0]["pointer"]), (422, &json!("/writes/0/kind")));
}

#[test]
fn a_bulk_patch_reaches_every_match_as_one_change() {
    let server = Server::crud_with(&fleet_of(10));
    let patch = json!({"patches": {"app": {"replicaCount": "3"}}});
    let answer = server.patch("/clusters?environment=prod", &patch);
    assert_eq!((answer.status, answer.json()["documents"].as_array().map(Vec::len)), (200, Some(5)));
    assert_eq!(server.get_open("/ready").json()["revision"], json!(2));
    let values = |at: usize| {
        server.poll(&format!("c{at:05}.example"), "platform-components").json()["inputs"][1]["values"].clone()
    };
    assert_eq!((values(0), values(1)), (json!({}), json!({"replicaCount": 3})));
    let merge = [("content-type", "application/merge-patch+json")];
    assert_eq!(
        server.write("PATCH", "/clusters?all=true", &patch, &merge).status,
        415,
        "a bulk patch is a strategic merge patch"
    );
    let refused = server.patch("/clusters", &patch);
    assert_eq!((refused.status, &refused.json()["errors"][0]["rule"]), (422, &json!("unfiltered")));
    assert_eq!(server.patch("/clusters?all=true", &patch).json()["documents"].as_array().map(Vec::len), Some(5));
    assert_eq!(server.patch("/clusters?environment=moon", &patch).json()["documents"], json!([]));
}

#[test]
fn a_dry_run_plans_the_change_and_does_not_make_it() {
    let server = Server::crud_with(&fleet_of(4));
    let before = server.poll("c00000.example", "platform-components").body;
    let plan = server.patch("/platform_components/app?dry_run=true", &json!({"oci_tag": "v2"})).json();
    assert_eq!(
        plan["documents"],
        json!([{"kind": "platform_component", "id": "app", "op": "put", "diff": [{"pointer": "/oci_tag", "after": "v2"}]}])
    );
    assert_eq!(
        plan["totals"],
        json!({
            "dev": {"clusters": 2, "added": 0, "changed": 2, "removed": 0},
            "prod": {"clusters": 2, "added": 0, "changed": 2, "removed": 0}
        })
    );
    assert_eq!(
        plan["clusters"][0],
        json!({"id": "c00000", "environment": "dev",
        "inputs": {"platform-components": {"added": [], "changed": ["app"], "removed": []}}})
    );

    let plan = server.delete("/clusters/c00001?dry_run=true").json();
    assert_eq!(plan["totals"]["prod"], json!({"clusters": 1, "added": 0, "changed": 0, "removed": 3}));
    for (method, path, body) in [
        ("POST", "/namespaces?dry_run=true", json!({"id": "x"})),
        ("PUT", "/namespaces/unused?dry_run=true", json!({"labels": {"a": "b"}})),
        ("DELETE", "/namespaces/unused?dry_run=true", json!({})),
        ("PUT", "/clusters/c00000/namespaces/unused?dry_run=true", json!({})),
        ("DELETE", "/clusters/c00000/namespaces/shared?dry_run=true", json!({})),
        ("PUT", "/clusters/c00000/patches/app?dry_run=true", json!({"a": "b"})),
        ("PATCH", "/clusters?all=true&dry_run=true", json!({"environment": "qa"})),
        ("POST", "/batch?dry_run=true", json!({"writes": [{"op": "delete", "kind": "namespace", "id": "unused"}]})),
    ] {
        let answer = server.write(method, path, &body, &[]);
        assert_eq!((answer.status, &answer.json()["dry_run"]), (200, &json!(true)), "{method} {path}: {}", answer.body);
        assert_eq!(answer.json()["revision"], json!(1));
    }
    let refused = server.write("DELETE", "/namespaces/shared?dry_run=true", &json!({}), &[]);
    assert_eq!(refused.status, 409, "a dry run is refused like the change itself");
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
    assert_eq!(server.poll("c00000.example", "platform-components").body, before);
}

#[test]
fn ten_thousand_clusters_are_one_change_and_polls_go_on() {
    let server = Server::crud_with(&fleet_of(10_000));
    let plan = server.patch("/platform_components/app?dry_run=true", &json!({"oci_tag": "v2"})).json();
    assert_eq!(plan["clusters"].as_array().map(Vec::len), Some(10_000));
    std::thread::scope(|scope| {
        let bulk =
            scope.spawn(|| server.patch("/clusters?all=true", &json!({"patches": {"app": {"replicaCount": "3"}}})));
        let mut polls = 0;
        while !bulk.is_finished() {
            assert_eq!(server.poll("c00042.example", "platform-components").status, 200);
            polls += 1;
        }
        let answer = bulk.join().unwrap();
        assert_eq!((answer.status, &answer.json()["revision"]), (200, &json!(2)), "{}", answer.body);
        assert_eq!(answer.json()["documents"].as_array().map(Vec::len), Some(10_000));
        assert!(polls > 0);
    });
    let input = &server.poll("c09999.example", "platform-components").json()["inputs"][1];
    assert_eq!(input["values"], json!({"replicaCount": 3}));
}

#[test]
fn clusters_are_filtered_by_their_references() {
    let server = Server::crud_with(&fleet_of(4));
    assert_eq!(server.delete("/clusters/c00001/namespaces/shared").status, 200);
    let found = server.get("/clusters?namespaces=shared").json();
    let found: Vec<_> = found.as_array().unwrap().iter().map(|cluster| cluster["id"].clone()).collect();
    assert_eq!(found, ["c00000", "c00002", "c00003"]);
    let both = server.get("/clusters?namespaces=shared&environment=prod").json();
    assert_eq!(both.as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/clusters?namespaces=ghost").json(), json!([]));
    assert_eq!(server.get("/clusters?patches=app").status, 400, "only a list of references is a filter");
    assert_eq!(server.get("/platform_components?depends_on=base").status, 400);

    let patch = json!({"namespaces": [{"id": "shared", "$patch": "delete"}]});
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let written = server.write("PATCH", "/clusters?namespaces=shared", &patch, &strategic).json();
    assert_eq!(written["documents"].as_array().map(Vec::len), Some(3), "{written}");
    assert_eq!(server.get("/clusters?namespaces=shared").json(), json!([]));
}

#[test]
fn a_plan_counts_disabled_inputs_as_removed() {
    let server = Server::crud();
    let plan = |enabled: bool| {
        let patch = json!({"platform_components": [{"id": "podinfo", "enabled": enabled}]});
        server.patch("/clusters?all=true&dry_run=true", &patch).json()["totals"]["dev"].clone()
    };
    assert_eq!(plan(false), json!({"clusters": 1, "added": 0, "changed": 0, "removed": 1}));
    let disable = json!({"platform_components": [{"id": "podinfo", "enabled": false}]});
    assert_eq!(server.patch("/clusters?all=true", &disable).status, 200);
    assert_eq!(plan(true), json!({"clusters": 1, "added": 1, "changed": 0, "removed": 0}));
}

#[test]
fn a_plan_counts_the_inputs_lost_when_a_dns_name_moves_to_another_cluster() {
    let mut seed = fleet_of(2);
    seed["clusters"][1]["namespaces"] = json!([]);
    let server = Server::crud_with(&seed);
    assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": "other.example"})).status, 200);
    assert_eq!(server.delete("/clusters/c00000/former_dns/c00000.example").status, 200);
    let plan = || server.patch("/clusters/c00001?dry_run=true", &json!({"cluster_dns": "c00000.example"})).json();
    let inputs = plan()["clusters"][0]["inputs"].clone();
    assert_eq!(inputs["namespaces"]["removed"], json!(["shared"]), "{inputs}");
    assert_eq!(inputs["platform-components"]["removed"], json!([]), "the new owner has these too");

    // Inputs that the new owner has disabled are lost as well.
    let disable = json!({"platform_components": [{"id": "app", "enabled": false}]});
    let patched = server.write(
        "PATCH",
        "/clusters/c00001",
        &disable,
        &[("content-type", "application/strategic-merge-patch+json")],
    );
    assert_eq!(patched.status, 200, "{}", patched.body);
    let inputs = plan()["clusters"][0]["inputs"].clone();
    assert_eq!(inputs["platform-components"]["removed"], json!(["app"]), "{inputs}");
}

#[test]
fn a_plan_counts_recreated_objects_as_removed_and_added() {
    let server = Server::crud();
    let patch = json!({"oci_url": "oci://registry.example/podinfo"});
    let plan = server.patch("/platform_components/cert-manager?dry_run=true", &patch).json();
    let inputs = &plan["clusters"][0]["inputs"]["platform-components"];
    assert_eq!((&inputs["added"], &inputs["removed"]), (&json!(["cert-manager"]), &json!(["cert-manager"])), "{plan}");
    let plan = server.patch("/platform_components/podinfo?dry_run=true", &json!({"component_path": "other"})).json();
    let inputs = &plan["clusters"][0]["inputs"]["platform-components"];
    assert_eq!(inputs["removed"], json!(["podinfo"]), "another chart is another release: {plan}");
    let disabled = json!({"platform_components": [{"id": "podinfo", "enabled": false}]});
    assert_eq!(server.patch("/clusters?all=true", &disabled).status, 200);
    let plan = server.delete("/clusters/demo-cluster-01/platform_components/podinfo?dry_run=true").json();
    assert_eq!(plan["totals"]["dev"], json!({"clusters": 1, "added": 0, "changed": 1, "removed": 0}), "{plan}");
}

#[test]
fn a_change_is_refused_if_the_fleet_changed_since_its_plan() {
    let server = Server::crud();
    let body = json!({"writes": [{"op": "create", "kind": "namespace", "body": {"id": "a"}}]});
    let plan = server.post("/batch?dry_run=true", &body).json();
    assert_eq!(plan["revision"], 1);
    assert_eq!(server.post("/namespaces", &json!({"id": "other"})).status, 201);
    let late = server.post("/batch?expected_revision=1", &body);
    assert_eq!((late.status, &late.json()["code"]), (412, &json!("fleet-changed")), "{}", late.body);
    assert_eq!(server.patch("/clusters?all=true&expected_revision=1", &json!({"labels": {"a": "b"}})).status, 412);
    assert_eq!(server.delete("/namespaces/other?expected_revision=1").status, 412);
    assert_eq!(server.post("/batch?expected_revision=2", &body).status, 200);
    assert_eq!(server.post("/batch?expected_revision=x", &body).status, 400);
}

#[test]
fn a_batch_whose_writes_all_fail_with_one_code_fails_with_that_code() {
    let server = Server::crud();
    let missing = json!({"writes": [
        {"op": "delete", "kind": "namespace", "id": "x"}, {"op": "delete", "kind": "namespace", "id": "y"}
    ]});
    let answer = server.post("/batch", &missing);
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("not-found")), "{}", answer.body);
    assert_eq!(answer.json()["errors"].as_array().map(Vec::len), Some(2));
}
