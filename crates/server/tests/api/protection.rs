//! `deletion_protection` on the server: a change that removes inputs from a protected cluster has to say how many.

use model::Value;
use serde_json::json;

use crate::{
    harness::{Answer, Server},
    operators::fleet_of,
};

const STRATEGIC: (&str, &str) = ("content-type", "application/strategic-merge-patch+json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

/// A fleet whose first cluster is protected. Each cluster has two components and a namespace.
fn protected() -> Server {
    let mut seed = fleet_of(3);
    seed["clusters"][0]["deletion_protection"] = json!(true);
    Server::crud_with(&seed)
}

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

fn polls(server: &Server, dns: &str) -> Vec<String> {
    ["platform-components", "namespaces"].map(|path| server.poll(dns, path).body).into()
}

/// Every request that removes inputs from `c00000`: method, path, body, media type and how many inputs.
fn ways() -> Vec<(&'static str, &'static str, Value, &'static str, usize)> {
    const JSON: &str = "application/json";
    let bare = json!({"id": "c00000", "cluster_name": "c00000", "cluster_dns": "c00000.example", "environment": "dev"});
    let removal = |list: &str, id: &str| json!({list: [{"id": id, "$patch": "delete"}]});
    let disable = json!({"platform_components": [{"id": "app", "enabled": false}]});
    let batch = |write: Value| json!({"writes": [write]});
    vec![
        ("PUT", "/clusters/c00000", bare.clone(), JSON, 3),
        ("PATCH", "/clusters/c00000", json!({"namespaces": []}), MERGE.1, 1),
        ("PATCH", "/clusters/c00000", removal("platform_components", "app"), STRATEGIC.1, 1),
        (
            "PATCH",
            "/clusters/c00000",
            json!([{"op": "remove", "path": "/namespaces"}]),
            "application/json-patch+json",
            1,
        ),
        ("PATCH", "/clusters/c00000", disable.clone(), STRATEGIC.1, 1),
        ("PATCH", "/clusters?all=true", removal("namespaces", "shared"), STRATEGIC.1, 1),
        ("PATCH", "/clusters?all=true", disable, JSON, 1),
        ("DELETE", "/clusters/c00000/namespaces/shared", json!({}), JSON, 1),
        ("PUT", "/clusters/c00000/platform_components/app", json!({"enabled": false}), JSON, 1),
        ("DELETE", "/namespaces/shared?cascade=true", json!({}), JSON, 1),
        ("DELETE", "/platform_components/app?cascade=true", json!({}), JSON, 1),
        // Another chart is another release: Flux deletes the old one.
        ("PATCH", "/platform_components/app", json!({"component_path": "other"}), MERGE.1, 1),
        ("POST", "/batch", batch(json!({"op": "put", "kind": "cluster", "id": "c00000", "body": bare})), JSON, 3),
        (
            "POST",
            "/batch",
            batch(json!({"op": "delete", "kind": "namespace", "id": "shared", "cascade": true})),
            JSON,
            1,
        ),
        (
            "POST",
            "/batch",
            batch(json!({"op": "unassign", "cluster": "c00000", "kind": "namespace", "id": "shared"})),
            JSON,
            1,
        ),
    ]
}

fn send(server: &Server, (method, path, body, media, _): &(&str, &str, Value, &str, usize), query: &str) -> Answer {
    let path = if path.contains('?') { format!("{path}&{query}") } else { format!("{path}?{query}") };
    server.write(method, &path, body, &[("content-type", media)])
}

#[test]
fn a_change_that_removes_inputs_from_a_protected_cluster_is_refused_with_their_number() {
    let server = protected();
    let before = polls(&server, "c00000.example");
    for way in ways() {
        let answer = send(&server, &way, "");
        assert_eq!(code(&answer), (409, json!("protected")), "{way:?}: {}", answer.body);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(&format!("{} from \"c00000\"", way.4)), "{way:?}: {detail}");
        assert!(detail.ends_with(&format!("allow_removals={}", way.4)), "{way:?}: {detail}");
        assert_eq!(answer.json()["errors"][0]["document"], json!("cluster/c00000"), "{way:?}");
        let too_few = send(&server, &way, &format!("allow_removals={}", way.4 - 1));
        assert_eq!(code(&too_few), (409, json!("protected")), "{way:?}");
    }
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1), "nothing was written");
    assert_eq!(polls(&server, "c00000.example"), before);
}

