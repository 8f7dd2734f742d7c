//! A server whose files and the change log differ on resource types: `types diff` shows it, and `types accept` serves the types as
//! the files say.

use std::fs;

use harness::repository;
use model::Value;
use serde_json::json;

use crate::stage::Stage;

/// The demo fleet, and a server whose files have swapped the paths of namespaces and role bindings since.
fn swapped() -> Stage {
    let mut stage = Stage::demo();
    for (file, path, other) in
        [("namespace", "namespaces", "rolebindings"), ("rolebinding", "rolebindings", "namespaces")]
    {
        let text = fs::read_to_string(repository(&format!("resources/{file}.yaml"))).unwrap();
        let path = format!("    path: {path}\n");
        assert!(text.contains(&path), "{file}");
        stage.file(&format!("types/{file}.yaml"), &text.replacen(&path, &format!("    path: {other}\n"), 1));
    }
    let types = stage.home().join("types");
    stage.restart(&[("RESOURCES_DIR", types.to_str().unwrap())]);
    stage
}

/// Ids in their order.
fn sorted(ids: &Value) -> Vec<&str> {
    let mut ids: Vec<_> = ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn types_that_differ_from_the_change_log_are_shown_with_what_clusters_would_lose() {
    let agreed = Stage::demo().run(&["types", "diff", "-o", "table"]).good();
    assert_eq!(agreed.out, "The server's files and the change log agree.\n");

    let stage = swapped();
    let found = stage.run(&["types", "diff"]);
    assert_eq!(found.code, 1, "{}", found.err);
    let found = found.json();
    let lists: Vec<_> = found["changes"].as_array().unwrap().iter().map(|it| it["recorded"]["list"].clone()).collect();
    assert_eq!(lists, ["namespaces", "rolebindings"]);
    let inputs = &found["plan"]["clusters"][0]["inputs"];
    assert_eq!(sorted(&inputs["namespaces"]["removed"]), ["cert-manager", "podinfo", "traefik"]);
    assert_eq!(sorted(&inputs["namespaces"]["added"]), ["dev-readers", "platform-admins"]);
    assert_eq!(sorted(&inputs["rolebindings"]["removed"]), ["dev-readers", "platform-admins"]);

    let table = stage.run(&["types", "diff", "-o", "table"]);
    assert_eq!(table.code, 1, "{}", table.err);
    for text in ["changed, not served", "path=rolebindings list=namespaces", "-podinfo"] {
        assert!(table.out.contains(text), "{text}: {}", table.out);
    }
    assert_eq!(stage.run(&["types", "diff", "-o", "name"]).out, "namespace\nrolebinding\n");
}

#[test]
fn types_are_accepted_by_who_has_seen_what_clusters_would_lose() {
    let stage = swapped();
    let planned = stage.run(&["types", "accept", "--dry-run"]).good().json();
    assert_eq!((&planned["dry_run"], &planned["totals"]["dev"]["removed"]), (&json!(true), &json!(5)));
    let unasked = stage.run(&["types", "accept"]);
    assert_eq!((unasked.code, unasked.out.as_str()), (1, ""));
    assert!(unasked.err.contains("-podinfo") && unasked.err.contains("--yes"), "{}", unasked.err);
    assert_eq!(stage.asked(120, "n\n", &["types", "accept"]).code, 1);
    assert_eq!((stage.revision(), stage.run(&["types", "diff"]).code), (1, 1), "without a yes nothing is done");

    let accepted = stage.run(&["types", "accept", "--yes", "--reason", "other paths", "-o", "table"]).good();
    let out = &accepted.out;
    assert!(out.starts_with("the types are served as the files of ") && out.ends_with(" say (revision 2)\n"), "{out}");
    assert_eq!(stage.run(&["changes"]).json()[0]["reason"], "other paths");
    let agreed = stage.run(&["types", "diff"]).good().json();
    assert_eq!((&agreed["changes"], &agreed["plan"]["documents"]), (&json!([]), &json!([])));
    let polled = stage.run(&["demo", "flux-namespaces", "demo-cluster-01.k8s.example.com"]).good().json();
    let ids: Vec<_> = polled["inputs"].as_array().unwrap().iter().map(|input| input["id"].clone()).collect();
    assert_eq!(ids, ["platform-admins", "dev-readers"], "the path of namespaces has the role bindings now");
}
