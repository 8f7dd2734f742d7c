//! Resource types that a file adds: they are added without acceptance, and removed, or take over a path or a list, only with it.

use std::{fs, path::Path, sync::Arc};

use model::Value;
use serde_json::json;
use tempfile::TempDir;

use super::{DNS, SERVED, changed, digest, files, fleet_on_disk, start, statuses, stop};
use crate::harness::{Server, repository};

/// The file of an additional type.
const POLICY: &str = "kind: network_policy\napiVersion: v1\nschema: {type: object, properties: {id: {type: string}}}\n";

#[test]
fn a_server_without_the_file_of_a_recorded_type_removes_none_of_its_lists() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("types");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("network_policy.yaml"), POLICY).unwrap();
    let good = start(&folder, directory.to_str());
    good.wait_until("it is recorded", || good.get_open("/ready").json()["revision"] == json!(2));
    assert_eq!(good.post("/network_policies", &json!({"id": "deny"})).status, 201);
    assert_eq!(good.put("/clusters/c00000/network_policies/deny", &json!({})).status, 200);
    let before = good.poll(DNS, "network-policies").json();
    assert_eq!(before["inputs"].as_array().map(Vec::len), Some(1));

    let bad = start(&folder, None);
    assert_eq!(policies(&bad), changed());
    assert_eq!(bad.get_open("/ready").json()["types_changed"], json!(["network-policies"]));
    let problems = bad.get("/problems?rule=types-changed").json();
    assert_eq!(problems[0]["id"], json!("network_policy"), "{problems}");
    let mut whole = bad.get("/clusters/c00000").json();
    whole.as_object_mut().unwrap().shift_remove("network_policies");
    for answer in [
        bad.write("PUT", "/clusters/c00000", &whole, &[]),
        bad.write(
            "PATCH",
            "/clusters/c00000",
            &json!({"network_policies": null}),
            &[("content-type", "application/merge-patch+json")],
        ),
    ] {
        assert!(!(200..300).contains(&answer.status), "{}", answer.body);
    }
    assert_eq!(good.poll(DNS, "network-policies").json(), before);
    for answer in [
        bad.patch("/clusters/c00001", &json!({"environment": "qa"})),
        bad.post("/namespaces", &json!({"id": "other"})),
        bad.delete("/clusters/c00000"),
        bad.post(
            "/clusters?dry_run=true",
            &json!({"id": "n", "cluster_name": "n", "cluster_dns": DNS, "environment": "x"}),
        ),
    ] {
        let code = answer.json()["code"].clone();
        assert_eq!((answer.status, code), changed(), "its plans would not count the type: {}", answer.body);
    }

    // Once the removal of the type is accepted, the list may be deleted.
    let found = bad.get("/types/changes").json();
    let accept = format!("/types/accept?expected_revision={}&expected_changes={}", found["revision"], digest(&found));
    assert_eq!(bad.post(&accept, &json!({})).status, 200);
    let patch = bad.write(
        "PATCH",
        "/clusters/c00000",
        &json!({"network_policies": null}),
        &[("content-type", "application/merge-patch+json")],
    );
    assert_eq!(patch.status, 200, "{}", patch.body);
}

#[test]
fn an_added_type_is_served_and_recorded_without_acceptance() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("added");
    fs::create_dir_all(&directory).unwrap();
    let text = "kind: network_policy\napiVersion: v1\nschema: {type: object, properties: {id: {type: string}}}\n";
    fs::write(directory.join("network_policy.yaml"), text).unwrap();
    let server = start(&folder, directory.to_str());
    assert_eq!(server.poll(DNS, "network-policies").status, 200);
    server.wait_until("it is recorded", || server.get_open("/ready").json()["revision"] == json!(2));
    let change = server.get("/changes/2").json();
    assert_eq!((&change["actor"], &change["writes"][0]["id"]), (&json!("resource-types"), &json!("network_policy")));
    assert_eq!(server.get("/types/changes").json()["changes"], json!([]));
    // An added field is recorded without acceptance too.
    let text = text.replace("id: {type: string}", "id: {type: string}, more: {type: string}");
    stop(server);
    fs::write(directory.join("network_policy.yaml"), text).unwrap();
    let server = start(&folder, directory.to_str());
    assert_eq!(server.poll(DNS, "network-policies").status, 200);
    server.wait_until("it is recorded too", || server.get_open("/ready").json()["revision"] == json!(3));
    assert_eq!(server.get("/changes/3").json()["writes"][0]["after"]["fields"], json!(["more"]));
}

