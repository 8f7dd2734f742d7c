//! `fleet`: changes of many clusters.

use std::fmt::Write as _;

use insta::assert_snapshot;
use model::Value;
use serde_json::json;

use crate::environment::TestEnvironment;

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

fn count(env: &TestEnvironment, selector: &str) -> usize {
    env.run(&["cluster", "list", "--selector", selector]).json().as_array().unwrap().len()
}

#[test]
fn a_fleet_command_is_planned_confirmed_and_made_as_one_change() {
    let env = TestEnvironment::with_seed(&fleet());
    let command = ["fleet", "patch", "grafana", "--selector", "environment=dev,region=eu", "--set", "replicas=3"];
    let unconfirmed = env.run(&command);
    assert_eq!((unconfirmed.code, env.revision()), (1, 1), "without confirmation nothing is changed");
    assert_snapshot!("fleet-patch-unconfirmed", unconfirmed.err);
    let planned = env.run(&[&command[..], &["--dry-run"]].concat()).success();
    assert_eq!(planned.json()["totals"], json!({"dev": {"clusters": 2, "added": 0, "changed": 2, "removed": 0}}));
    assert_eq!(env.revision(), 1);
    let done = env.run(&[&command[..], &["--yes"]].concat()).success();
    assert_eq!(done.json()["documents"].as_array().map(Vec::len), Some(2));
    assert_eq!(env.revision(), 2, "it is one change");
    env.run(&[&command[..], &["--yes"]].concat()).success();
    assert_eq!(env.revision(), 2, "a repeated command changes nothing");
}

#[test]
fn documents_are_assigned_and_unassigned_by_selector() {
    let env = TestEnvironment::with_seed(&fleet());
    env.run(&["fleet", "assign", "component", "loki", "--selector", "environment=prod", "-y"]).success();
    assert_eq!((count(&env, "platform_components=loki"), env.revision()), (4, 2));
    // An existing reference keeps its overrides.
    env.run(&["fleet", "assign", "components", "grafana", "--all", "-y"]).success();
    assert_eq!(count(&env, "platform_components=grafana"), 12);
    let disabled = env.run(&["cluster", "get", "us-dev-09"]).json();
    assert_eq!(disabled["platform_components"][1], json!({"id": "grafana", "enabled": false}));
    env.run(&["fleet", "unassign", "component", "loki", "--selector", "region=eu", "-y"]).success();
    assert_eq!(count(&env, "platform_components=loki"), 2);
    let none = env.run(&["fleet", "unassign", "component", "loki", "--selector", "regoin=eu", "-y"]);
    assert_eq!(
        (none.code, count(&env, "platform_components=loki")),
        (1, 2),
        "a misspelt key selects no cluster instead of all"
    );
    let unselected = env.run(&["fleet", "unassign", "component", "loki", "-y"]);
    assert_eq!(unselected.code, 2, "without a selector, --all is required");
    assert!(unselected.err.contains("<--selector <KEY=VALUE,…>|--all>"), "{}", unselected.err);
    let both = ["fleet", "unassign", "component", "loki", "--all", "--selector", "environment=prod", "-y"];
    assert_eq!(env.run(&both).code, 2, "a selector and --all contradict each other");
}

#[test]
fn versions_are_set_shown_and_reset() {
    let env = TestEnvironment::with_seed(&fleet());
    let set = |tag: &str, selector: &str| {
        env.run(&["fleet", "set-version", "grafana", "--oci-tag", tag, "--selector", selector, "-y"]).success();
    };
    set("v1.0.0-2", "environment=dev,region=eu");
    set("v1.0.0-10", "environment=qa,region=eu");
    set("v1.1.0-rc1", "environment=qa,region=us");
    set("v1.1.0", "id=us-dev-03");
    set("latest", "id=eu-prod-02");
    assert_eq!(count(&env, "platform_components=grafana"), 10, "a version does not assign");
    assert_snapshot!("fleet-versions", env.run(&["fleet", "versions", "grafana", "-o", "wide"]).success().out);
    let path = ["fleet", "set-version", "grafana", "--component-path", "core/grafana/2.0.0", "--all", "-y"];
    env.run(&path).success();
    env.run(&["fleet", "set-version", "grafana", "--reset", "--all", "-y"]).success();
    assert_snapshot!("fleet-versions-reset", env.run(&["fleet", "versions", "grafana", "-o", "table"]).success().out);
    assert_eq!(env.run(&["fleet", "set-version", "grafana", "--all"]).code, 2, "a version is required");
}

#[test]
fn values_with_special_characters_are_kept_unchanged() {
    let env = TestEnvironment::demo();
    let value = "a,b=c \"quoted\" 'too' {x} \\ #\nsecond line\n";
    let file = env.file("value.txt", value);
    let (set, set_file) = (format!("ui.message={value}"), format!("config={file}"));
    let patch =
        ["component", "patch", "podinfo", "--cluster", "demo-cluster-01", "--set", &set, "--set-file", &set_file];
    let more = ["--set", "hosts[0].name=a.example.com", "--unset", "replicaCount"];
    env.run(&[&patch[..], &more].concat()).success();
    let values = env.run(&["inputs", "demo-cluster-01", "component"]).json()["inputs"][2]["values"].clone();
    assert_eq!(
        values,
        json!({
            "ui": {"color": "#2f855a", "message": value}, "hosts": [{"name": "a.example.com"}], "config": value
        })
    );
}

#[test]
fn a_confirmation_is_valid_only_for_the_plan_that_was_shown() {
    let env = TestEnvironment::with_seed(&fleet());
    let unassign = ["fleet", "unassign", "component", "grafana", "--selector", "environment=prod"];
    let mut terminal = env.terminal(120, &unassign);
    terminal.wait_for("Make this change on", 1);
    // Meanwhile, another operator creates a cluster that the selector matches.
    let create = ["cluster", "create", "new", "--dns", "new.example.com", "--environment", "prod"];
    env.run(&[&create[..], &["--assign", "component=grafana"]].concat()).success();
    terminal.enter("y\n");
    terminal.wait_for("Make this change on", 2);
    terminal.enter("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 1);
    assert!(done.out.contains("The fleet was changed meanwhile"), "{}", done.out);
    assert_eq!(count(&env, "platform_components=grafana"), 11, "nothing was removed");

    // A change that does not affect the plan is no reason to ask again.
    let mut terminal = env.terminal(120, &unassign);
    terminal.wait_for("Make this change on", 1);
    env.run(&["namespace", "create", "unrelated"]).success();
    terminal.enter("y\n");
    let done = terminal.finish().success();
    assert_eq!(done.out.matches("Make this change on").count(), 1, "{}", done.out);
    assert_eq!(count(&env, "platform_components=grafana"), 7);
}

#[test]
fn a_plan_lists_removals_first_and_in_full() {
    let env = TestEnvironment::with_seed(&fleet());
    let mut changed = String::new();
    for cluster in env.run(&["cluster", "list"]).json().as_array().unwrap() {
        let mut cluster = cluster.clone();
        let id = cluster["id"].as_str().unwrap().to_owned();
        cluster["kind"] = json!("cluster");
        cluster["patches"] = json!({"base": {(format!("only_{}", id.replace('-', "_"))): "x"}});
        if id == "us-qa-07" {
            cluster["platform_components"] = json!([{"id": "base"}]);
        }
        writeln!(changed, "{cluster}").unwrap();
    }
    let refused = env.run_with_input(&["apply", "-f", "-", "--quiet"], &changed);
    assert_eq!(refused.code, 1);
    assert_snapshot!("losses-first", refused.err);
}
