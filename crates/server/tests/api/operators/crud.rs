//! Create, read, replace, patch: the same for every type.

use serde_json::json;

use super::{DEMO, fleet_of};
use crate::harness::{Server, repository};

#[test]
fn a_document_is_created_read_replaced_and_deleted() {
    let server = Server::crud();
    let created = server.post("/namespaces", &json!({"id": "team", "labels": {"team": "a"}}));
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(
        (&created.headers["location"], &created.headers["etag"]),
        (&"/namespaces/team".parse().unwrap(), &"\"2\"".parse().unwrap())
    );
    assert_eq!(created.json(), json!({"id": "team", "labels": {"team": "a"}}));

    let read = server.get("/namespaces/team");
    assert_eq!((read.status, read.json()), (200, created.json()));

    let replaced = server.put("/namespaces/team", &json!({"annotations": {"owner": "b"}}));
    assert_eq!((replaced.status, replaced.json()), (200, json!({"id": "team", "annotations": {"owner": "b"}})));
    assert_eq!(replaced.headers["etag"], "\"3\"");

    let deleted = server.delete("/namespaces/team");
    assert_eq!((deleted.status, deleted.json()), (200, replaced.json()));
    assert_eq!(server.get("/namespaces/team").status, 404);
    assert_eq!(server.delete("/namespaces/team").status, 404);
    assert_eq!(server.put("/namespaces/team", &json!({})).status, 404, "PUT does not create");
}

#[test]
fn every_type_has_the_same_routes() {
    let resources = repository("docs/examples/resources");
    let seed = repository("data/seed.json");
    let server = Server::start(&[
        ("API_MODE", "crud"),
        ("RESOURCES_DIR", resources.to_str().unwrap()),
        ("SEED_FILE", seed.to_str().unwrap()),
    ]);
    let policy = json!({"id": "allow", "target_namespace": "podinfo", "ingress_rules": [{"from_namespace": "traefik", "port": 80}]});
    assert_eq!(server.post("/network_policies", &policy).status, 201);
    assert_eq!(server.get("/network_policies").json(), json!([policy]));
    let assigned = server.put("/clusters/demo-cluster-01/network_policies/allow", &json!({}));
    assert_eq!(assigned.status, 200, "{}", assigned.body);
    assert_eq!(server.poll(DEMO, "network-policies").json()["inputs"][0]["ingress_rules"][0]["port"], json!(80));
    assert_eq!(server.delete("/network_policies/allow").status, 409);
    assert_eq!(server.get("/network_policies/allow/history").json()[0]["op"], json!("put"));
}

#[test]
fn lists_are_filtered_and_paged() {
    let server = Server::crud_with(&fleet_of(10));
    let ids = |path: &str| -> (Vec<String>, String) {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let ids = answer.json().as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
        (ids, answer.headers["x-total-count"].to_str().unwrap().to_owned())
    };
    let named = |ids: &[usize]| ids.iter().map(|at| format!("c{at:05}")).collect::<Vec<_>>();
    assert_eq!(ids("/clusters?limit=3&offset=2"), (named(&[2, 3, 4]), "10".to_owned()));
    assert_eq!(ids("/clusters?environment=prod&label=region=eu"), (named(&[3, 9]), "2".to_owned()));
    assert_eq!(ids("/clusters?cluster_dns=c00004.example").0, named(&[4]));
    assert_eq!(ids("/clusters?offset=99"), (vec![], "10".to_owned()));
    for bad in [
        "/clusters?enviroment=prod",
        "/clusters?limit=x",
        "/clusters?label=x",
        "/clusters?patches=a",
        "/clusters?limit=1&limit=2",
        "/clusters?environment=%zz",
        "/clusters?environment=%ff",
        "/clusters?environment=dev%",
    ] {
        let answer = server.get(bad);
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("invalid-query")), "{bad}");
    }
    let before_all = server.get("/clusters?revision=0");
    assert_eq!((before_all.status, &before_all.json()["code"]), (404, &json!("unknown-revision")));
}

#[test]
fn etags_guard_every_change() {
    let server = Server::crud();
    let path = "/namespaces/podinfo";
    let tag = server.get(path).headers["etag"].to_str().unwrap().to_owned();
    let authorised = ("authorization", "Bearer read-token");
    assert_eq!(server.exchange("GET", path, &[authorised, ("if-none-match", &tag)], None).status, 304);
    let listed = server.get("/namespaces").headers["etag"].to_str().unwrap().to_owned();
    let again = || server.exchange("GET", "/namespaces", &[authorised, ("if-none-match", &listed)], None).status;
    assert_eq!(again(), 304);
    server.post("/namespaces", &json!({"id": "newer"}));
    assert_eq!(again(), 200);
    assert_eq!(server.write("PATCH", path, &json!({"labels": {"a": "1"}}), &[("if-match", &tag)]).status, 200);
    for (method, path, body) in [
        ("PATCH", path, json!({"labels": {"a": "2"}})),
        ("PUT", path, json!({})),
        ("DELETE", path, json!({})),
        ("POST", "/namespaces/podinfo/revert", json!({"revision": 1})),
    ] {
        let answer = server.write(method, path, &body, &[("if-match", &tag)]);
        assert_eq!((answer.status, &answer.json()["code"]), (412, &json!("precondition-failed")), "{method}");
    }
    let stale =
        server.write("PUT", "/clusters/demo-cluster-01/namespaces/podinfo", &json!({}), &[("if-match", "\"99\"")]);
    assert_eq!(stale.status, 412);
    assert_eq!(server.write("PUT", path, &json!({}), &[("if-none-match", "*")]).status, 412);
    assert_eq!(server.write("PUT", path, &json!({}), &[("if-match", "*")]).status, 200);
}