/// A directory with one file: a type with these keys in `x-flux`.
fn policy(folder: &TempDir, name: &str, kind: &str, words: &str, properties: &str) -> String {
    let directory = folder.path().join(name);
    fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "kind: {kind}\napiVersion: v1\nschema: {{type: object, x-flux: {{{words}}}, properties: {{id: {{type: string}}{properties}}}}}\n"
    );
    fs::write(directory.join("type.yaml"), text).unwrap();
    directory.to_str().unwrap().to_owned()
}

/// A fleet with two network policies, to which a protected cluster refers; and the directory of the type.
fn fleet_with_policies() -> (Arc<TempDir>, String) {
    let folder = fleet_on_disk();
    let files = policy(&folder, "policies", "network_policy", "", "");
    let server = start(&folder, Some(&files));
    server.wait_until("it is recorded", || server.get_open("/ready").json()["revision"] == json!(2));
    for id in ["deny", "allow"] {
        assert_eq!(server.post("/network_policies", &json!({ "id": id })).status, 201);
        assert_eq!(server.put(&format!("/clusters/c00000/network_policies/{id}"), &json!({})).status, 200);
    }
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": true})).status, 200);
    stop(server);
    (folder, files)
}

/// Accepts the type changes of this server's files; returns them.
fn accept_all(server: &Server, query: &str) -> Value {
    let found = server.get("/types/changes").json();
    let path =
        format!("/types/accept?expected_revision={}&expected_changes={}{query}", found["revision"], digest(&found));
    let accepted = server.post(&path, &json!({}));
    assert_eq!(accepted.status, 200, "{}", accepted.body);
    found
}

fn policies(server: &Server) -> (u16, Value) {
    let answer = server.poll(DNS, "network-policies");
    (answer.status, answer.json()["code"].clone())
}

fn merge(server: &Server, query: &str, patch: &Value) -> crate::harness::Answer {
    let path = format!("/clusters/c00000{query}");
    server.write("PATCH", &path, patch, &[("content-type", "application/merge-patch+json")])
}

#[test]
fn a_type_whose_removal_was_accepted_is_not_served_by_servers_with_its_file() {
    let (folder, files) = fleet_with_policies();
    let replica = Server::start_in(folder.clone(), &[("API_MODE", "read-only"), ("RESOURCES_DIR", &files)]);
    let writer = start(&folder, Some(&files));
    let without = start(&folder, None);
    assert_eq!((policies(&replica), policies(&writer)), (SERVED, SERVED));
    accept_all(&without, "");
    assert_eq!(without.get("/types/changes").json()["changes"], json!([]), "the missing file is accepted");
    assert_eq!(without.patch("/clusters/c00001", &json!({"environment": "qa"})).status, 200);
    let revision = without.get_open("/ready").json()["revision"].clone();
    for server in [&replica, &writer] {
        server.wait_until("it sees the acceptance", || server.get_open("/ready").json()["revision"] == revision);
        assert_eq!(policies(server), changed());
    }
    stop(writer);
    let writer = start(&folder, Some(&files));
    assert_eq!(policies(&writer), changed(), "it does not record the type after a restart either");
    assert_eq!(writer.get_open("/ready").json()["revision"], revision);
    let found = accept_all(&writer, "");
    assert_eq!(found["changes"][0]["recorded"]["retired"], json!(true), "{found}");
    assert_eq!(policies(&writer), SERVED);
    replica.wait_until("the replica serves it again", || policies(&replica) == SERVED);
}

#[test]
fn a_type_that_takes_over_a_path_or_a_list_needs_acceptance() {
    for (kind, words) in [
        ("successor", "path: network-policies"),
        ("successor", "list: network_policies"),
        ("network_policy", "plural: others"),
    ] {
        let (folder, _) = fleet_with_policies();
        let without = start(&folder, None);
        accept_all(&without, "");
        stop(without);
        let server = start(&folder, Some(&policy(&folder, "next", kind, words, "")));
        let found = server.get("/types/changes").json();
        assert_eq!(found["changes"][0]["change"], json!("changed"), "{kind} {words}: {found}");
        assert_eq!(found["changes"].as_array().unwrap().len(), 1, "{found}");
        if words.starts_with("path") {
            assert_eq!(policies(&server), changed());
        }
        accept_all(&server, "&allow_removals=9");
        assert_eq!(server.get("/types/changes").json()["changes"], json!([]), "{kind} {words}");
    }
}

