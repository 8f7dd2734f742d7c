//! See: inputs, explain, changes, problems, status, render.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use insta::assert_snapshot;
use serde_json::json;

use crate::stage::{Stage, settled};

#[test]
fn every_value_is_explained_with_the_change_that_set_it() {
    let stage = Stage::demo();
    let reason = ["--reason", "déjà vu: more load"];
    let patch = ["component", "patch", "podinfo", "--cluster", "demo-cluster-01", "--set", "replicaCount=4"];
    stage.run(&[&patch[..], &reason].concat()).good();
    stage.run(&["fleet", "set-version", "podinfo", "--oci-tag", "v2", "--all", "--yes", "--reason", "a hotfix"]).good();
    stage.run(&["component", "patch", "podinfo", "-p", "component_version: 6.0.0"]).good();
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", "labels: {unrelated: change}"]).good();
    let explained = stage.run(&["explain", "demo-cluster-01", "podinfo", "-o", "wide"]).good();
    settled(|| assert_snapshot!("explain", explained.out));
    let rows = stage.run(&["explain", "demo-cluster-01", "podinfo"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["field"] == "patches.replicaCount").unwrap();
    assert_eq!((&row["source"], &row["change"]["reason"]), (&json!("patch"), &json!("déjà vu: more load")));
    let binding = stage.run(&["explain", "demo-cluster-01", "dev-readers", "--type", "rolebinding"]).good();
    assert_eq!(binding.json()[0]["source"], "catalogue");
    assert_eq!(stage.run(&["explain", "demo-cluster-01", "ghost"]).code, 3);
}

#[test]
fn the_audit_trail_is_listed_shown_and_reverted() {
    let stage = Stage::demo();
    stage.run(&["namespace", "create", "team", "--reason", "a new team"]).good();
    stage.run(&["namespace", "patch", "team", "-p", "labels: {a: b}"]).good();
    let list = stage.run(&["changes", "-o", "table"]).good();
    settled(|| assert_snapshot!("changes", list.out));
    let show = stage.run(&["changes", "show", "3", "-o", "table"]).good();
    settled(|| assert_snapshot!("changes-show", show.out));
    assert_eq!(stage.run(&["changes", "--kind", "ns", "--limit", "1"]).json()[0]["revision"], 3);
    stage.run(&["changes", "revert", "3"]).good();
    assert_eq!(stage.run(&["namespace", "get", "team"]).json()["labels"], json!({}));
    assert_eq!(stage.run(&["changes", "show", "99"]).code, 3);
}

#[test]
fn changes_are_followed_as_they_come() {
    let stage = Stage::demo();
    let mut follow = stage.tool(&["changes", "--follow", "-o", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<model::Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["revision"], 1, "what was before comes first");
    stage.run(&["namespace", "create", "a"]).good();
    assert_eq!(next()["writes"][0], json!({"kind": "namespace", "id": "a", "op": "put"}));
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn who_follows_misses_nothing_while_the_server_is_restarted() {
    let mut stage = Stage::demo();
    let mut follow = stage.tool(&["changes", "--follow", "-o", "name"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut watch = stage.tool(&["list", "ns", "-o", "name", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut followed = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut watched = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(followed.next().unwrap(), "1");
    assert_eq!(watched.by_ref().take(3).last().unwrap(), "namespace/traefik");
    stage.restart(&[]);
    stage.run(&["namespace", "create", "a"]).good();
    assert_eq!(followed.next().unwrap(), "2");
    assert_eq!(watched.next().unwrap(), "namespace/a");
    for child in [&mut follow, &mut watch] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_watched_list_is_shown_again_when_it_changes_and_only_then() {
    let stage = Stage::demo();
    let mut watch =
        stage.tool(&["list", "rolebindings", "-o", "name", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.by_ref().take(2).last().unwrap(), "rolebinding/platform-admins");
    stage.run(&["namespace", "create", "unrelated"]).good();
    stage.run(&["create", "rolebinding", "added", "--field", "role=view"]).good();
    assert_eq!(lines.next().unwrap(), "rolebinding/added");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn inputs_status_and_problems_are_shown() {
    let stage = Stage::demo();
    assert_snapshot!("inputs", stage.run(&["inputs", "demo-cluster-01", "-o", "table"]).good().out);
    let all = stage.run(&["inputs", "demo-cluster-01"]).json();
    let types: Vec<_> = all.as_object().unwrap().keys().collect();
    assert_eq!(types, ["platform-components", "namespaces", "rolebindings"]);
    let status = stage.run(&["status"]).json();
    assert_eq!(
        (&status["revision"], &status["store"], &status["problems"]),
        (&json!(1), &json!("following"), &json!(0))
    );
    assert_eq!(stage.run(&["problems"]).json(), json!([]));

    let cluster = json!({
        "id": "c", "cluster_name": "c", "cluster_dns": "c.example", "environment": "dev", "namespaces": [{"id": "ghost"}]
    });
    let stage = Stage::seeded(&json!({"clusters": [cluster]}));
    assert_snapshot!("problems", stage.run(&["problems", "-o", "table"]).good().out);
    let status = stage.run(&["status"]).json();
    assert_eq!((&status["problems"], &status["problems_by_rule"]["missing-definition"]), (&json!(1), &json!(1)));
}

#[test]
fn problems_are_filtered_and_as_many_are_shown_as_are_asked_for() {
    let ghosts: Vec<_> = (0..7).map(|at| json!({"id": format!("ghost{at}")})).collect();
    let cluster = |id: &str| {
        json!({
            "id": id, "cluster_name": id, "cluster_dns": format!("{id}.example"), "environment": "dev", "namespaces": ghosts
        })
    };
    let stage = Stage::seeded(&json!({"clusters": [cluster("a"), cluster("b")]}));
    let count = |arguments: &[&str]| {
        let all = stage.run(&[&["problems"], arguments].concat()).json();
        all.as_array().unwrap().len()
    };
    assert_eq!((count(&[]), count(&["--limit", "3"]), count(&["--id", "b"])), (14, 3, 7));
    assert_eq!(
        (count(&["--rule", "missing-definition", "--kind", "cluster"]), count(&["--kind", "namespace"])),
        (14, 0)
    );
    let table = stage.run(&["problems", "--limit", "3", "-o", "table"]).good().out;
    assert!(table.contains("3 of 14"), "{table}");
    let status = stage.run(&["status", "-o", "table"]).good().out;
    assert!(status.contains("14 (missing-definition 14)"), "{status}");
}
