//! `apply`, `diff` and `export`.

use std::{fs, path::Path};

use insta::assert_snapshot;
use model::Value;
use serde_json::json;

use crate::environment::{TestEnvironment, with_stable_values};

/// A fleet of 1,000 clusters and their definitions.
fn large() -> Value {
    let ids = |what: &str, count: usize| (0..count).map(|at| json!({"id": format!("{what}-{at}")})).collect::<Vec<_>>();
    let clusters: Vec<_> = (0..1_000)
        .map(|at| {
            let id = format!("c{at:04}");
            let (environment, region) = (["dev", "qa", "prod"][at % 3], ["eu", "us"][at % 2]);
            json!({
                "id": id, "cluster_name": id, "cluster_dns": format!("{id}.example.com"),
                "environment": environment, "labels": {"region": region},
                "platform_components": ids("component", 5), "namespaces": ids("team", 5),
                "patches": {"component-0": {"replicaCount": (at % 7).to_string(), "message": "one\ntwo: \"three\" # four"}}
            })
        })
        .collect();
    let component = |at: usize| json!({"id": format!("component-{at}"), "component_path": "x", "oci_url": "https://charts.example.com"});
    json!({
        "clusters": clusters, "namespaces": ids("team", 5),
        "platform_components": (0..5).map(component).collect::<Vec<_>>()
    })
}

#[test]
fn a_thousand_clusters_are_copied_to_an_empty_server_in_one_change() {
    let (from, to) = (TestEnvironment::with_seed(&large()), TestEnvironment::empty());
    let tree = from.home().join("fleet").display().to_string();
    let exported = from.run(&["export", "--output-dir", &tree]).success();
    assert_eq!(exported.err, "exported 1010 documents of revision 1\n");

    assert_eq!(to.revision(), 0);
    let applied = to.run(&["apply", "-f", &tree]).success();
    assert_eq!(applied.json()["documents"].as_array().map(Vec::len), Some(1014), "and the four types");
    assert!(applied.err.contains("1010 to write, 0 unchanged"), "{}", applied.err);
    assert_eq!(to.revision(), 1, "it is one change");

    let diff = to.run(&["diff", "-f", &tree]);
    assert_eq!(
        (diff.code, diff.out.as_str(), diff.err.as_str()),
        (0, "", ""),
        "without differences, nothing is printed"
    );
    to.run(&["apply", "-f", &tree]).success();
    assert_eq!(to.revision(), 1, "applying an unchanged fleet makes no change");
    let everything =
        |env: &TestEnvironment| ["clusters", "namespaces", "components"].map(|ty| env.run(&["list", ty]).out);
    assert_eq!(everything(&from), everything(&to));
}

#[test]
fn an_export_writes_one_file_per_document_and_is_reproducible() {
    let env = TestEnvironment::demo();
    env.run(&["create", "rolebinding", "team:Admins", "--field", "role=view"]).success();
    let tree = env.home().join("fleet");
    let export = || env.run(&["export", "--output-dir", "fleet", "--prune"]).success();
    export();
    let read = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
    assert_snapshot!("exported-cluster", read("clusters/demo-cluster-01.yaml"));
    assert_snapshot!("exported-names", names(&tree).join("\n"));
    let before = fs::metadata(tree.join("namespaces/podinfo.yaml")).unwrap().modified().unwrap();
    env.run(&["delete", "rolebinding", "team:Admins"]).success();
    let again = export();
    assert!(again.err.contains("deleted: fleet/rolebindings/team%3A%41dmins.yaml"), "{}", again.err);
    assert_eq!(names(&tree).len(), 9);
    assert_eq!(fs::metadata(tree.join("namespaces/podinfo.yaml")).unwrap().modified().unwrap(), before);
    let printed = env.run(&["export", "namespaces"]).success();
    assert_eq!(env.run_with_input(&["diff", "-f", "-"], &printed.out).code, 0);
}

fn names(tree: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in fs::read_dir(tree).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            names.push(file.unwrap().path().strip_prefix(tree).unwrap().display().to_string());
        }
    }
    names.sort();
    names
}