/// The list of a removed type still records what its clients have, until another type reads that list.
#[test]
fn the_plan_for_a_type_that_takes_over_the_list_of_a_removed_type_counts_its_inputs() {
    let (folder, _) = fleet_with_policies();
    let without = start(&folder, None);
    let found = accept_all(&without, "");
    assert_eq!(found["plan"]["clusters"], json!([]), "the path is 404, and the list still exists: {found}");
    stop(without);
    let server = start(&folder, Some(&policy(&folder, "next", "successor", "list: network_policies", "")));
    let found = server.get("/types/changes").json();
    let removed = &found["plan"]["clusters"][0]["inputs"]["network-policies"]["removed"];
    assert_eq!(removed, &json!(["allow", "deny"]), "{found}");
    assert_eq!(found["plan"]["refused"]["removed"], json!(2), "{found}");
}

#[test]
fn a_former_path_is_taken_over_only_by_acceptance_and_the_plan_counts_its_inputs() {
    let (folder, _) = fleet_with_policies();
    let moved = policy(&folder, "moved", "network_policy", "path: policies", "");
    let server = start(&folder, Some(&moved));
    accept_all(&server, "&allow_removals=2");
    assert_eq!((policies(&server).0, server.poll(DNS, "policies").status), (404, 200));
    stop(server);
    let text = "kind: successor\napiVersion: v1\nschema: {type: object, x-flux: {path: network-policies}, properties: {id: {type: string}}}\n";
    fs::write(folder.path().join("moved/successor.yaml"), text).unwrap();
    let server = start(&folder, Some(&moved));
    assert_eq!(policies(&server), changed());
    let found = server.get("/types/changes").json();
    let removed = &found["plan"]["clusters"][0]["inputs"]["network-policies"]["removed"];
    assert_eq!(removed, &json!(["allow", "deny"]), "{found}");
    assert_eq!(found["plan"]["refused"]["removed"], json!(2), "{found}");
    accept_all(&server, "&allow_removals=2");
    assert_eq!(policies(&server), SERVED);
    let records = server.get(&format!("/changes/{}", server.get_open("/ready").json()["revision"])).json();
    let record = |id: &str| records["writes"].as_array().unwrap().iter().find(|it| it["id"] == id).cloned();
    assert_eq!(record("network_policy").unwrap()["after"].get("former_paths"), None, "{records}");
    assert_eq!(record("successor").unwrap()["after"]["path"], json!("network-policies"));
}

#[test]
fn references_in_an_unread_list_count_as_removed_when_the_list_is_deleted() {
    let (folder, _) = fleet_with_policies();
    let moved = policy(
        &folder,
        "moved",
        "network_policy",
        "list: policies, path: network-policies, plural: network_policies",
        "",
    );
    let server = start(&folder, Some(&moved));
    accept_all(&server, "&allow_removals=2");
    assert_eq!(policies(&server), (500, json!("unread-list")));
    for (patch, removed) in [
        (json!({"network_policies": null}), json!(["allow", "deny"])),
        (json!({"network_policies": null, "policies": [{"id": "deny"}]}), json!(["allow"])),
    ] {
        let plan = merge(&server, "?dry_run=true", &patch).json();
        assert_eq!(plan["clusters"][0]["inputs"]["network-policies"]["removed"], removed, "{plan}");
        let refused = merge(&server, "", &patch);
        assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("protected")), "{}", refused.body);
    }
    let all = json!({"network_policies": null, "policies": [{"id": "deny"}, {"id": "allow"}]});
    assert_eq!(merge(&server, "", &all).status, 200, "no input is lost");
    assert_eq!(policies(&server), SERVED);
}

