//! Many clusters at once.

use std::fmt::Write as _;

use insta::assert_snapshot;
use model::Value;
use serde_json::json;

use crate::stage::Stage;

/// Twelve clusters in three environments and two regions; ten of them have grafana.
fn fleet() -> Value {
    let clusters: Vec<_> = (0..12)
        .map(|at| {
            let (environment, region) = (["dev", "qa", "prod"][at % 3], ["eu", "us"][at % 2]);
            let id = format!("{region}-{environment}-{at:02}");
            let mut components = vec![json!({"id": "base"})];
            components.extend((at < 10).then(|| json!({"id": "grafana", "enabled": at != 9})));
            json!({
                "id": id, "cluster_name": id, "cluster_dns": format!("{id}.example.com"), "environment": environment,
                "labels": {"region": region}, "platform_components": components
            })
        })
        .collect();
    let component = |id: &str| json!({"id": id, "component_path": format!("core/{id}/1.0.0"), "oci_url": "oci://registry.example/platform", "oci_tag": "v1.0.0"});
    json!({"clusters": clusters, "platform_components": [component("base"), component("grafana"), component("loki")]})
}

fn count(stage: &Stage, selector: &str) -> usize {
    stage.run(&["cluster", "list", "--selector", selector]).json().as_array().unwrap().len()
}

#[test]
fn a_fleet_command_is_planned_asked_for_and_one_change() {
    let stage = Stage::seeded(&fleet());
    let command = ["fleet", "patch", "grafana", "--selector", "environment=dev,region=eu", "--set", "replicas=3"];
    let unasked = stage.run(&command);
    assert_eq!((unasked.code, stage.revision()), (1, 1), "without a yes nothing is done");
    assert_snapshot!("fleet-patch-unasked", unasked.err);
    let planned = stage.run(&[&command[..], &["--dry-run"]].concat()).good();
    assert_eq!(planned.json()["totals"], json!({"dev": {"clusters": 2, "added": 0, "changed": 2, "removed": 0}}));
    assert_eq!(stage.revision(), 1);
    let done = stage.run(&[&command[..], &["--yes"]].concat()).good();
    assert_eq!(done.json()["documents"].as_array().map(Vec::len), Some(2));
    assert_eq!(stage.revision(), 2, "it is one change");
    stage.run(&[&command[..], &["--yes"]].concat()).good();
    assert_eq!(stage.revision(), 2, "twice is once");
}

#[test]
fn things_are_assigned_and_unassigned_by_selector() {
    let stage = Stage::seeded(&fleet());
    stage.run(&["fleet", "assign", "component", "loki", "--selector", "environment=prod", "-y"]).good();
    assert_eq!((count(&stage, "platform_components=loki"), stage.revision()), (4, 2));
    // What is there already keeps what it overrides.
    stage.run(&["fleet", "assign", "components", "grafana", "--all", "-y"]).good();
    assert_eq!(count(&stage, "platform_components=grafana"), 12);
    let disabled = stage.run(&["cluster", "get", "us-dev-09"]).json();
    assert_eq!(disabled["platform_components"][1], json!({"id": "grafana", "enabled": false}));
    stage.run(&["fleet", "unassign", "component", "loki", "--selector", "region=eu", "-y"]).good();
    assert_eq!(count(&stage, "platform_components=loki"), 2);
    let none = stage.run(&["fleet", "unassign", "component", "loki", "--selector", "regoin=eu", "-y"]);
    assert_eq!((none.code, count(&stage, "platform_components=loki")), (1, 2), "a typo takes no cluster, not all");
    assert_eq!(stage.run(&["fleet", "unassign", "component", "loki", "-y"]).code, 2, "everything must be said");
}