#[test]
fn it_is_made_if_the_request_allows_as_many_removals() {
    for way in ways() {
        let server = protected();
        let answer = send(&server, &way, &format!("allow_removals={}", way.4));
        assert_eq!(answer.status, 200, "{way:?}: {}", answer.body);
        assert_eq!(server.get_open("/ready").json()["revision"], json!(2), "{way:?}");
    }
}

#[test]
fn a_dry_run_shows_the_plan_and_that_the_change_would_be_refused() {
    let server = protected();
    let removal = json!({"namespaces": [{"id": "shared", "$patch": "delete"}]});
    let plan = |query: &str| {
        let answer = server.write("PATCH", &format!("/clusters?all=true&dry_run=true{query}"), &removal, &[STRATEGIC]);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    };
    let refused = plan("");
    assert_eq!(refused["totals"]["dev"]["removed"], json!(2), "{refused}");
    let refusal = &refused["refused"];
    assert_eq!(
        (&refusal["code"], &refusal["removed"], &refusal["clusters"]),
        (&json!("protected"), &json!(1), &json!([{"id": "c00000", "removed": 1}])),
        "{refused}"
    );
    assert_eq!(plan("&allow_removals=1").get("refused"), None);
}

#[test]
fn one_change_cannot_lift_the_protection_and_remove_inputs() {
    let server = protected();
    let emptied =
        server.write("PATCH", "/clusters/c00000", &json!({"deletion_protection": false, "namespaces": []}), &[MERGE]);
    assert_eq!(code(&emptied), (409, json!("protected")), "{}", emptied.body);
    let batch = json!({"writes": [
        {"op": "patch", "kind": "cluster", "id": "c00000", "body": {"deletion_protection": false}},
        {"op": "delete", "kind": "cluster", "id": "c00000"}
    ]});
    for query in ["", "?allow_removals=1000", "?dry_run=true"] {
        assert_eq!(code(&server.post(&format!("/batch{query}"), &batch)), (409, json!("protected")), "{query}");
    }
    // In two changes it is an operator's decision.
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": false})).status, 200);
    assert_eq!(server.write("PATCH", "/clusters/c00000", &json!({"namespaces": []}), &[MERGE]).status, 200);
    assert_eq!(server.delete("/clusters/c00000").status, 200);
}

#[test]
fn a_protected_cluster_is_not_decommissioned_even_with_allow_removals() {
    let server = protected();
    assert_eq!(code(&server.delete("/clusters/c00000?allow_removals=1000")), (409, json!("protected")));
    assert_eq!(server.delete("/clusters/c00001").status, 200, "another cluster is");
}

#[test]
fn a_change_that_removes_nothing_from_a_protected_cluster_needs_no_allow_removals() {
    let server = protected();
    for (method, path, body) in [
        ("PATCH", "/clusters/c00000", json!({"labels": {"a": "b"}})),
        ("PATCH", "/clusters/c00000", json!({"cluster_dns": "other.example"})),
        ("PUT", "/clusters/c00000/namespaces/unused", json!({})),
        ("PATCH", "/platform_components/app", json!({"oci_tag": "v2"})),
        ("DELETE", "/clusters/c00000/former_dns/c00000.example", json!({})),
        ("DELETE", "/clusters/c00001/namespaces/shared", json!({})),
    ] {
        let answer = server.write(method, path, &body, &[]);
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
    }
}

#[test]
fn reverts_need_allow_removals_too() {
    let server = protected();
    assert_eq!(server.put("/clusters/c00000/namespaces/unused", &json!({})).status, 200);
    let document = server.post("/clusters/c00000/revert", &json!({"revision": 1}));
    assert_eq!(code(&document), (409, json!("protected")), "{}", document.body);
    let change = server.post("/changes/2/revert", &json!({}));
    assert_eq!(code(&change), (409, json!("protected")), "{}", change.body);
    assert_eq!(server.post("/changes/2/revert?allow_removals=1", &json!({})).status, 200);
}