/// A type that is not accepted must not turn a refused answer into an empty one.
#[test]
fn a_list_is_not_read_by_a_type_that_is_not_accepted_yet() {
    let (folder, _) = fleet_with_policies();
    let words = "list: others, path: network-policies, plural: network_policies";
    let moved = policy(&folder, "moved", "network_policy", words, "");
    let server = start(&folder, Some(&moved));
    accept_all(&server, "&allow_removals=2");
    assert_eq!(policies(&server), (500, json!("unread-list")));
    stop(server);
    let text = "kind: successor\napiVersion: v1\nschema: {type: object, x-flux: {list: network_policies}, properties: {id: {type: string}}}\n";
    fs::write(folder.path().join("moved/successor.yaml"), text).unwrap();
    for mode in ["read-only", "crud"] {
        let server = Server::start_in(folder.clone(), &[("API_MODE", mode), ("RESOURCES_DIR", &moved)]);
        for path in ["network-policies", "network-policies?empty=explicit"] {
            let answer = server.poll(DNS, path);
            let code = answer.json()["code"].clone();
            assert_eq!((answer.status, code), (500, json!("unread-list")), "{mode} {path}: {}", answer.body);
        }
        assert_eq!(server.poll(DNS, "successors").status, 503, "{mode}");
        // The plan shows before what the acceptance would remove, also on a read-only server.
        let plan = server.get("/types/changes").json()["plan"].clone();
        let removed = &plan["clusters"][0]["inputs"]["network-policies"]["removed"];
        assert_eq!((removed, &plan["refused"]["removed"]), (&json!(["allow", "deny"]), &json!(2)), "{mode}: {plan}");
        stop(server);
    }
}

/// Writes the file of a type with this list and path.
fn write_type(directory: &Path, kind: &str, list: &str, path: &str) {
    let text = format!(
        "kind: {kind}\napiVersion: v1\nschema: {{type: object, x-flux: {{list: {list}, path: {path}}}, properties: {{id: {{type: string}}}}}}\n"
    );
    fs::write(directory.join(format!("{kind}.yaml")), text).unwrap();
}

/// An answer that is refused since a type was removed stays refused, with any files that a server is started with.
#[test]
fn a_type_file_that_is_not_accepted_does_not_read_the_list_of_a_removed_type() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("gone");
    fs::create_dir_all(&directory).unwrap();
    write_type(&directory, "alpha", "la", "alphas");
    write_type(&directory, "beta", "lb", "pa");
    let server = start(&folder, directory.to_str());
    server.wait_until("it is recorded", || server.get("/types/changes").json()["changes"] == json!([]));
    for path in ["alphas", "betas"] {
        assert_eq!(server.post(&format!("/{path}"), &json!({"id": "s"})).status, 201);
    }
    let lists = json!({"lb": [{"id": "s"}], "deletion_protection": true});
    assert_eq!(merge(&server, "", &lists).status, 200);
    stop(server);
    fs::remove_file(directory.join("beta.yaml")).unwrap();
    write_type(&directory, "alpha", "la", "pa");
    let server = start(&folder, directory.to_str());
    let plan = server.get("/types/changes").json()["plan"].clone();
    assert_eq!(plan["clusters"][0]["inputs"]["pa"]["removed"], json!(["s"]), "{plan}");
    assert_eq!(plan["refused"]["removed"], json!(1), "{plan}");
    accept_all(&server, "&allow_removals=1");
    stop(server);
    write_type(&directory, "delta", "lb", "pd");
    for mode in ["crud", "read-only"] {
        let server =
            Server::start_in(folder.clone(), &[("API_MODE", mode), ("RESOURCES_DIR", directory.to_str().unwrap())]);
        for path in ["pa", "pa?empty=explicit"] {
            let answer = server.poll(DNS, path);
            assert_eq!(
                (answer.status, &answer.json()["code"]),
                (500, &json!("unread-list")),
                "{mode}: {}",
                answer.body
            );
        }
        stop(server);
    }
}

/// Inputs of two types may be equal for an id: Flux creates different objects for them.
#[test]
fn equal_inputs_of_different_types_are_different_inputs() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("equal");
    fs::create_dir_all(&directory).unwrap();
    write_type(&directory, "alpha", "la", "pa");
    write_type(&directory, "beta", "lb", "pb");
    let server = start(&folder, directory.to_str());
    server.wait_until("it is recorded", || server.get("/types/changes").json()["changes"] == json!([]));
    for path in ["alphas", "betas"] {
        assert_eq!(server.post(&format!("/{path}"), &json!({"id": "s"})).status, 201);
    }
    assert_eq!(merge(&server, "", &json!({"la": [{"id": "s"}], "lb": [{"id": "s"}]})).status, 200);
    stop(server);
    write_type(&directory, "alpha", "la", "pb");
    write_type(&directory, "beta", "lb", "pa");
    let server = start(&folder, directory.to_str());
    let plan = server.get("/types/changes").json()["plan"].clone();
    for path in ["pa", "pb"] {
        let inputs = &plan["clusters"][0]["inputs"][path];
        assert_eq!((&inputs["removed"], &inputs["added"]), (&json!(["s"]), &json!(["s"])), "{plan}");
    }
}

