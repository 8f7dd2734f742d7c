//! Resource types cannot change unnoticed: a server whose files have another kind, list or path than the change log does not
//! serve those types.

mod accepted_logs;
mod added;

use std::{fs, sync::Arc};

use model::Value;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    harness::{Server, repository},
    operators::fleet_of,
};

const DNS: &str = "c00000.example";
const TYPES: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

/// A fleet that was served by the built-in types, then stopped.
fn fleet_on_disk() -> Arc<TempDir> {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut seed = fleet_of(2);
    seed["rolebindings"] = json!([{"id": "admins", "role": "admin", "subjects": []}]);
    seed["clusters"][0]["rolebindings"] = json!([{"id": "admins"}]);
    fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
    stop(Server::start_in(folder.clone(), &[("API_MODE", "crud"), ("SEED_FILE", "seed.json")]));
    folder
}

fn stop(server: Server) {
    server.signal(nix::sys::signal::SIGTERM);
    assert!(server.wait().success());
}

/// A built-in file, the text that is replaced in it, and the new text.
type FileEdit = (&'static str, &'static str, &'static str);

/// A directory of resource types: built-in ones, each with a text in its file replaced.
fn files(folder: &TempDir, name: &str, edits: &[FileEdit]) -> String {
    let directory = folder.path().join(name);
    fs::create_dir_all(&directory).unwrap();
    for (file, old, new) in edits {
        let text = fs::read_to_string(repository(&format!("resources/{file}.yaml"))).unwrap();
        assert!(text.contains(old), "{file}: {old}");
        fs::write(directory.join(format!("{file}.yaml")), text.replacen(old, new, 1)).unwrap();
    }
    directory.to_str().unwrap().to_owned()
}

/// Two types that have swapped their lists.
fn swapped_lists(folder: &TempDir) -> String {
    files(
        folder,
        "swapped",
        &[
            ("namespace", "    list: namespaces\n", "    list: rolebindings\n"),
            ("rolebinding", "    list: rolebindings\n", "    list: namespaces\n"),
        ],
    )
}

fn start(folder: &Arc<TempDir>, resources: Option<&str>) -> Server {
    let mut settings = vec![("API_MODE", "crud")];
    settings.extend(resources.map(|directory| ("RESOURCES_DIR", directory)));
    Server::start_in(folder.clone(), &settings)
}

fn statuses(server: &Server) -> Vec<(u16, Value)> {
    let status = |path| {
        let answer = server.poll(DNS, path);
        (answer.status, answer.json()["code"].clone())
    };
    TYPES.map(status).into()
}

const SERVED: (u16, Value) = (200, Value::Null);

fn changed() -> (u16, Value) {
    (503, json!("types-changed"))
}

#[test]
fn the_first_change_of_a_fleet_records_its_types() {
    let server = Server::crud_with(&fleet_of(1));
    let writes = server.get("/changes/1").json()["writes"].clone();
    let records: Vec<_> = writes.as_array().unwrap().iter().filter(|it| it["kind"] == "resource_type").collect();
    let record = records.iter().find(|it| it["id"] == "namespace").unwrap();
    assert_eq!(
        record["after"],
        json!({"id": "namespace", "kind": "namespace", "list": "namespaces", "path": "namespaces", "key": "namespace_id",
            "defaults": {"labels": {}, "annotations": {}}, "fields": ["annotations", "labels"]})
    );
    assert_eq!(records.len(), 4);
    assert_eq!(server.get("/types/changes").json()["changes"], json!([]));
    assert_eq!(server.get("/problems").json(), json!([]));

    // So does the first change of a fleet without a seed.
    let blank = Server::start(&[("API_MODE", "crud")]);
    assert_eq!(blank.post("/namespaces", &json!({"id": "a"})).status, 201);
    assert_eq!(blank.get("/changes/1").json()["writes"].as_array().unwrap().len(), 5);
}

#[test]
fn types_with_swapped_lists_paths_or_kinds_are_not_served() {
    let folder = fleet_on_disk();
    let swaps: [(&str, &[FileEdit]); 3] = [
        (
            "lists",
            &[
                ("namespace", "    list: namespaces\n", "    list: rolebindings\n"),
                ("rolebinding", "    list: rolebindings\n", "    list: namespaces\n"),
            ],
        ),
        (
            "paths",
            &[
                ("namespace", "    path: namespaces\n", "    path: rolebindings\n"),
                ("rolebinding", "    path: rolebindings\n", "    path: namespaces\n"),
            ],
        ),
        (
            "kinds",
            &[
                ("namespace", "kind: namespaces\n", "kind: rolebindings\n"),
                ("rolebinding", "kind: rolebindings\n", "kind: namespaces\n"),
            ],
        ),
    ];
    for (what, edits) in swaps {
        let server = start(&folder, Some(&files(&folder, what, edits)));
        assert_eq!(statuses(&server), [SERVED, changed(), changed()], "{what}");
        for path in ["namespaces?empty=explicit", "rolebindings?empty=explicit"] {
            assert_eq!(server.poll(DNS, path).status, 503, "{what}: never the record for an empty list");
        }
        assert_eq!(server.get_open("/ready").json()["types_changed"].as_array().unwrap().len(), 2, "{what}");
        let rules: Vec<_> =
            server.get("/problems").json().as_array().unwrap().iter().map(|it| it["rule"].clone()).collect();
        assert!(rules.contains(&json!("types-changed")), "{what}: {rules:?}");
        let refused = server.patch("/clusters/c00000", &json!({"environment": "qa"}));
        assert_eq!(
            (refused.status, refused.json()["code"].clone()),
            changed(),
            "{what}: nothing is changed on wrong types"
        );
        let bundle = server.get(&format!("/api/v2/flux/clusters/{DNS}/bootstrap?api_url=https://fleet.example.com"));
        assert_eq!(bundle.status, 503, "{what}");
        stop(server);
    }
    let mended = start(&folder, None);
    assert_eq!(statuses(&mended), [SERVED, SERVED, SERVED]);
    assert_eq!(mended.get_open("/ready").json().get("types_changed"), None);
}

#[test]
fn a_replica_with_other_type_files_refuses_the_changed_types_and_other_replicas_serve_them() {
    let folder = fleet_on_disk();
    let good = start(&folder, None);
    let swapped = swapped_lists(&folder);
    let bad = Server::start_in(folder.clone(), &[("API_MODE", "read-only"), ("RESOURCES_DIR", &swapped)]);
    assert_eq!(statuses(&good), [SERVED, SERVED, SERVED]);
    assert_eq!(statuses(&bad), [SERVED, changed(), changed()]);
}

#[test]
fn a_renamed_kind_that_takes_over_a_path_is_not_served() {
    let folder = fleet_on_disk();
    let directory = folder.path().join("renamed");
    fs::create_dir_all(&directory).unwrap();
    // Another kind takes the list and the path of namespaces, whose own type gets other ones.
    let text = fs::read_to_string(repository("resources/namespace.yaml")).unwrap();
    let own = text.replacen("kind: namespaces\n", "kind: namespace\n", 1);
    let own = own.replacen(
        "    path: namespaces\n    list: namespaces\n",
        "    plural: old_namespaces\n    path: old-namespaces\n    list: old_namespaces\n",
        1,
    );
    fs::write(directory.join("namespace.yaml"), own).unwrap();
    fs::write(directory.join("space.yaml"), text.replacen("kind: namespaces\n", "kind: spaces\n", 1)).unwrap();
    let server = start(&folder, Some(directory.to_str().unwrap()));
    assert_eq!(statuses(&server), [SERVED, changed(), SERVED]);
    assert_eq!(server.poll(DNS, "old-namespaces").status, 503);
}

#[test]
fn an_operator_reviews_what_clusters_would_lose_and_accepts() {
    let folder = fleet_on_disk();
    let server = start(&folder, Some(&swapped_lists(&folder)));
    let found = server.get("/types/changes").json();
    assert_eq!(found["changes"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["changes"][0]["recorded"]["list"], json!("namespaces"));
    assert_eq!(found["changes"][0]["declared"]["list"], json!("rolebindings"));
    // Under these files the references of each list name documents of the other type, which is an error and deletes nothing.
    assert_eq!(found["plan"]["documents"].as_array().unwrap().len(), 2);

    let revision = found["revision"].as_u64().unwrap();
    assert_eq!(server.post("/types/accept", &json!({})).status, 400, "the request has to name the reviewed plan");
    let accept =
        |revision: u64| format!("/types/accept?expected_revision={revision}&expected_changes={}", digest(&found));
    assert_eq!(server.post(&accept(revision + 7), &json!({})).status, 412);
    let plan = server.post("/types/accept?dry_run=true", &json!({}));
    assert_eq!((plan.status, plan.json()), (200, found["plan"].clone()));
    let accepted = server.post(&accept(revision), &json!({}));
    assert_eq!((accepted.status, accepted.json()["revision"].as_u64()), (200, Some(revision + 1)), "{}", accepted.body);
    assert_eq!(server.get("/types/changes").json()["changes"], json!([]));
    let heading = server.get(&format!("/changes/{}", revision + 1)).json();
    assert_eq!((&heading["actor"], heading["writes"].as_array().unwrap().len()), (&json!("crud-auth-token"), 2));
    stop(server);
    let others = start(&folder, None);
    assert_eq!(
        statuses(&others)[1..],
        [changed(), changed()],
        "a replica with the old files is the one that differs now"
    );
}

/// A reference without `enabled` is enabled by default.
#[test]
fn a_default_that_changed_its_value_is_not_served_until_it_is_accepted() {
    let folder = fleet_on_disk();
    let good = start(&folder, None);
    let extra = json!({"id": "extra", "component_path": "p", "oci_url": "oci://registry/repo", "depends_on": []});
    let created = good.post("/platform_components", &extra);
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(good.put("/clusters/c00000/platform_components/extra", &json!({})).status, 200);
    let enabled = |answer: &Value| {
        let inputs = answer["inputs"].as_array().unwrap();
        inputs.iter().find(|it| it["id"] == "extra").unwrap()["enabled"].clone()
    };
    let before = good.poll(DNS, "platform-components").json();
    assert_eq!(enabled(&before), json!(true));
    let off = (
        "default: true\n              description: false makes",
        "default: false\n              description: false makes",
    );
    let flipped = files(&folder, "flipped", &[("cluster", off.0, off.1)]);
    let bad = start(&folder, Some(&flipped));
    assert_eq!(statuses(&bad), [changed(), SERVED, SERVED]);
    assert_eq!(good.poll(DNS, "platform-components").json(), before);
    let found = bad.get("/types/changes").json();
    let removed = &found["plan"]["clusters"][0]["inputs"]["platform-components"]["removed"];
    assert_eq!(removed, &json!(["app", "base", "extra"]), "disabled inputs count as removed: {found}");
    let accept = format!("/types/accept?expected_revision={}&expected_changes={}", found["revision"], digest(&found));
    assert_eq!(bad.post(&accept, &json!({})).status, 200);
    assert_eq!(enabled(&bad.poll(DNS, "platform-components").json()), json!(false));
    good.wait_until("the other server sees it", || statuses(&good) == [changed(), SERVED, SERVED]);
}

/// The list of clusters is polled too, by whoever provisions them.
#[test]
fn the_list_of_clusters_is_not_served_in_another_way_until_that_is_accepted() {
    let folder = fleet_on_disk();
    let good = start(&folder, None);
    let before = good.get("/api/v2/flux/clusters").json();
    let edits: [&[FileEdit]; 2] = [
        &[(
            "cluster",
            "    fields: [id, cluster_name, cluster_dns, environment]\n",
            "    fields: [id, cluster_name, cluster_dns]\n",
        )],
        &[("cluster", "    fields: [id, ", "    nest: {names: [cluster_name, cluster_dns]}\n    fields: [id, ")],
    ];
    for (at, edits) in edits.into_iter().enumerate() {
        let server = start(&folder, Some(&files(&folder, &format!("clusters{at}"), edits)));
        let refused = server.get("/api/v2/flux/clusters");
        assert_eq!((refused.status, refused.json()["code"].clone()), changed(), "{}", refused.body);
        assert_eq!(server.get_open("/ready").json()["types_changed"], json!(["clusters"]));
        assert_eq!(statuses(&server), [SERVED, SERVED, SERVED]);
        let found = server.get("/types/changes").json();
        assert_eq!(found["changes"][0]["recorded"]["kind"], json!("cluster"), "{found}");
        let listed = &found["plan"]["clusters"][0]["inputs"]["clusters"];
        assert_eq!(listed, &json!({"added": ["c00000"], "changed": [], "removed": ["c00000"]}), "{found}");
        assert_eq!(good.get("/api/v2/flux/clusters").json(), before);
        if at == 1 {
            let accept =
                format!("/types/accept?expected_revision={}&expected_changes={}", found["revision"], digest(&found));
            assert_eq!(server.post(&accept, &json!({})).status, 200);
            let first = server.get("/api/v2/flux/clusters").json()["inputs"][0].clone();
            assert_eq!(first["names"]["cluster_dns"], json!(DNS), "{first}");
            good.wait_until("the other server sees it", || good.get("/api/v2/flux/clusters").status == 503);
        }
        stop(server);
    }
}

/// A change log of an older version says nothing of the list of clusters.
#[test]
fn a_change_log_without_a_record_of_the_cluster_type_is_completed() {
    let folder = fleet_on_disk();
    crate::harness::append(
        &folder.path().join("data/flux-resourceset.db"),
        &[("resource_type", "cluster", model::Op::Remove)],
    );
    let server = start(&folder, None);
    server.wait_until("it is recorded", || server.get_open("/ready").json()["revision"] == json!(3));
    assert_eq!(server.get("/types/changes").json()["changes"], json!([]));
    assert_eq!(server.get("/api/v2/flux/clusters").status, 200);
}

#[test]
fn a_type_does_not_lose_the_order_of_its_inputs_unasked() {
    let folder = fleet_on_disk();
    let server =
        start(&folder, Some(&files(&folder, "free", &[("platform_component", "    ordered_by: depends_on\n", "")])));
    assert_eq!(statuses(&server), [changed(), SERVED, SERVED]);
    let found = server.get("/types/changes").json();
    assert_eq!(found["changes"][0]["recorded"]["ordered_by"], json!("depends_on"), "{found}");
    let changed_inputs = &found["plan"]["clusters"][0]["inputs"]["platform-components"]["changed"];
    assert_eq!(changed_inputs, &json!(["app", "base"]), "{found}");
}

#[test]
fn an_added_field_is_recorded_and_servers_without_it_stop_serving_the_type() {
    let folder = fleet_on_disk();
    let old = start(&folder, None);
    let more = ("    properties:\n", "    properties:\n      tier: {type: string, default: low}\n");
    let new = start(&folder, Some(&files(&folder, "more", &[("namespace", more.0, more.1)])));
    new.wait_until("it is recorded", || new.get_open("/ready").json()["revision"] == json!(2));
    assert_eq!(new.get("/changes/2").json()["writes"][0]["after"]["defaults"]["tier"], json!("low"));
    assert_eq!(statuses(&new), [SERVED, SERVED, SERVED]);
    // It is not known what a template renders for an input without the field.
    old.wait_until("the other server sees it", || statuses(&old) == [SERVED, changed(), SERVED]);
    assert_eq!(new.poll(DNS, "namespaces").json()["inputs"][0]["tier"], json!("low"));
}

fn digest(found: &Value) -> &str {
    found["digest"].as_str().unwrap()
}

/// As behind one address while replicas are replaced one by one.
#[test]
fn changes_reviewed_on_one_server_are_not_accepted_on_another_with_other_files() {
    let folder = fleet_on_disk();
    let seen_on = start(&folder, Some(&swapped_lists(&folder)));
    let paths = files(
        &folder,
        "paths",
        &[
            ("namespace", "    path: namespaces\n", "    path: rolebindings\n"),
            ("rolebinding", "    path: rolebindings\n", "    path: namespaces\n"),
        ],
    );
    let others = [start(&folder, Some(&paths)), start(&folder, None)];
    let found = seen_on.get("/types/changes").json();
    let accept = format!("/types/accept?expected_revision={}&expected_changes={}", found["revision"], digest(&found));
    for (other, served) in others.iter().zip([changed(), SERVED]) {
        for path in [accept.clone(), format!("{accept}&dry_run=true")] {
            let answer = other.post(&path, &json!({}));
            assert_eq!((answer.status, answer.json()["code"].clone()), (412, json!("other-type-changes")), "{path}");
        }
        assert_eq!(statuses(other)[1..], [served.clone(), served]);
    }
    assert_eq!(seen_on.post(&accept, &json!({})).status, 200);
    assert_eq!(seen_on.post(&accept, &json!({})).status, 412, "it is accepted once");
}

#[test]
fn the_plan_of_an_acceptance_counts_what_clusters_lose() {
    let folder = fleet_on_disk();
    let paths = files(
        &folder,
        "paths",
        &[
            ("namespace", "    path: namespaces\n", "    path: rolebindings\n"),
            ("rolebinding", "    path: rolebindings\n", "    path: namespaces\n"),
        ],
    );
    let server = start(&folder, Some(&paths));
    let plan = server.get("/types/changes").json()["plan"].clone();
    // Each cluster would get role bindings instead of namespaces, and the other way round.
    let totals = &plan["totals"];
    assert_eq!((&totals["dev"]["removed"], &totals["prod"]["removed"]), (&json!(2), &json!(1)), "{plan}");
    let namespaces = &plan["clusters"][0]["inputs"]["namespaces"];
    assert_eq!((&namespaces["removed"], &namespaces["added"]), (&json!(["shared"]), &json!(["admins"])), "{plan}");
}

/// While an answer is refused, Flux keeps the objects of the last one, and deletes them at the next answer on that path. By then
/// the list that named them belongs to another type, so only the plan of the acceptance can count them.
#[test]
fn the_plan_of_an_acceptance_counts_inputs_that_no_later_plan_can_count() {
    let folder = fleet_on_disk();
    let server = start(&folder, None);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": true})).status, 200);
    stop(server);
    let server = start(&folder, Some(&swapped_lists(&folder)));
    let found = server.get("/types/changes").json();
    let inputs = &found["plan"]["clusters"][0]["inputs"];
    let removed = (&inputs["namespaces"]["removed"], &inputs["rolebindings"]["removed"]);
    assert_eq!(removed, (&json!(["shared"]), &json!(["admins"])), "{found}");
    let accept = format!("/types/accept?expected_revision=2&expected_changes={}", digest(&found));
    let refused = server.post(&accept, &json!({}));
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("protected")), "{}", refused.body);
    assert_eq!(server.post(&format!("{accept}&allow_removals=2"), &json!({})).status, 200);
    let refused = server.poll(DNS, "namespaces");
    assert_eq!((refused.status, &refused.json()["code"]), (500, &json!("unread-definition")), "{}", refused.body);
}

#[test]
fn an_acceptance_that_removes_inputs_from_a_protected_cluster_needs_allow_removals() {
    let folder = fleet_on_disk();
    let server = start(&folder, None);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": true})).status, 200);
    stop(server);
    let paths = files(
        &folder,
        "paths",
        &[
            ("namespace", "    path: namespaces\n", "    path: rolebindings\n"),
            ("rolebinding", "    path: rolebindings\n", "    path: namespaces\n"),
        ],
    );
    let server = start(&folder, Some(&paths));
    let found = server.get("/types/changes").json();
    assert_eq!(found["plan"]["refused"]["clusters"], json!([{"id": "c00000", "removed": 2}]), "{found}");
    let accept = |query: &str| {
        let path = format!("/types/accept?expected_revision=2&expected_changes={}{query}", digest(&found));
        server.post(&path, &json!({}))
    };
    let refused = accept("");
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("protected")), "{}", refused.body);
    assert_eq!(accept("&allow_removals=1").status, 409);
    let plan = accept("&dry_run=true&allow_removals=2");
    assert_eq!((plan.status, plan.json().get("refused")), (200, None), "{}", plan.body);
    assert_eq!(accept("&allow_removals=2").status, 200);
}