#[test]
fn apply_reads_yaml_json_lists_and_seeds() {
    let env = TestEnvironment::empty();
    let yaml = "kind: namespace\nid: a\n---\nkind: namespaces\n_id: b\nlabels: {team: b}\n---\n";
    env.run_with_input(&["apply", "-f", "-"], yaml).success();
    let list = r#"[{"kind": "namespace", "id": "c"}] {"kind": "rolebinding", "id": "d", "role": "view"}"#;
    env.run_with_input(&["apply", "-f", "-"], list).success();
    let seed = harness::repository("data/seed.json").display().to_string();
    let folder = env.file("folder/deeper/e.yml", "kind: namespace\nid: e\n");
    env.file("folder/.hidden.yaml", "not: {read");
    env.file("folder/notes.txt", "not read");
    let folder = Path::new(&folder).parent().unwrap().parent().unwrap().display().to_string();
    env.run(&["apply", "-f", &seed, "-f", &folder]).success();
    assert_eq!(env.revision(), 3);
    let names = env.run(&["list", "namespaces", "-o", "name"]).out;
    let expected = ["a", "b", "c", "cert-manager", "e", "podinfo", "traefik"];
    assert_eq!(names, expected.map(|name| format!("namespace/{name}\n")).concat());
}

#[test]
fn a_diff_shows_what_apply_would_do() {
    let env = TestEnvironment::demo();
    env.run(&["export", "--output-dir", "fleet"]).success();
    let cluster = env.home().join("fleet/clusters/demo-cluster-01.yaml");
    let text = fs::read_to_string(&cluster).unwrap();
    // A different order of members is no difference.
    let (first, rest) = text.split_once("environment: dev\n").unwrap();
    fs::write(&cluster, format!("{first}{rest}environment: qa\n")).unwrap();
    env.file("fleet/namespaces/new.yaml", "kind: namespace\nid: new\nlabels: {team: new}\n");
    let diff = env.run(&["diff", "-f", "fleet"]);
    assert_eq!((diff.code, diff.err.as_str()), (1, ""));
    assert_snapshot!("diff", diff.out);
    let plan = env.run(&["apply", "-f", "fleet", "--dry-run", "-o", "table"]).success();
    assert_snapshot!("apply-dry-run", format!("{}{}", plan.err, plan.out));
    assert_eq!(env.revision(), 1, "neither changes anything");
    assert_snapshot!("apply", env.run(&["apply", "-f", "fleet", "-o", "table"]).success().out);
    assert_eq!(env.run(&["diff", "-f", "fleet"]).code, 0);
}