/// For one list that no type reads, other answers are refused too; the inputs that they remove later count at the acceptance.
#[test]
fn the_inputs_of_an_answer_that_is_refused_for_another_list_count_as_removed() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("three");
    fs::create_dir_all(&directory).unwrap();
    let write = |kind: &str, list: &str| write_type(&directory, kind, list, &format!("{kind}s"));
    for (kind, list) in [("alpha", "la"), ("gamma", "lb"), ("zeta", "lc")] {
        write(kind, list);
    }
    let server = start(&folder, directory.to_str());
    server.wait_until("it is recorded", || server.get("/types/changes").json()["changes"] == json!([]));
    for (path, id) in [("alphas", "s"), ("gammas", "s"), ("zetas", "x")] {
        assert_eq!(server.post(&format!("/{path}"), &json!({ "id": id })).status, 201);
    }
    let lists = json!({"la": [{"id": "s"}], "lc": [{"id": "x"}], "deletion_protection": true});
    assert_eq!(merge(&server, "", &lists).status, 200);
    stop(server);
    write("alpha", "lb");
    write("gamma", "la");
    fs::remove_file(directory.join("zeta.yaml")).unwrap();
    let server = start(&folder, directory.to_str());
    let plan = server.get("/types/changes").json()["plan"].clone();
    assert_eq!(plan["clusters"][0]["inputs"]["alphas"]["removed"], json!(["s"]), "{plan}");
    assert_eq!(plan["refused"]["removed"], json!(1), "{plan}");
}

#[test]
fn deleting_the_list_of_a_removed_type_from_a_protected_cluster_needs_allow_removals() {
    let (folder, _) = fleet_with_policies();
    let server = start(&folder, None);
    accept_all(&server, "");
    let patch = json!({"network_policies": null});
    let plan = merge(&server, "?dry_run=true", &patch).json();
    assert_eq!(
        plan["clusters"][0]["inputs"]["network-policies"]["removed"],
        json!(["allow", "deny"]),
        "under its former path: {plan}"
    );
    assert_eq!(plan["refused"]["removed"], json!(2), "{plan}");
    assert_eq!(merge(&server, "", &patch).status, 409);
    assert_eq!(merge(&server, "?allow_removals=2", &patch).status, 200);
}

#[test]
fn a_field_that_is_left_out_or_moved_or_gets_a_default_is_not_served_until_it_is_accepted() {
    let folder = fleet_on_disk();
    let good = start(&folder, None);
    let chart = json!({"id": "chart", "component_path": "p", "oci_url": "oci://registry/repo", "oci_content": "chart"});
    assert_eq!(good.post("/platform_components", &chart).status, 201);
    let plain = json!({"id": "plain", "component_path": "p", "oci_url": "oci://registry/repo"});
    assert_eq!(good.post("/platform_components", &plain).status, 201);
    for id in ["chart", "plain"] {
        assert_eq!(good.put(&format!("/clusters/c00000/platform_components/{id}"), &json!({})).status, 200);
    }
    let text = fs::read_to_string(repository("resources/platform_component.yaml")).unwrap();
    let field = "      oci_content:\n";
    assert!(text.contains(field), "{text}");
    let named: Value = good.get("/types").json();
    let ty = named.as_array().unwrap().iter().find(|ty| ty["kind"] == "platform_component").unwrap().clone();
    let names = ty["schema"]["properties"].as_object().unwrap().keys().filter(|name| *name != "oci_content");
    let only = format!("    path: platform-components\n    fields: {}\n", json!(names.collect::<Vec<_>>()));
    let path = "    path: platform-components\n".to_owned();
    for (name, old, new, removed) in [
        ("default", field.to_owned(), format!("{field}        default: chart\n"), json!(["plain"])),
        ("fields", path, only, json!(["chart"])),
        ("nest", "[oci_url, oci_tag]".to_owned(), "[oci_url, oci_tag, oci_content]".to_owned(), json!(["chart"])),
    ] {
        let directory = files(&folder, name, &[]);
        assert!(text.contains(&old));
        fs::write(folder.path().join(name).join("type.yaml"), text.replacen(&old, &new, 1)).unwrap();
        for mode in ["crud", "read-only"] {
            let bad = Server::start_in(folder.clone(), &[("API_MODE", mode), ("RESOURCES_DIR", &directory)]);
            assert_eq!(statuses(&bad), [changed(), SERVED, SERVED], "{name} {mode}");
            if mode == "crud" {
                let found = bad.get("/types/changes").json();
                let inputs = &found["plan"]["clusters"][0]["inputs"]["platform-components"];
                assert_eq!(inputs["removed"], removed, "{name}: {}", found["plan"]);
                assert_eq!(inputs["added"], removed, "{name}: a chart became an artifact, or the other way round");
            }
        }
    }
    assert_eq!(statuses(&good), [SERVED, SERVED, SERVED]);
}

