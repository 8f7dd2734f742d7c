//! A released DNS name: clients that poll under it get 404 and keep everything, so the inputs that they had are counted when a
//! cluster answers there again, also if the cluster that released it was changed or deleted.

use model::Value;
use serde_json::json;

use crate::{
    harness::{Answer, Server, put},
    operators::fleet_of,
};

const OLD: &str = "c00000.example";
const MERGE: [(&str, &str); 1] = [("content-type", "application/merge-patch+json")];

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

fn rule(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["errors"][0]["rule"].clone())
}

fn new_cluster(id: &str, dns: &str) -> Value {
    json!({"id": id, "cluster_name": id, "cluster_dns": dns, "environment": "dev"})
}

/// Gives the first cluster another name, and releases its old one.
fn move_to(server: &Server, name: &str) {
    let had = server.get("/clusters/c00000").json()["cluster_dns"].clone();
    assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": name})).status, 200, "{name}");
    let released = server.delete(&format!("/clusters/c00000/former_dns/{}", had.as_str().unwrap()));
    assert_eq!(released.status, 200, "{}", released.body);
}

/// A fleet of two whose first cluster has released the name [`OLD`]; its pollers have two components and a namespace.
fn released_of(protected: bool) -> Server {
    let mut seed = fleet_of(2);
    seed["clusters"][0]["deletion_protection"] = json!(protected);
    let server = Server::crud_with(&seed);
    move_to(&server, "new.example");
    assert_eq!(server.poll(OLD, "namespaces").status, 404);
    server
}

fn released() -> Server {
    released_of(false)
}

/// What the plan of a change removes from a cluster: components and namespaces.
fn removed(plan: &Answer, cluster: &str) -> (Value, Value) {
    let plan = plan.json();
    let clusters = plan["clusters"].as_array().unwrap_or_else(|| panic!("{plan}"));
    let inputs = clusters.iter().find(|it| it["id"] == cluster).map_or(Value::Null, |it| it["inputs"].clone());
    (inputs["platform-components"]["removed"].clone(), inputs["namespaces"]["removed"].clone())
}

fn everything() -> (Value, Value) {
    (json!(["app", "base"]), json!(["shared"]))
}

fn empty(server: &Server) {
    let lists = json!({"platform_components": [], "namespaces": []});
    assert_eq!(server.write("PATCH", "/clusters/c00000?allow_removals=3", &lists, &MERGE).status, 200);
}

#[test]
fn a_released_name_is_recorded_with_the_inputs_of_its_pollers() {
    let server = released();
    let components = json!({"app": "platform_component of chart app", "base": "platform_component of chart base"});
    let entry =
        json!({"name": OLD, "inputs": {"namespaces": {"shared": "namespace []"}, "platform-components": components}});
    let names = |server: &Server| server.get("/clusters/c00000").json()["released_dns"].clone();
    assert_eq!(names(&server), json!([entry]));
    // No write changes it.
    empty(&server);
    let mut body = server.get("/clusters/c00000").json();
    body["released_dns"] = json!([{"name": OLD, "inputs": {}}]);
    assert_eq!(server.put("/clusters/c00000", &body).status, 200);
    assert_eq!(server.patch("/clusters/c00000", &json!({"released_dns": null})).status, 200);
    assert_eq!(names(&server), json!([entry]));
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    assert_eq!(server.post("/clusters/c00000/restore", &json!({})).status, 200);
    assert_eq!(names(&server), json!([entry]));
    // Once it is the cluster's name again, it is no longer a released one.
    assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": OLD})).status, 200);
    assert_eq!(names(&server), Value::Null);
}

#[test]
fn inputs_of_a_released_name_count_after_its_cluster_was_decommissioned() {
    let server = released();
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    let plan = server.post("/clusters?dry_run=true", &new_cluster("heir", OLD));
    assert_eq!(removed(&plan, "heir"), everything(), "{}", plan.body);
    // The same id, created again at the name that it had released.
    let plan = server.post("/clusters?dry_run=true", &new_cluster("c00000", OLD));
    assert_eq!(removed(&plan, "c00000"), everything(), "{}", plan.body);
    // Inputs that the new owner has too are not lost.
    let mut heir = new_cluster("heir", OLD);
    heir["namespaces"] = json!([{"id": "shared"}]);
    let plan = server.post("/clusters?dry_run=true", &heir);
    assert_eq!(removed(&plan, "heir"), (json!(["app", "base"]), json!([])), "{}", plan.body);
    assert_eq!(server.post("/clusters", &heir).status, 201);
}

