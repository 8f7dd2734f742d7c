//! Type files that differ from the change log: `types diff` shows the differences, and `types accept` serves the types
//! as the files declare them.

use std::fs;

use harness::repository;
use model::Value;
use serde_json::json;

use crate::environment::TestEnvironment;

/// A server with the demo fleet, restarted with type files in which the paths of namespaces and role bindings are
/// swapped.
fn swapped() -> TestEnvironment {
    let mut env = TestEnvironment::demo();
    for (file, path, other) in
        [("namespace", "namespaces", "rolebindings"), ("rolebinding", "rolebindings", "namespaces")]
    {
        let text = fs::read_to_string(repository(&format!("resources/{file}.yaml"))).unwrap();
        let path = format!("    path: {path}\n");
        assert!(text.contains(&path), "{file}");
        env.file(&format!("types/{file}.yaml"), &text.replacen(&path, &format!("    path: {other}\n"), 1));
    }
    let types = env.home().join("types");
    env.restart(&[("RESOURCES_DIR", types.to_str().unwrap())]);
    env
}

/// The ids, sorted.
fn sorted(ids: &Value) -> Vec<&str> {
    let mut ids: Vec<_> = ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn types_diff_shows_differences_and_lost_inputs() {
    let agreed = TestEnvironment::demo().run(&["types", "diff", "-o", "table"]).success();
    assert_eq!(agreed.out, "The type files of the server match the change log.\n");

    let env = swapped();
    let diff = env.run(&["types", "diff"]);
    assert_eq!(diff.code, 1, "{}", diff.err);
    let diff = diff.json();
    let lists: Vec<_> = diff["changes"].as_array().unwrap().iter().map(|it| it["recorded"]["list"].clone()).collect();
    assert_eq!(lists, ["namespaces", "rolebindings"]);
    let inputs = &diff["plan"]["clusters"][0]["inputs"];
    assert_eq!(sorted(&inputs["namespaces"]["removed"]), ["cert-manager", "podinfo", "traefik"]);
    assert_eq!(sorted(&inputs["namespaces"]["added"]), ["dev-readers", "platform-admins"]);
    assert_eq!(sorted(&inputs["rolebindings"]["removed"]), ["dev-readers", "platform-admins"]);

    let table = env.run(&["types", "diff", "-o", "table"]);
    assert_eq!(table.code, 1, "{}", table.err);
    for text in ["changed, not served", "path=rolebindings list=namespaces", "-podinfo"] {
        assert!(table.out.contains(text), "{text}: {}", table.out);
    }
    assert_eq!(env.run(&["types", "diff", "-o", "name"]).out, "namespace\nrolebinding\n");
}

#[test]
fn types_accept_needs_confirmation_of_lost_inputs() {
    let env = swapped();
    let planned = env.run(&["types", "accept", "--dry-run"]).success().json();
    assert_eq!((&planned["dry_run"], &planned["totals"]["dev"]["removed"]), (&json!(true), &json!(5)));
    let unconfirmed = env.run(&["types", "accept"]);
    assert_eq!((unconfirmed.code, unconfirmed.out.as_str()), (1, ""));
    assert!(unconfirmed.err.contains("-podinfo") && unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
    assert_eq!(env.run_and_answer(120, "n\n", &["types", "accept"]).code, 1);
    assert_eq!((env.revision(), env.run(&["types", "diff"]).code), (1, 1), "without confirmation nothing is changed");

    let accepted = env.run(&["types", "accept", "--yes", "--reason", "other paths", "-o", "table"]).success();
    let out = &accepted.out;
    assert!(out.starts_with("the type files of ") && out.ends_with(" are accepted (revision 2)\n"), "{out}");
    assert_eq!(env.run(&["changes"]).json()[0]["reason"], "other paths");
    let agreed = env.run(&["types", "diff"]).success().json();
    assert_eq!((&agreed["changes"], &agreed["plan"]["documents"]), (&json!([]), &json!([])));
    let polled = env.run(&["demo", "flux-namespaces", "demo-cluster-01.k8s.example.com"]).success().json();
    let ids: Vec<_> = polled["inputs"].as_array().unwrap().iter().map(|input| input["id"].clone()).collect();
    assert_eq!(ids, ["platform-admins", "dev-readers"], "the path of namespaces now serves the role bindings");
}