/// RFC 9110: `If-Match` compares strongly, `If-None-Match` weakly.
#[test]
fn a_weak_etag_never_matches_a_change_and_still_spares_a_read() {
    let server = Server::crud();
    let path = "/namespaces/podinfo";
    let tag = server.get(path).headers["etag"].to_str().unwrap().to_owned();
    let weak = format!("W/{tag}");
    let body = json!({"labels": {"a": "1"}});
    let patch = |header: &str, value: &str| server.write("PATCH", path, &body, &[(header, value)]).status;
    for (tags, status) in [
        (weak.clone(), 412),
        (format!("\"99\", {weak}"), 412),
        // A comma inside the quotes is part of the tag.
        (format!("\"a,{}", &tag[1..]), 412),
        // An invalid list of tags matches nothing.
        (format!("{tag} {tag}"), 412),
        (format!("{tag};q=1"), 412),
        (format!("*, {tag}"), 412),
        (format!("\"99\" , ,{tag}"), 200),
    ] {
        assert_eq!(patch("if-match", &tags), status, "{tags}");
    }
    let tag = server.get(path).headers["etag"].to_str().unwrap().to_owned();
    let read = |tags: &str| {
        let headers = [("authorization", "Bearer read-token"), ("if-none-match", tags)];
        server.exchange("GET", path, &headers, None).status
    };
    for (tags, status) in [
        (format!("W/{tag}"), 304),
        (format!("\"99\",W/{tag}"), 304),
        ("*".to_owned(), 304),
        (format!("W/W/{tag}"), 200),
        (format!("\"a,{}", &tag[1..]), 200),
    ] {
        assert_eq!(read(&tags), status, "{tags}");
    }
    assert_eq!(patch("if-none-match", &format!("W/{tag}")), 412);
}

#[test]
fn patches_come_in_three_kinds() {
    let server = Server::crud();
    let path = "/clusters/demo-cluster-01";
    let kind = |kind: &'static str| [("content-type", kind)];
    let merged = server.write(
        "PATCH",
        path,
        &json!({"patches": {"podinfo": {"replicaCount": "3"}}}),
        &kind("application/merge-patch+json"),
    );
    assert_eq!(merged.status, 200, "{}", merged.body);
    assert_eq!(merged.json()["patches"]["podinfo"]["replicaCount"], json!("3"));
    assert_eq!(merged.json()["patches"]["podinfo"]["ui.color"], json!("#2f855a"), "the rest stays");

    let pointed =
        json!([{"op": "replace", "path": "/environment", "value": "qa"}, {"op": "remove", "path": "/patches/traefik"}]);
    let pointed = server.write("PATCH", path, &pointed, &kind("application/json-patch+json")).json();
    assert_eq!((&pointed["environment"], pointed["patches"].get("traefik")), (&json!("qa"), None));

    let keyed =
        json!({"platform_components": [{"id": "podinfo", "oci_tag": "v2"}, {"id": "traefik", "$patch": "delete"}]});
    let keyed = server.write("PATCH", path, &keyed, &kind("application/strategic-merge-patch+json")).json();
    let ids: Vec<_> = keyed["platform_components"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, [json!("cert-manager"), json!("podinfo")]);
    assert_eq!(keyed["platform_components"][1]["oci_tag"], json!("v2"));
    assert_eq!(keyed["platform_components"][1]["enabled"], json!(true));

    let unknown = server.write("PATCH", path, &json!({}), &kind("application/xml"));
    assert_eq!(unknown.status, 415);
    assert!(unknown.headers.contains_key("accept-patch"));
    let failed = server.write(
        "PATCH",
        path,
        &json!([{"op": "test", "path": "/environment", "value": "no"}]),
        &kind("application/json-patch+json"),
    );
    assert_eq!((failed.status, &failed.json()["errors"][0]["rule"]), (422, &json!("patch")));
}