#[test]
fn a_new_field_that_disables_everything_by_default_needs_acceptance() {
    let (folder, _) = fleet_with_policies();
    let text = ", enabled: {type: boolean, default: false}";
    let server = start(&folder, Some(&policy(&folder, "disabled", "network_policy", "", text)));
    assert_eq!(policies(&server), changed());
    let plan = server.get("/types/changes").json()["plan"].clone();
    assert_eq!(plan["clusters"][0]["inputs"]["network-policies"]["removed"], json!(["allow", "deny"]), "{plan}");
    assert_eq!(plan["refused"]["removed"], json!(2), "{plan}");
}

#[test]
fn a_type_that_stops_being_patchable_needs_acceptance() {
    let (folder, _) = fleet_with_policies();
    let server = start(&folder, Some(&policy(&folder, "patchable", "network_policy", "patchable: true", "")));
    assert_eq!(policies(&server), SERVED, "a field is added");
    server.wait_until("it is recorded", || server.get("/types/changes").json()["changes"] == json!([]));
    stop(server);
    let server = start(&folder, Some(&policy(&folder, "plain", "network_policy", "", "")));
    assert_eq!(policies(&server), changed());
}

#[test]
fn an_acceptance_cannot_be_reverted() {
    let (folder, _) = fleet_with_policies();
    let server = start(&folder, None);
    accept_all(&server, "");
    let head = server.get_open("/ready").json()["revision"].clone();
    let refused = server.post(&format!("/changes/{head}/revert"), &json!({}));
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("types-not-reverted")), "{}", refused.body);
}

/// Clients keep the inputs of the path that a type had at that time, also if the type has moved to another path since.
#[test]
fn inputs_of_a_released_name_count_after_their_type_moved_to_another_path() {
    const NEW: &str = "new.example";
    let release = |server: &Server| {
        assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": NEW})).status, 200);
        assert_eq!(server.delete(&format!("/clusters/c00000/former_dns/{DNS}")).status, 200);
    };
    for released_first in [true, false] {
        let (folder, files) = fleet_with_policies();
        let moved = policy(&folder, "moved", "network_policy", "path: policies", "");
        if released_first {
            let server = start(&folder, Some(&files));
            release(&server);
            stop(server);
        }
        let server = start(&folder, Some(&moved));
        accept_all(&server, "&allow_removals=9");
        let (server, path) = if released_first {
            (server, "policies")
        } else {
            release(&server);
            stop(server);
            let server = start(&folder, Some(&files));
            accept_all(&server, "&allow_removals=9");
            (server, "network-policies")
        };
        let mut two = server.get("/clusters/c00000").json();
        for field in ["network_policies", "released_dns", "deletion_protection", "former_dns"] {
            two.as_object_mut().unwrap().shift_remove(field);
        }
        for (field, value) in [("id", "two"), ("cluster_name", "two"), ("cluster_dns", DNS)] {
            two[field] = json!(value);
        }
        let plan = server.post("/clusters?dry_run=true", &two).json();
        assert_eq!(plan["clusters"][0]["inputs"][path]["removed"], json!(["allow", "deny"]), "{plan}");
        let refused = server.post("/clusters", &two);
        assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("protected")), "{}", refused.body);
    }
}