#[test]
fn inputs_of_a_released_name_count_after_its_cluster_was_emptied() {
    let server = released();
    empty(&server);
    let plan = server.patch("/clusters/c00001?dry_run=true", &json!({"cluster_dns": OLD}));
    assert_eq!(removed(&plan, "c00001"), (json!([]), json!([])), "c00001 has the same: {}", plan.body);
    let plan = server.post("/clusters?dry_run=true", &new_cluster("heir", OLD));
    assert_eq!(removed(&plan, "heir"), everything(), "{}", plan.body);
    let back = server.patch("/clusters/c00000?dry_run=true", &json!({"cluster_dns": OLD}));
    assert_eq!(removed(&back, "c00000"), everything(), "{}", back.body);
}

#[test]
fn a_released_name_stays_protected_after_the_protection_of_its_cluster_was_lifted() {
    let server = released_of(true);
    assert_eq!(server.get("/clusters/c00000").json()["released_dns"][0]["protected"], json!(true));
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": false})).status, 200);
    empty(&server);
    let take = |query: &str| server.post(&format!("/clusters{query}"), &new_cluster("heir", OLD));
    assert_eq!(code(&take("")), (409, json!("protected")));
    let back = server.patch("/clusters/c00000", &json!({"cluster_dns": OLD}));
    assert_eq!(code(&back), (409, json!("protected")), "{}", back.body);
    assert!(back.json()["detail"].as_str().unwrap().contains("3 from \"c00000\""), "{}", back.body);
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    let refused = take("");
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
    assert!(refused.json()["detail"].as_str().unwrap().contains("3 from \"c00000\""), "{}", refused.body);
    assert_eq!(take("?allow_removals=3").status, 201);
}

/// A purge and a creation of the same id in one change drop the released names too.
#[test]
fn a_batch_that_purges_and_creates_a_cluster_counts_the_inputs_of_released_names() {
    let server = released_of(true);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": false})).status, 200);
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    let writes = json!({"writes": [
        {"op": "purge", "id": "c00000"},
        {"op": "put", "kind": "cluster", "id": "c00000", "body": new_cluster("c00000", "new.example")},
    ]});
    let plan = server.post("/batch?dry_run=true", &writes);
    assert_eq!(removed(&plan, "c00000"), everything(), "{}", plan.body);
    assert_eq!(code(&server.post("/batch", &writes)), (409, json!("protected")));
}

/// The same path, but of another type since: Flux creates other objects.
#[test]
fn inputs_of_another_type_at_the_same_path_are_not_the_recorded_ones() {
    let server = released_of(true);
    let had = server.get("/clusters/c00000").json()["released_dns"][0]["inputs"]["namespaces"].clone();
    let mut seed = fleet_of(2);
    seed["clusters"][0]["released_dns"] =
        json!([{"name": "gone.example", "protected": true, "inputs": {"namespaces": {"shared": "rolebinding []"}}}]);
    assert_ne!(had, json!({"shared": "rolebinding []"}));
    let server = Server::crud_with(&seed);
    let mut heir = new_cluster("heir", "gone.example");
    heir["namespaces"] = json!([{"id": "shared"}]);
    let plan = server.post("/clusters?dry_run=true", &heir);
    assert_eq!(removed(&plan, "heir").1, json!(["shared"]), "{}", plan.body);
    assert_eq!(code(&server.post("/clusters", &heir)), (409, json!("protected")));
}

/// Once a cluster is purged, no plan can count the inputs of its released names. So the plan of the purge counts them.
#[test]
fn a_purge_counts_the_inputs_of_released_names() {
    let server = released_of(true);
    assert_eq!(server.patch("/clusters/c00000", &json!({"deletion_protection": false})).status, 200);
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    let purge = |query: &str| server.delete(&format!("/clusters/c00000?purge=true{query}"));
    let plan = purge("&dry_run=true");
    assert_eq!(removed(&plan, "c00000"), everything(), "{}", plan.body);
    let refused = purge("");
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
    assert!(refused.json()["detail"].as_str().unwrap().contains("3 from \"c00000\""), "{}", refused.body);
    // Clients that poll under a name that another cluster has taken have the inputs of that cluster.
    assert_eq!(server.post("/clusters?allow_removals=3", &new_cluster("heir", OLD)).status, 201);
    let plan = purge("&dry_run=true");
    assert_eq!((plan.status, &plan.json()["clusters"]), (200, &json!([])), "{}", plan.body);
    assert_eq!(purge("").status, 200);
}

