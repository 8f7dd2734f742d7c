//! apply, diff, export.

use std::{fs, path::Path};

use insta::assert_snapshot;
use model::Value;
use serde_json::json;

use crate::stage::{Stage, settled};

/// A fleet of 1,000 clusters and what they refer to.
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
fn a_thousand_clusters_go_from_one_server_to_an_empty_one_as_one_change() {
    let (from, to) = (Stage::seeded(&large()), Stage::blank());
    let tree = from.home().join("fleet").display().to_string();
    let exported = from.run(&["export", "--output-dir", &tree]).good();
    assert_eq!(exported.err, "exported 1010 documents of revision 1\n");

    assert_eq!(to.revision(), 0);
    let applied = to.run(&["apply", "-f", &tree]).good();
    assert_eq!(applied.json()["documents"].as_array().map(Vec::len), Some(1014), "and the four types");
    assert!(applied.err.contains("1010 to write, 0 as they are"), "{}", applied.err);
    assert_eq!(to.revision(), 1, "it is one change");

    let diff = to.run(&["diff", "-f", &tree]);
    assert_eq!((diff.code, diff.out.as_str(), diff.err.as_str()), (0, "", ""), "nothing differs, nothing is said");
    to.run(&["apply", "-f", &tree]).good();
    assert_eq!(to.revision(), 1, "applying what is there is no change");
    let everything = |stage: &Stage| ["clusters", "namespaces", "components"].map(|ty| stage.run(&["list", ty]).out);
    assert_eq!(everything(&from), everything(&to));
}