#[test]
fn references_and_patches_have_paths_of_their_own() {
    let server = Server::crud();
    server.post("/namespaces", &json!({"id": "extra"}));
    let assigned = server.put("/clusters/demo-cluster-01/namespaces/extra", &json!({}));
    assert_eq!(assigned.json()["namespaces"].as_array().map(Vec::len), Some(4));
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"][3]["id"], json!("extra"));
    assert_eq!(server.delete("/clusters/demo-cluster-01/namespaces/extra").status, 200);
    assert_eq!(server.delete("/clusters/demo-cluster-01/namespaces/extra").status, 404);

    let tagged = server.put("/clusters/demo-cluster-01/platform-components/podinfo", &json!({"oci_tag": "v9"}));
    assert_eq!(tagged.json()["platform_components"][2], json!({"id": "podinfo", "oci_tag": "v9"}), "at its position");
    let input = &server.poll(DEMO, "platform-components").json()["inputs"][2];
    assert_eq!(input["source"]["oci_tag"], json!("v9"));

    let path = "/clusters/demo-cluster-01/patches/podinfo";
    assert_eq!(
        server.put(path, &json!({"a": "1", "b": "2"})).json()["patches"]["podinfo"],
        json!({"a": "1", "b": "2"})
    );
    assert_eq!(
        server.patch(path, &json!({"a": null, "c": "3"})).json()["patches"]["podinfo"],
        json!({"b": "2", "c": "3"})
    );
    assert_eq!(server.delete(path).json()["patches"].get("podinfo"), None);
    assert_eq!(server.delete(path).status, 404);
}

#[test]
fn a_write_that_changes_nothing_makes_no_revision() {
    let server = Server::crud();
    let same = server.get("/namespaces/podinfo").json();
    let answer = server.put("/namespaces/podinfo", &same);
    assert_eq!((answer.status, &answer.headers["etag"]), (200, &"\"1\"".parse().unwrap()));
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
}

#[test]
fn only_the_write_token_may_write() {
    let server = Server::crud();
    let body = json!({"id": "x"}).to_string();
    let post = |token: Option<&str>| {
        let token = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = token.iter().map(|token| ("authorization", token.as_str())).collect();
        server.exchange("POST", "/namespaces", &headers, Some(body.clone())).status
    };
    assert_eq!(
        (post(None), post(Some("wrong")), post(Some("read-token")), post(Some("write-token"))),
        (401, 401, 403, 201)
    );
    assert_eq!(server.request("GET", "/clusters", Some("Bearer write-token")).status, 200, "the write token may read");
    let read_only = Server::demo();
    assert_eq!(read_only.post("/namespaces", &json!({"id": "x"})).status, 404, "no write routes in read-only mode");
}

#[test]
fn preconditions_that_cannot_be_checked_are_refused() {
    let server = Server::crud();
    for (method, path, body) in [
        ("POST", "/batch", json!({"writes": []})),
        ("PATCH", "/clusters?all=true", json!({"environment": "qa"})),
        ("POST", "/changes/1/revert", json!({})),
    ] {
        let answer = server.write(method, path, &body, &[("if-match", "\"1\"")]);
        assert!([400, 409].contains(&answer.status), "{method} {path}: {}", answer.body);
        assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
    }
    let not_ascii = server.write("PATCH", "/namespaces/podinfo", &json!({"labels": {"a": "b"}}), &[("if-match", "é")]);
    assert_eq!(not_ascii.status, 412);
}

#[test]
fn a_cluster_is_replaced_without_an_id_in_the_body() {
    let server = Server::crud();
    let mut cluster = server.get("/clusters/demo-cluster-01").json();
    cluster.as_object_mut().unwrap().remove("id");
    cluster["cluster_name"] = json!("another-name");
    let answer = server.put("/clusters/demo-cluster-01", &cluster);
    assert_eq!((answer.status, answer.json()["id"].clone()), (200, json!("demo-cluster-01")), "{}", answer.body);
}

#[test]
fn bodies_that_are_not_json_are_refused() {
    let server = Server::crud();
    let send = |body: &str| {
        server.exchange("POST", "/namespaces", &[("authorization", "Bearer write-token")], Some(body.to_owned()))
    };
    for bad in ["", "{", "[]", "\"x\"", "{} {}"] {
        let answer = send(bad);
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("invalid-body")), "{bad:?}: {}", answer.body);
    }
}

#[test]
fn the_server_lists_its_types() {
    let folder = tempfile::tempdir().unwrap();
    let types = repository("docs/examples/resources");
    let settings = [("API_MODE", "crud"), ("RESOURCES_DIR", types.to_str().unwrap()), ("SEED_FILE", "")];
    let server = Server::start_in(std::sync::Arc::new(folder), &settings);
    let types = server.get("/types").json();
    let named: Vec<_> = types.as_array().unwrap().iter().map(|ty| ty["kind"].as_str().unwrap()).collect();
    assert_eq!(named, ["cluster", "platform_component", "namespace", "rolebinding", "network_policy"]);
    assert_eq!(types[0].get("list"), None, "nothing refers to clusters");
    assert_eq!((&types[1]["nest"]["source"], &types[1]["patchable"]), (&json!(["oci_url", "oci_tag"]), &json!(true)));
    assert_eq!((&types[4]["list"], &types[4]["path"]), (&json!("network_policies"), &json!("network-policies")));
    assert_eq!(types[4]["schema"]["required"][0], json!("id"));
    assert!(types[2]["template"].as_str().unwrap().contains("kind: Namespace"));
    let filters = types[0]["filters"].as_array().unwrap();
    for (name, is) in [("environment", true), ("namespaces", true), ("labels", false), ("patches", false)] {
        assert_eq!(filters.contains(&json!(name)), is, "{name}");
    }
    assert_eq!(server.get_open("/types").status, 401);
}