#[test]
fn no_released_name_is_dropped_to_make_room_for_another() {
    let server = released_of(true);
    for at in 1..64 {
        move_to(&server, &format!("n{at}.example"));
    }
    let refused = server.post("/clusters", &new_cluster("heir", OLD));
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
    assert_eq!(server.patch("/clusters/c00000", &json!({"cluster_dns": "last.example"})).status, 200);
    let release = || server.delete("/clusters/c00000/former_dns/n63.example");
    let refused = release();
    assert_eq!(rule(&refused), (422, json!("released-dns-limit")), "{}", refused.body);
    // A name that another cluster has taken is dropped.
    assert_eq!(server.post("/clusters?allow_removals=3", &new_cluster("heir", OLD)).status, 201);
    assert_eq!(release().status, 200);
    let names = server.get("/clusters/c00000").json()["released_dns"].clone();
    assert_eq!(names.as_array().unwrap().len(), 64);
    assert!(!names.to_string().contains(OLD), "{names}");
}

#[test]
fn a_released_name_without_recorded_inputs_counts_the_inputs_of_its_cluster() {
    let mut seed = fleet_of(2);
    seed["clusters"][0]["released_dns"] = json!(["Gone.example."]);
    let server = Server::crud_with(&seed);
    let plan = server.post("/clusters?dry_run=true", &new_cluster("heir", "gone.example"));
    assert_eq!(removed(&plan, "heir"), everything(), "{}", plan.body);
    assert_eq!(server.patch("/clusters/c00000", &json!({"environment": "prod"})).status, 200);
    assert_eq!(server.get("/clusters/c00000").json()["released_dns"], json!(["Gone.example."]));
}

#[test]
fn a_cluster_is_not_created_with_more_names_than_the_limit() {
    let server = Server::crud_with(&fleet_of(2));
    let create = |field: &str, names: Value| {
        let mut body = new_cluster("import", "import.example");
        body[field] = names;
        server.post("/clusters", &body)
    };
    let names = |count: usize| (0..count).map(|at| json!(format!("f{at}.example"))).collect::<Value>();
    assert_eq!(rule(&create("former_dns", names(17))), (422, json!("former-dns-limit")));
    assert_eq!(rule(&create("released_dns", names(65))), (422, json!("released-dns-limit")));
    for field in ["former_dns", "released_dns"] {
        for twice in [json!(["a.example", "A.example."]), json!(["Import.example"])] {
            let refused = create(field, twice);
            assert_eq!(rule(&refused), (422, json!("former-dns")), "{}", refused.body);
        }
    }
    assert_eq!(code(&create("former_dns", json!(["C00001.example"]))), (409, json!("dns-held")));
    assert_eq!(create("former_dns", names(16)).status, 201, "an import keeps its names");
    assert_eq!(server.patch("/clusters/import", &json!({"environment": "prod"})).status, 200);
    assert_eq!(server.poll("f15.example", "namespaces").status, 200);
}

#[test]
fn a_seed_that_gives_a_cluster_one_name_twice_is_refused_as_a_request_is() {
    for (field, names) in [
        ("former_dns", json!(["C00000.example."])),
        ("former_dns", json!(["old.example", "OLD.example"])),
        ("released_dns", json!(["c00000.example"])),
    ] {
        let mut seed = fleet_of(1);
        seed["clusters"][0][field] = names;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        let started = crate::harness::command(folder.path()).env("SEED_FILE", "seed.json").output().unwrap();
        let told = String::from_utf8(started.stderr).unwrap();
        assert_eq!(started.status.code(), Some(2), "{told}");
        assert!(told.contains("is a name of this cluster already; each stands in one place"), "{told}");

        let refused = Server::crud_with(&fleet_of(0)).post("/clusters", &seed["clusters"][0]);
        assert_eq!(refused.status, 422, "{}", refused.body);
        let errors = refused.json()["errors"].clone();
        let error = errors.as_array().unwrap().iter().find(|error| error["rule"] == "former-dns").unwrap();
        assert!(told.contains(error["message"].as_str().unwrap()), "{told}");
    }
}