#[test]
fn an_export_is_one_file_a_document_and_the_same_every_time() {
    let stage = Stage::demo();
    stage.run(&["create", "rolebinding", "team:Admins", "--field", "role=view"]).good();
    let tree = stage.home().join("fleet");
    let export = || stage.run(&["export", "--output-dir", "fleet", "--prune"]).good();
    export();
    let read = |path: &str| fs::read_to_string(tree.join(path)).unwrap();
    assert_snapshot!("exported-cluster", read("clusters/demo-cluster-01.yaml"));
    assert_snapshot!("exported-names", names(&tree).join("\n"));
    let before = fs::metadata(tree.join("namespaces/podinfo.yaml")).unwrap().modified().unwrap();
    stage.run(&["delete", "rolebinding", "team:Admins"]).good();
    let again = export();
    assert!(again.err.contains("removed: fleet/rolebindings/team%3A%41dmins.yaml"), "{}", again.err);
    assert_eq!(names(&tree).len(), 9);
    assert_eq!(fs::metadata(tree.join("namespaces/podinfo.yaml")).unwrap().modified().unwrap(), before);
    let printed = stage.run(&["export", "namespaces"]).good();
    assert_eq!(stage.feed(&["diff", "-f", "-"], &printed.out).code, 0);
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
fn yaml_json_many_documents_and_seeds_are_understood() {
    let stage = Stage::blank();
    let yaml = "kind: namespace\nid: a\n---\nkind: namespaces\n_id: b\nlabels: {team: b}\n---\n";
    stage.feed(&["apply", "-f", "-"], yaml).good();
    let list = r#"[{"kind": "namespace", "id": "c"}] {"kind": "rolebinding", "id": "d", "role": "view"}"#;
    stage.feed(&["apply", "-f", "-"], list).good();
    let seed = harness::repository("data/seed.json").display().to_string();
    let folder = stage.file("folder/deeper/e.yml", "kind: namespace\nid: e\n");
    stage.file("folder/.hidden.yaml", "not: {read");
    stage.file("folder/notes.txt", "not read");
    let folder = Path::new(&folder).parent().unwrap().parent().unwrap().display().to_string();
    stage.run(&["apply", "-f", &seed, "-f", &folder]).good();
    assert_eq!(stage.revision(), 3);
    let names = stage.run(&["list", "namespaces", "-o", "name"]).out;
    let expected = ["a", "b", "c", "cert-manager", "e", "podinfo", "traefik"];
    assert_eq!(names, expected.map(|name| format!("namespace/{name}\n")).concat());
}

#[test]
fn a_diff_shows_what_apply_would_do() {
    let stage = Stage::demo();
    stage.run(&["export", "--output-dir", "fleet"]).good();
    let cluster = stage.home().join("fleet/clusters/demo-cluster-01.yaml");
    let text = fs::read_to_string(&cluster).unwrap();
    // The order of members says nothing.
    let (first, rest) = text.split_once("environment: dev\n").unwrap();
    fs::write(&cluster, format!("{first}{rest}environment: qa\n")).unwrap();
    stage.file("fleet/namespaces/new.yaml", "kind: namespace\nid: new\nlabels: {team: new}\n");
    let diff = stage.run(&["diff", "-f", "fleet"]);
    assert_eq!((diff.code, diff.err.as_str()), (1, ""));
    assert_snapshot!("diff", diff.out);
    let plan = stage.run(&["apply", "-f", "fleet", "--dry-run", "-o", "table"]).good();
    assert_snapshot!("apply-dry-run", format!("{}{}", plan.err, plan.out));
    assert_eq!(stage.revision(), 1, "neither changes anything");
    assert_snapshot!("apply", stage.run(&["apply", "-f", "fleet", "-o", "table"]).good().out);
    assert_eq!(stage.run(&["diff", "-f", "fleet"]).code, 0);
}

#[test]
fn what_apply_takes_from_a_cluster_needs_a_yes() {
    let stage = Stage::demo();
    stage.run(&["export", "--output-dir", "fleet"]).good();
    let path = stage.home().join("fleet/clusters/demo-cluster-01.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("  - id: dev-readers\n", "")).unwrap();
    let refused = stage.run(&["apply", "-f", "fleet"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert_snapshot!("apply-needs-a-yes", refused.err);
    assert_eq!(stage.revision(), 1);
    stage.run(&["apply", "-f", "fleet", "--yes"]).good();
    assert_eq!(stage.revision(), 2);
}

#[test]
fn pruning_is_by_selector_and_is_shown_first() {
    let stage = Stage::demo();
    let ours = "kind: namespace\nid: a\nlabels: {team: web}\n---\nkind: namespace\nid: b\nlabels: {team: web}\n";
    stage.feed(&["apply", "-f", "-"], ours).good();
    let less = ours.split("---").next().unwrap();
    stage.feed(&["apply", "-f", "-"], less).good();
    assert_eq!(stage.revision(), 2, "what no file names is left alone");
    let prune = ["apply", "-f", "-", "--prune", "--selector", "team=web"];
    let refused = stage.feed(&prune, less);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("namespace is removed: b"), "{}", refused.err);
    let diff = stage.feed(&["diff", "-f", "-", "--prune", "--selector", "team=web"], less);
    assert!(diff.code == 1 && diff.out.contains("+++ /dev/null"), "{diff:?}");
    stage.feed(&[&prune[..], &["--yes"]].concat(), less).good();
    let names = stage.run(&["list", "namespace", "-o", "name"]).out;
    assert_eq!(names, "namespace/a\nnamespace/cert-manager\nnamespace/podinfo\nnamespace/traefik\n");
    assert_eq!(stage.feed(&["apply", "-f", "-", "--prune"], less).code, 2, "everything is never pruned");
    stage.file("emptied/a.YAML", "# nothing\n");
    stage.file("emptied/b.yaml", less);
    let emptied = stage.run(&["apply", "-f", "emptied", "--prune", "--selector", "team=web", "--yes"]);
    assert!(emptied.code == 1 && emptied.err.contains("emptied/a.YAML: there is no document in it"), "{emptied:?}");
    let nothing = stage.feed(&["apply", "-f", "-", "--prune", "--selector", "team=web", "--yes"], "");
    assert_eq!((nothing.code, stage.revision()), (1, 3), "an empty file prunes nothing");
}

#[test]
fn every_broken_rule_is_told_with_its_file_and_line() {
    let stage = Stage::demo();
    stage.file("bad/a.yaml", "kind: namespace\nid: a\nlabels:\n  \"a b\": c\n---\nkind: namespace\nid: B\n");
    stage.file(
        "bad/b.json",
        r#"{"kind": "cluster", "id": "c", "cluster_name": "c", "cluster_dns": "x_y", "environment": "dev"}"#,
    );
    let refused = stage.run(&["apply", "-f", "bad"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("broken-rules", refused.err);
    stage.file("worse/a.yaml", "id: a\n---\nkind: gadget\nid: b\n---\nkind: namespace\n---\nkind: namespace\nid: c\n");
    stage.file("worse/b.yaml", "kind: namespace\nid: c\n---\n- 7\n");
    stage.file("worse/c.yaml", "a: [\n");
    let refused = stage.run(&["apply", "-f", "worse"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("unusable-documents", refused.err);
    settled(|| assert_snapshot!("missing-file", stage.run(&["apply", "-f", "nowhere"]).err));
    assert_eq!(stage.revision(), 1);
}

#[test]
fn what_would_be_lost_in_a_file_is_refused() {
    let stage = Stage::demo();
    for (text, told) in [
        (r#"{"kind": "namespace", "id": "a", "labels": {}, "labels": {"x": "y"}}"#, "\"labels\" is there twice"),
        (r#"{"namespaces": [{"id": "a"}], "namespaces": [{"id": "b"}]}"#, "\"namespaces\" is there twice"),
        ("kind: namespace\nid: a\nlabels:\n  <<: {x: y}\n", "stdin:4: merge keys (<<) are not understood"),
        ("kind: namespace\nid: a\nid: b\n", "stdin:3: "),
    ] {
        let refused = stage.feed(&["apply", "-f", "-"], text);
        assert!(refused.code == 1 && refused.err.contains(told), "{text}: {}", refused.err);
    }
    assert_eq!(stage.revision(), 1);
}

#[test]
fn a_decommissioned_cluster_does_not_come_back_by_accident() {
    let stage = Stage::demo();
    stage.run(&["export", "--output-dir", "fleet"]).good();
    stage.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).good();
    let refused = stage.run(&["apply", "-f", "fleet"]);
    assert_eq!((refused.code, stage.revision()), (1, 2));
    assert!(refused.err.contains("cluster/demo-cluster-01 would be put in force again"), "{}", refused.err);
    let applied = stage.run(&["apply", "-f", "fleet", "--yes", "-o", "table"]).good();
    assert!(applied.out.contains("cluster/demo-cluster-01 put in force again"), "{}", applied.out);
}

#[test]
fn an_export_removes_only_what_an_export_has_written() {
    let stage = Stage::demo();
    stage.run(&["export", "--output-dir", "fleet"]).good();
    stage.file("fleet/namespaces/kustomization.yaml", "kind: Kustomization\n");
    stage.file("fleet/namespaces/other.yaml", "kind: namespace\nid: another\n");
    stage.file("fleet/namespaces/gone.yaml", "kind: namespace\nid: gone\n");
    let again = stage.run(&["export", "--output-dir", "fleet", "--prune"]).good();
    assert!(again.err.contains("removed: fleet/namespaces/gone.yaml\n"), "{}", again.err);
    let names = names(&stage.home().join("fleet"));
    let names: Vec<_> = names.iter().filter(|name| name.starts_with("namespaces")).collect();
    let expected = ["cert-manager", "kustomization", "other", "podinfo", "traefik"];
    assert_eq!(names, expected.map(|name| format!("namespaces/{name}.yaml")).iter().collect::<Vec<_>>());
}

#[test]
fn what_depends_on_something_is_pruned_before_it() {
    let stage = Stage::blank();
    let component = |id: &str, on: &str| {
        format!(
            "---\nkind: component\nid: {id}\ncomponent_path: x\noci_url: https://x.example\ncomponent_version: old\ndepends_on: [{on}]\n"
        )
    };
    let all = [component("a", ""), component("b", "a"), component("c", "b")].concat();
    stage.feed(&["apply", "-f", "-"], &all).good();
    let kept = component("z", "");
    let prune = ["apply", "-f", "-", "--prune", "--selector", "component_version=old", "--yes"];
    stage.feed(&prune, &kept).good();
    assert_eq!(stage.run(&["component", "list", "-o", "name"]).out, "platform_component/z\n");
}

#[test]
fn a_yes_to_pruning_is_for_what_the_selector_takes_then() {
    let stage = Stage::seeded(&large());
    let kept = stage.run(&["export", "clusters"]).good().out;
    // All clusters of the environment but two are in the file.
    let kept: Vec<_> =
        kept.split("---\n").filter(|text| !text.contains("id: c0001\n") && !text.contains("id: c0004\n")).collect();
    let file = stage.file("clusters.yaml", &kept.join("---\n"));
    let mut terminal = stage.terminal(120, &["apply", "-f", &file, "--prune", "--selector", "environment=qa"]);
    terminal.wait_for("Go on with", 1);
    stage.run(&["cluster", "patch", "c0004", "-p", "environment: prod"]).good();
    terminal.enter("y\n");
    terminal.wait_for("Go on with", 2);
    terminal.enter("y\n");
    terminal.finish().good();
    assert_eq!(stage.run(&["cluster", "get", "c0001"]).code, 3, "it was agreed that this one goes");
    stage.run(&["cluster", "get", "c0004"]).good();
}

#[test]
fn the_guard_that_goes_is_shown() {
    let stage = Stage::demo();
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", "{deletion_protection: true, node_count: 1}"]).good();
    let patch = "{node_count: 2, vm_image: b, k0s_version: c, deletion_protection: false}";
    let refused = stage.run(&["cluster", "patch", "demo-cluster-01", "-p", patch]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("cluster is not protected any more, changes"), "{}", refused.err);
}

#[test]
fn what_goes_from_a_protected_cluster_needs_its_number() {
    let stage = Stage::demo();
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", "{deletion_protection: true}"]).good();
    let commands: [&[&str]; 3] = [
        &["rolebinding", "unassign", "dev-readers", "--cluster", "demo-cluster-01"],
        &["fleet", "unassign", "rolebinding", "dev-readers", "--all", "--yes"],
        &["rolebinding", "delete", "dev-readers", "--cascade", "--yes"],
    ];
    for command in commands {
        let refused = stage.run(command);
        assert_eq!(refused.code, 4, "{command:?}: {}", refused.err);
        assert!(refused.err.contains("1 from \"demo-cluster-01\""), "{command:?}: {}", refused.err);
        assert!(refused.err.contains("--allow-removals"), "{command:?}: {}", refused.err);
        let plan = stage.run(&[command, &["--dry-run", "-o", "json"]].concat()).good().json();
        assert_eq!(plan["refused"]["removed"], 1, "{command:?}: {plan}");
        assert_eq!(stage.run(&[command, &["--allow-removals", "0"]].concat()).code, 4, "{command:?}");
    }
    stage.run(&[commands[1], &["--allow-removals", "1"]].concat()).good();
    stage.run(&["rolebinding", "assign", "dev-readers", "--cluster", "demo-cluster-01"]).good();
    stage.run(&[commands[0], &["--allow-removals", "1"]].concat()).good();
}

#[test]
fn a_name_in_a_document_cannot_write_over_a_plan() {
    let stage = Stage::demo();
    let plan = stage.run(&[
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