#[test]
fn a_released_name_of_a_protected_cluster_is_not_taken_without_allow_removals() {
    let mut seed = fleet_of(2);
    seed["clusters"][0]["deletion_protection"] = json!(true);
    seed["clusters"][1]["namespaces"] = json!([]);
    let server = Server::crud_with(&seed);
    server.patch("/clusters/c00000", &json!({"cluster_dns": "other.example"}));
    assert_eq!(server.delete("/clusters/c00000/former_dns/c00000.example").status, 200);
    let take = || server.patch("/clusters/c00001", &json!({"cluster_dns": "c00000.example"}));
    let refused = take();
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
    assert!(refused.json()["detail"].as_str().unwrap().contains("1 from \"c00000\""), "{}", refused.body);
    // Also after a restart, which reads the released names again.
    let folder = server.folder().clone();
    server.signal(nix::sys::signal::SIGTERM);
    assert!(server.wait().success());
    let server = Server::start_in(folder, &[("API_MODE", "crud")]);
    let take =
        |query: &str| server.patch(&format!("/clusters/c00001{query}"), &json!({"cluster_dns": "c00000.example"}));
    assert_eq!(code(&take("")), (409, json!("protected")));
    assert_eq!(take("?allow_removals=1").status, 200);
}

#[test]
fn a_disabled_input_of_a_type_from_a_file_counts_as_removed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("types")).unwrap();
    let properties = "{id: {type: string}, enabled: {type: boolean, default: true}}";
    let text = format!("kind: feature\napiVersion: v1\nschema: {{type: object, properties: {properties}}}\n");
    std::fs::write(folder.path().join("types/feature.yaml"), text).unwrap();
    let mut seed = fleet_of(1);
    seed["features"] = json!([{"id": "mesh"}]);
    seed["clusters"][0]["features"] = json!([{"id": "mesh"}]);
    seed["clusters"][0]["deletion_protection"] = json!(true);
    std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
    let settings = [("API_MODE", "crud"), ("SEED_FILE", "seed.json"), ("RESOURCES_DIR", "types")];
    let server = Server::start_in(std::sync::Arc::new(folder), &settings);
    let disable = json!({"enabled": false});
    let plan = server.patch("/features/mesh?dry_run=true", &disable).json();
    let inputs = &plan["clusters"][0]["inputs"]["features"];
    assert_eq!((&inputs["removed"], &inputs["added"]), (&json!(["mesh"]), &json!([])), "{plan}");
    let refused = server.patch("/features/mesh", &disable);
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
}

#[test]
fn a_patch_in_plain_json_does_not_shorten_a_list_of_references() {
    let server = Server::crud_with(&fleet_of(2));
    let before = polls(&server, "c00000.example");
    let one = json!({"platform_components": [{"id": "app", "oci_tag": "v2"}]});
    for (path, body) in [
        ("/clusters/c00000", one.clone()),
        ("/clusters/c00000", json!({"namespaces": null})),
        ("/clusters?all=true", json!({"namespaces": null})),
        ("/clusters?all=true", json!({"namespaces": [{"id": "shared", "$patch": "delete"}]})),
    ] {
        let answer = server.patch(path, &body);
        assert_eq!(code(&answer), (415, json!("ambiguous-patch")), "{path} {body}: {}", answer.body);
        let types = if path.contains('?') {
            "application/strategic-merge-patch+json"
        } else {
            "application/merge-patch+json, application/strategic-merge-patch+json"
        };
        assert_eq!(answer.headers["accept-patch"], types);
        let detail = answer.json()["detail"].to_string();
        assert!(types.split(", ").all(|media| detail.contains(media)), "{detail}");
        assert_eq!(detail.contains("application/merge-patch"), !path.contains('?'), "{detail}");
    }
    // Without a media type it is plain JSON too.
    let headers = [("authorization", "Bearer write-token")];
    let answer = server.exchange("PATCH", "/clusters/c00000", &headers, Some(one.to_string()));
    assert_eq!(code(&answer), (415, json!("ambiguous-patch")), "{}", answer.body);
    assert_eq!(polls(&server, "c00000.example"), before);

    let merged = server.write("PATCH", "/clusters/c00000", &one, &[STRATEGIC]);
    assert_eq!(merged.json()["platform_components"], json!([{"id": "base"}, {"id": "app", "oci_tag": "v2"}]));
    let plain = json!({"namespaces": [{"id": "unused"}, {"id": "shared"}], "patches": {"app": {"a": "b"}}});
    assert_eq!(server.patch("/clusters/c00000", &plain).status, 200, "a list that grows is not ambiguous");
    assert_eq!(server.patch("/clusters?all=true", &one).status, 200, "here a list is merged, and nothing is removed");
    let shortened = server.write("PATCH", "/clusters/c00000", &json!({"namespaces": []}), &[MERGE]);
    assert_eq!((shortened.status, &shortened.json()["namespaces"]), (200, &json!([])));
}