#[test]
fn apply_asks_before_a_cluster_loses_inputs() {
    let env = TestEnvironment::demo();
    env.run(&["export", "--output-dir", "fleet"]).success();
    let path = env.home().join("fleet/clusters/demo-cluster-01.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("  - id: dev-readers\n", "")).unwrap();
    let refused = env.run(&["apply", "-f", "fleet"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert_snapshot!("apply-needs-confirmation", refused.err);
    assert_eq!(env.revision(), 1);
    env.run(&["apply", "-f", "fleet", "--yes"]).success();
    assert_eq!(env.revision(), 2);
}

#[test]
fn pruning_needs_a_selector_and_confirmation() {
    let env = TestEnvironment::demo();
    let ours = "kind: namespace\nid: a\nlabels: {team: web}\n---\nkind: namespace\nid: b\nlabels: {team: web}\n";
    env.run_with_input(&["apply", "-f", "-"], ours).success();
    let less = ours.split("---").next().unwrap();
    env.run_with_input(&["apply", "-f", "-"], less).success();
    assert_eq!(env.revision(), 2, "documents without a file are not touched");
    let prune = ["apply", "-f", "-", "--prune", "--selector", "team=web"];
    let refused = env.run_with_input(&prune, less);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("namespace is removed: b"), "{}", refused.err);
    let diff = env.run_with_input(&["diff", "-f", "-", "--prune", "--selector", "team=web"], less);
    assert!(diff.code == 1 && diff.out.contains("+++ /dev/null"), "{diff:?}");
    env.run_with_input(&[&prune[..], &["--yes"]].concat(), less).success();
    let names = env.run(&["list", "namespace", "-o", "name"]).out;
    assert_eq!(names, "namespace/a\nnamespace/cert-manager\nnamespace/podinfo\nnamespace/traefik\n");
    assert_eq!(
        env.run_with_input(&["apply", "-f", "-", "--prune"], less).code,
        2,
        "--prune without a selector is refused"
    );
    env.file("emptied/a.YAML", "# nothing\n");
    env.file("emptied/b.yaml", less);
    let emptied = env.run(&["apply", "-f", "emptied", "--prune", "--selector", "team=web", "--yes"]);
    assert!(emptied.code == 1 && emptied.err.contains("emptied/a.YAML: the file contains no document"), "{emptied:?}");
    let nothing = env.run_with_input(&["apply", "-f", "-", "--prune", "--selector", "team=web", "--yes"], "");
    assert_eq!((nothing.code, env.revision()), (1, 3), "an empty file prunes nothing");
}

#[test]
fn every_broken_rule_is_reported_with_file_and_line() {
    let env = TestEnvironment::demo();
    env.file("bad/a.yaml", "kind: namespace\nid: a\nlabels:\n  \"a b\": c\n---\nkind: namespace\nid: B\n");
    env.file(
        "bad/b.json",
        r#"{"kind": "cluster", "id": "c", "cluster_name": "c", "cluster_dns": "x_y", "environment": "dev"}"#,
    );
    let refused = env.run(&["apply", "-f", "bad"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("broken-rules", refused.err);
    env.file("worse/a.yaml", "id: a\n---\nkind: gadget\nid: b\n---\nkind: namespace\n---\nkind: namespace\nid: c\n");
    env.file("worse/b.yaml", "kind: namespace\nid: c\n---\n- 7\n");
    env.file("worse/c.yaml", "a: [\n");
    let refused = env.run(&["apply", "-f", "worse"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("unusable-documents", refused.err);
    with_stable_values(|| assert_snapshot!("missing-file", env.run(&["apply", "-f", "nowhere"]).err));
    assert_eq!(env.revision(), 1);
}

#[test]
fn ambiguous_files_are_refused() {
    let env = TestEnvironment::demo();
    for (text, expected) in [
        (r#"{"kind": "namespace", "id": "a", "labels": {}, "labels": {"x": "y"}}"#, "\"labels\" appears twice"),
        (r#"{"namespaces": [{"id": "a"}], "namespaces": [{"id": "b"}]}"#, "\"namespaces\" appears twice"),
        ("kind: namespace\nid: a\nlabels:\n  <<: {x: y}\n", "stdin:4: merge keys (<<) are not supported"),
        ("kind: namespace\nid: a\nid: b\n", "stdin:3: "),
    ] {
        let refused = env.run_with_input(&["apply", "-f", "-"], text);
        assert!(refused.code == 1 && refused.err.contains(expected), "{text}: {}", refused.err);
    }
    assert_eq!(env.revision(), 1);
}

#[test]
fn apply_asks_before_it_restores_a_decommissioned_cluster() {
    let env = TestEnvironment::demo();
    env.run(&["export", "--output-dir", "fleet"]).success();
    env.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).success();
    let refused = env.run(&["apply", "-f", "fleet"]);
    assert_eq!((refused.code, env.revision()), (1, 2));
    assert!(refused.err.contains("decommissioned, would be restored: cluster/demo-cluster-01"), "{}", refused.err);
    let applied = env.run(&["apply", "-f", "fleet", "--yes", "-o", "table"]).success();
    assert!(applied.out.contains("cluster/demo-cluster-01 restored"), "{}", applied.out);
}

#[test]
fn export_prune_deletes_only_exported_files() {
    let env = TestEnvironment::demo();
    env.run(&["export", "--output-dir", "fleet"]).success();
    env.file("fleet/namespaces/kustomization.yaml", "kind: Kustomization\n");
    env.file("fleet/namespaces/other.yaml", "kind: namespace\nid: another\n");
    env.file("fleet/namespaces/gone.yaml", "kind: namespace\nid: gone\n");
    let again = env.run(&["export", "--output-dir", "fleet", "--prune"]).success();
    assert!(again.err.contains("deleted: fleet/namespaces/gone.yaml\n"), "{}", again.err);
    let names = names(&env.home().join("fleet"));
    let names: Vec<_> = names.iter().filter(|name| name.starts_with("namespaces")).collect();
    let expected = ["cert-manager", "kustomization", "other", "podinfo", "traefik"];
    assert_eq!(names, expected.map(|name| format!("namespaces/{name}.yaml")).iter().collect::<Vec<_>>());
}

#[test]
fn a_component_is_pruned_before_its_dependencies() {
    let env = TestEnvironment::empty();
    let component = |id: &str, on: &str| {
        format!(
            "---\nkind: component\nid: {id}\ncomponent_path: x\noci_url: https://x.example\ncomponent_version: old\ndepends_on: [{on}]\n"
        )
    };
    let all = [component("a", ""), component("b", "a"), component("c", "b")].concat();
    env.run_with_input(&["apply", "-f", "-"], &all).success();
    let kept = component("z", "");
    let prune = ["apply", "-f", "-", "--prune", "--selector", "component_version=old", "--yes"];
    env.run_with_input(&prune, &kept).success();
    assert_eq!(env.run(&["component", "list", "-o", "name"]).out, "platform_component/z\n");
}

#[test]
fn pruning_asks_again_if_the_selected_documents_change() {
    let env = TestEnvironment::with_seed(&large());
    let kept = env.run(&["export", "clusters"]).success().out;
    // The file contains all clusters of the environment except two.
    let kept: Vec<_> =
        kept.split("---\n").filter(|text| !text.contains("id: c0001\n") && !text.contains("id: c0004\n")).collect();
    let file = env.file("clusters.yaml", &kept.join("---\n"));
    let mut terminal = env.terminal(120, &["apply", "-f", &file, "--prune", "--selector", "environment=qa"]);
    terminal.wait_for("Make this change on", 1);
    env.run(&["cluster", "patch", "c0004", "-p", "environment: prod"]).success();
    terminal.enter("y\n");
    terminal.wait_for("Make this change on", 2);
    terminal.enter("y\n");
    terminal.finish().success();
    assert_eq!(env.run(&["cluster", "get", "c0001"]).code, 3, "its removal was confirmed");
    env.run(&["cluster", "get", "c0004"]).success();
}

#[test]
fn a_plan_shows_that_a_cluster_loses_its_protection() {
    let env = TestEnvironment::demo();
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", "{deletion_protection: true, node_count: 1}"]).success();
    let patch = "{node_count: 2, vm_image: b, k0s_version: c, deletion_protection: false}";
    let refused = env.run(&["cluster", "patch", "demo-cluster-01", "-p", patch]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("cluster loses deletion_protection, changes"), "{}", refused.err);
}

#[test]
fn removals_from_a_protected_cluster_need_allow_removals() {
    let env = TestEnvironment::demo();
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", "{deletion_protection: true}"]).success();
    let commands: [&[&str]; 3] = [
        &["rolebinding", "unassign", "dev-readers", "--cluster", "demo-cluster-01"],
        &["fleet", "unassign", "rolebinding", "dev-readers", "--all", "--yes"],
        &["rolebinding", "delete", "dev-readers", "--cascade", "--yes"],
    ];
    for command in commands {
        let refused = env.run(command);
        assert_eq!(refused.code, 4, "{command:?}: {}", refused.err);
        assert!(refused.err.contains("1 from \"demo-cluster-01\""), "{command:?}: {}", refused.err);
        assert!(refused.err.contains("--allow-removals"), "{command:?}: {}", refused.err);
        let plan = env.run(&[command, &["--dry-run", "-o", "json"]].concat()).success().json();
        assert_eq!(plan["refused"]["removed"], 1, "{command:?}: {plan}");
        assert_eq!(env.run(&[command, &["--allow-removals", "0"]].concat()).code, 4, "{command:?}");
    }
    env.run(&[commands[1], &["--allow-removals", "1"]].concat()).success();
    env.run(&["rolebinding", "assign", "dev-readers", "--cluster", "demo-cluster-01"]).success();
    env.run(&[commands[0], &["--allow-removals", "1"]].concat()).success();
}

#[test]
fn control_characters_in_a_document_are_escaped_in_a_plan() {
    let env = TestEnvironment::demo();
    let plan = env.run(&[
        "cluster",
        "patch",
        "demo-cluster-01",
        "-p",
        "{\"patches\": {\"podinfo\": {\"k\\u001bc\\rx\": \"a\"}}}",
        "--dry-run",
        "-o",
        "table",
    ]);
    assert!(!plan.out.contains(['\u{1b}', '\r']), "{:?}", plan.out);
}
