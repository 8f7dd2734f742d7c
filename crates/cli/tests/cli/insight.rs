//! `inputs`, `explain`, `changes`, `problems` and `status`.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use insta::assert_snapshot;
use serde_json::json;

use crate::environment::{TestEnvironment, with_stable_values};

#[test]
fn every_value_is_explained_with_the_change_that_set_it() {
    let env = TestEnvironment::demo();
    let reason = ["--reason", "déjà vu: more load"];
    let patch = ["component", "patch", "podinfo", "--cluster", "demo-cluster-01", "--set", "replicaCount=4"];
    env.run(&[&patch[..], &reason].concat()).success();
    env.run(&["fleet", "set-version", "podinfo", "--oci-tag", "v2", "--all", "--yes", "--reason", "a hotfix"])
        .success();
    env.run(&["component", "patch", "podinfo", "-p", "component_version: 6.0.0"]).success();
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", "labels: {unrelated: change}"]).success();
    let explained = env.run(&["explain", "demo-cluster-01", "podinfo", "-o", "wide"]).success();
    with_stable_values(|| assert_snapshot!("explain", explained.out));
    let rows = env.run(&["explain", "demo-cluster-01", "podinfo"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["field"] == "patches.replicaCount").unwrap();
    assert_eq!((&row["source"], &row["change"]["reason"]), (&json!("patch"), &json!("déjà vu: more load")));
    let binding = env.run(&["explain", "demo-cluster-01", "dev-readers", "--type", "rolebinding"]).success();
    assert_eq!(binding.json()[0]["source"], "catalogue");
    let row = rows.as_array().unwrap().iter().find(|row| row["field"] == "source.oci_tag").unwrap();
    assert_eq!(row["hidden"][0]["source"], "catalogue", "what an override hides is shown too");
    let missing = env.run(&["explain", "demo-cluster-01", "ghost"]);
    assert_eq!(missing.code, 3);
    assert!(missing.err.contains("cluster/demo-cluster-01 has no platform_component \"ghost\""), "{}", missing.err);
    assert!(missing.err.contains("flux-resourceset-cli inputs demo-cluster-01 platform-components"), "{}", missing.err);
    let misspelt = env.run(&["explain", "demo-cluster-1", "podinfo"]);
    assert_eq!(misspelt.code, 3);
    assert!(misspelt.err.contains("there is no cluster \"demo-cluster-1\""), "{}", misspelt.err);
}

#[test]
fn the_audit_trail_is_listed_shown_and_reverted() {
    let env = TestEnvironment::demo();
    env.run(&["namespace", "create", "team", "--reason", "a new team"]).success();
    env.run(&["namespace", "patch", "team", "-p", "labels: {a: b}"]).success();
    let list = env.run(&["changes", "-o", "table"]).success();
    with_stable_values(|| assert_snapshot!("changes", list.out));
    let show = env.run(&["changes", "show", "3", "-o", "table"]).success();
    with_stable_values(|| assert_snapshot!("changes-show", show.out));
    assert_eq!(env.run(&["changes", "--kind", "ns", "--limit", "1"]).json()[0]["revision"], 3);
    env.run(&["changes", "revert", "3"]).success();
    assert_eq!(env.run(&["namespace", "get", "team"]).json()["labels"], json!({}));
    assert_eq!(env.run(&["changes", "show", "99"]).code, 3);
}

#[test]
fn new_changes_are_followed() {
    let env = TestEnvironment::demo();
    let mut follow = env.tool(&["changes", "--follow", "-o", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<model::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["revision"], 1, "existing changes come first");
    env.run(&["namespace", "create", "a"]).success();
    assert_eq!(next()["writes"][0], json!({"kind": "namespace", "id": "a", "op": "put"}));
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn following_misses_no_change_when_the_server_restarts() {
    let mut env = TestEnvironment::demo();
    let mut follow = env.tool(&["changes", "--follow", "-o", "name"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut watch = env.tool(&["list", "ns", "-o", "name", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut followed = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut watched = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(followed.next().unwrap(), "1");
    assert_eq!(watched.by_ref().take(3).last().unwrap(), "namespace/traefik");
    env.restart(&[]);
    env.run(&["namespace", "create", "a"]).success();
    assert_eq!(followed.next().unwrap(), "2");
    assert_eq!(watched.next().unwrap(), "namespace/a");
    for child in [&mut follow, &mut watch] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_watched_list_is_shown_again_only_when_it_changes() {
    let env = TestEnvironment::demo();
    let mut watch =
        env.tool(&["list", "rolebindings", "-o", "name", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.by_ref().take(2).last().unwrap(), "rolebinding/platform-admins");
    env.run(&["namespace", "create", "unrelated"]).success();
    env.run(&["create", "rolebinding", "added", "--field", "role=view"]).success();
    assert_eq!(lines.next().unwrap(), "rolebinding/added");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn inputs_status_and_problems_are_shown() {
    let env = TestEnvironment::demo();
    assert_snapshot!("inputs", env.run(&["inputs", "demo-cluster-01", "-o", "table"]).success().out);
    let all = env.run(&["inputs", "demo-cluster-01"]).json();
    let types: Vec<_> = all.as_object().unwrap().keys().collect();
    assert_eq!(types, ["platform-components", "namespaces", "rolebindings"]);
    let status = env.run(&["status"]).json();
    assert_eq!(
        (&status["revision"], &status["store"], &status["problems"]),
        (&json!(1), &json!("following"), &json!(0))
    );
    assert_eq!(env.run(&["problems"]).json(), json!([]));

    let cluster = json!({
        "id": "c", "cluster_name": "c", "cluster_dns": "c.example", "environment": "dev", "namespaces": [{"id": "ghost"}]
    });
    let env = TestEnvironment::with_seed(&json!({"clusters": [cluster]}));
    assert_snapshot!("problems", env.run(&["problems", "-o", "table"]).success().out);
    let status = env.run(&["status"]).json();
    assert_eq!((&status["problems"], &status["problems_by_rule"]["missing-definition"]), (&json!(1), &json!(1)));
}

#[test]
fn problems_are_filtered_and_limited() {
    let ghosts: Vec<_> = (0..7).map(|at| json!({"id": format!("ghost{at}")})).collect();
    let cluster = |id: &str| {
        json!({
            "id": id, "cluster_name": id, "cluster_dns": format!("{id}.example"), "environment": "dev", "namespaces": ghosts
        })
    };
    let env = TestEnvironment::with_seed(&json!({"clusters": [cluster("a"), cluster("b")]}));
    let count = |arguments: &[&str]| {
        let all = env.run(&[&["problems"], arguments].concat()).json();
        all.as_array().unwrap().len()
    };
    assert_eq!((count(&[]), count(&["--limit", "3"]), count(&["--id", "b"])), (14, 3, 7));
    assert_eq!(
        (count(&["--rule", "missing-definition", "--kind", "cluster"]), count(&["--kind", "namespace"])),
        (14, 0)
    );
    let table = env.run(&["problems", "--limit", "3", "-o", "table"]).success().out;
    assert!(table.contains("3 of 14"), "{table}");
    let status = env.run(&["status", "-o", "table"]).success().out;
    assert!(status.contains("14 (missing-definition 14)"), "{status}");
}