/// The same ids with fewer fields: a merge patch drops the others, a strategic merge patch keeps them.
#[test]
fn a_patch_in_plain_json_drops_no_overrides_of_a_reference() {
    let server = Server::crud_with(&fleet_of(1));
    let put = server.put("/clusters/c00000/platform_components/app", &json!({"component_path": "ha", "enabled": true}));
    assert_eq!(put.status, 200, "{}", put.body);
    let before = polls(&server, "c00000.example");
    let body = |app: Value| json!({"platform_components": [{"id": "base"}, app]});
    let same_ids = body(json!({"id": "app"}));
    for changed in [same_ids.clone(), body(json!({"id": "app", "oci_tag": "v2"}))] {
        let refused = server.patch("/clusters/c00000", &changed);
        assert_eq!(code(&refused), (415, json!("ambiguous-patch")), "{changed}: {}", refused.body);
        assert!(refused.json()["detail"].as_str().unwrap().contains("\"app\""), "{}", refused.body);
        let types = "application/merge-patch+json, application/strategic-merge-patch+json";
        assert_eq!(refused.headers["accept-patch"], types);
    }
    assert_eq!(polls(&server, "c00000.example"), before);
    // Where both mean the same, nothing is asked: all that the reference says is said again, in whatever order, or more.
    for agreed in [
        json!({"id": "app", "component_path": "ha"}),
        json!({"id": "app", "component_path": "ha", "oci_tag": null, "enabled": true}),
        json!({"id": "app", "component_path": "ha", "oci_tag": "v2"}),
    ] {
        assert_eq!(server.patch("/clusters/c00000", &body(agreed.clone())).status, 200, "{agreed}");
    }
    let kept = server.write("PATCH", "/clusters/c00000", &same_ids, &[STRATEGIC]).json();
    assert_eq!(kept["platform_components"][1]["component_path"], json!("ha"), "{kept}");
    let dropped = server.write("PATCH", "/clusters/c00000", &same_ids, &[MERGE]).json();
    assert_eq!(dropped["platform_components"][1], json!({"id": "app"}), "{dropped}");
}

/// While an answer is refused, Flux keeps the objects of an earlier answer: to empty the list then would delete them.
#[test]
fn a_list_whose_answer_is_refused_counts_as_running() {
    let mut seed = fleet_of(1);
    seed["clusters"][0]["deletion_protection"] = json!(true);
    seed["clusters"][0]["namespaces"] = json!([{"id": "lost"}, {"id": "gone"}]);
    let server = Server::crud_with(&seed);
    assert_eq!(code(&server.poll("c00000.example", "namespaces")), (500, json!("no-definitions")));
    let empty = json!({"namespaces": []});
    let plan = server.write("PATCH", "/clusters/c00000?dry_run=true", &empty, &[MERGE]).json();
    assert_eq!(plan["clusters"][0]["inputs"]["namespaces"]["removed"], json!(["gone", "lost"]), "{plan}");
    let refused = server.write("PATCH", "/clusters/c00000", &empty, &[MERGE]);
    assert_eq!(code(&refused), (409, json!("protected")));
    assert_eq!(code(&server.poll("c00000.example", "namespaces")), (500, json!("no-definitions")));
}