#[test]
fn versions_are_set_shown_and_reset() {
    let stage = Stage::seeded(&fleet());
    let set = |tag: &str, selector: &str| {
        stage.run(&["fleet", "set-version", "grafana", "--oci-tag", tag, "--selector", selector, "-y"]).good();
    };
    set("v1.0.0-2", "environment=dev,region=eu");
    set("v1.0.0-10", "environment=qa,region=eu");
    set("v1.1.0-rc1", "environment=qa,region=us");
    set("v1.1.0", "id=us-dev-03");
    set("latest", "id=eu-prod-02");
    assert_eq!(count(&stage, "platform_components=grafana"), 10, "a version does not assign");
    assert_snapshot!("fleet-versions", stage.run(&["fleet", "versions", "grafana", "-o", "wide"]).good().out);
    let path = ["fleet", "set-version", "grafana", "--component-path", "core/grafana/2.0.0", "--all", "-y"];
    stage.run(&path).good();
    stage.run(&["fleet", "set-version", "grafana", "--reset", "--all", "-y"]).good();
    assert_snapshot!("fleet-versions-reset", stage.run(&["fleet", "versions", "grafana", "-o", "table"]).good().out);
    assert_eq!(stage.run(&["fleet", "set-version", "grafana", "--all"]).code, 2, "a version must be said");
}

#[test]
fn hostile_values_arrive_as_they_are() {
    let stage = Stage::demo();
    let hostile = "a,b=c \"quoted\" 'too' {x} \\ #\nsecond line\n";
    let file = stage.file("value.txt", hostile);
    let (set, set_file) = (format!("ui.message={hostile}"), format!("config={file}"));
    let patch =
        ["component", "patch", "podinfo", "--cluster", "demo-cluster-01", "--set", &set, "--set-file", &set_file];
    let more = ["--set", "hosts[0].name=a.example.com", "--unset", "replicaCount"];
    stage.run(&[&patch[..], &more].concat()).good();
    let values = stage.run(&["inputs", "demo-cluster-01", "component"]).json()["inputs"][2]["values"].clone();
    assert_eq!(
        values,
        json!({
            "ui": {"color": "#2f855a", "message": hostile}, "hosts": [{"name": "a.example.com"}], "config": hostile
        })
    );
}

#[test]
fn a_yes_is_for_the_plan_that_was_shown() {
    let stage = Stage::seeded(&fleet());
    let unassign = ["fleet", "unassign", "component", "grafana", "--selector", "environment=prod"];
    let mut terminal = stage.terminal(120, &unassign);
    terminal.wait_for("Go on with", 1);
    // Meanwhile, somebody else makes another cluster to which the selector applies.
    let create = ["cluster", "create", "new", "--dns", "new.example.com", "--environment", "prod"];
    stage.run(&[&create[..], &["--assign", "component=grafana"]].concat()).good();
    terminal.enter("y\n");
    terminal.wait_for("Go on with", 2);
    terminal.enter("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 1);
    assert!(done.out.contains("Others have changed the fleet meanwhile"), "{}", done.out);
    assert_eq!(count(&stage, "platform_components=grafana"), 11, "nothing was taken away");

    // What changes nothing about the plan is no reason to ask again.
    let mut terminal = stage.terminal(120, &unassign);
    terminal.wait_for("Go on with", 1);
    stage.run(&["namespace", "create", "unrelated"]).good();
    terminal.enter("y\n");
    let done = terminal.finish().good();
    assert_eq!(done.out.matches("Go on with").count(), 1, "{}", done.out);
    assert_eq!(count(&stage, "platform_components=grafana"), 7);
}

#[test]
fn what_goes_is_told_first_and_in_full() {
    let stage = Stage::seeded(&fleet());
    let mut changed = String::new();
    for cluster in stage.run(&["cluster", "list"]).json().as_array().unwrap() {
        let mut cluster = cluster.clone();
        let id = cluster["id"].as_str().unwrap().to_owned();
        cluster["kind"] = json!("cluster");
        cluster["patches"] = json!({"base": {(format!("only_{}", id.replace('-', "_"))): "x"}});
        if id == "us-qa-07" {
            cluster["platform_components"] = json!([{"id": "base"}]);
        }
        writeln!(changed, "{cluster}").unwrap();
    }
    let refused = stage.feed(&["apply", "-f", "-", "--quiet"], &changed);
    assert_eq!(refused.code, 1);
    assert_snapshot!("losses-first", refused.err);
}