#[test]
fn a_cluster_seeded_with_too_many_names_can_be_edited_and_its_present_name_is_not_released() {
    let mut seed = fleet_of(1);
    let names: Vec<Value> = (0..20).map(|at| json!(format!("f{at}.example"))).collect();
    seed["clusters"][0]["former_dns"] = names.clone().into();
    let server = Server::crud_with(&seed);
    // A change log may have a seed of an older version, in which a name stands twice.
    let mut older = server.get("/clusters/c00000").json();
    older["former_dns"] = names.into_iter().chain([json!("C00000.example")]).collect();
    server.append(&[("cluster", "c00000", put(&older))]);
    server.wait_until("it is read", || server.get("/clusters/c00000").json() == older);
    let present = server.delete(&format!("/clusters/c00000/former_dns/{OLD}"));
    assert_eq!(present.status, 404, "{}", present.body);
    let edited = server.patch("/clusters/c00000", &json!({"environment": "prod"}));
    assert_eq!(edited.status, 200, "{}", edited.body);
    assert_eq!(edited.json()["former_dns"].as_array().unwrap().len(), 20);
    assert_eq!(server.delete("/clusters/c00000/former_dns/F3.example").status, 200);
    let more = server.patch("/clusters/c00000", &json!({"cluster_dns": "more.example"}));
    assert_eq!(rule(&more), (422, json!("former-dns-limit")), "{}", more.body);
}

#[test]
fn the_release_of_a_name_cannot_be_reverted() {
    let server = released();
    let refused = server.post("/changes/3/revert", &json!({}));
    assert_eq!(code(&refused), (409, json!("names-not-reverted")), "{}", refused.body);
    let refused = server.post("/changes/3/revert?dry_run=true", &json!({}));
    assert_eq!(code(&refused), (409, json!("names-not-reverted")), "{}", refused.body);
    assert_eq!(server.poll(OLD, "namespaces").status, 404);
}

#[test]
fn inputs_of_a_refused_answer_count_under_a_released_name() {
    let mut seed = fleet_of(2);
    seed["clusters"][0]["namespaces"] = json!([{"id": "lost"}, {"id": "gone"}]);
    let server = Server::crud_with(&seed);
    let refused = server.poll(OLD, "namespaces");
    assert_eq!(code(&refused), (500, json!("no-definitions")), "{}", refused.body);
    move_to(&server, "new.example");
    assert_eq!(server.delete("/clusters/c00000").status, 200);
    let plan = server.post("/clusters?dry_run=true", &new_cluster("heir", OLD));
    assert_eq!(removed(&plan, "heir"), (json!(["app", "base"]), json!(["gone", "lost"])), "{}", plan.body);
}

/// Clients have a Helm release of the chart at the time of the release of the name; for another chart Helm creates a new one.
#[test]
fn an_input_that_became_another_object_since_the_release_counts_as_removed() {
    let server = released_of(true);
    let other_chart = json!({"platform_components": [{"id": "app", "component_path": "another-chart"}]});
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let changed = server.write("PATCH", "/clusters/c00000?allow_removals=1", &other_chart, &strategic);
    assert_eq!(changed.status, 200, "{}", changed.body);
    let take_back = json!({"cluster_dns": OLD});
    let plan = server.write("PATCH", "/clusters/c00000?dry_run=true", &take_back, &MERGE);
    assert_eq!(removed(&plan, "c00000"), (json!(["app"]), json!([])), "{}", plan.body);
    let refused = server.write("PATCH", "/clusters/c00000", &take_back, &MERGE);
    assert_eq!(code(&refused), (409, json!("protected")), "{}", refused.body);
    // With the chart that the clients have, nothing is removed.
    let same_chart = json!({"platform_components": [{"id": "app", "component_path": "app"}]});
    assert_eq!(server.write("PATCH", "/clusters/c00000?allow_removals=1", &same_chart, &strategic).status, 200);
    assert_eq!(server.write("PATCH", "/clusters/c00000", &take_back, &MERGE).status, 200);
}
