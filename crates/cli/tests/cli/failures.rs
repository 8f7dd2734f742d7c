//! What goes wrong helps to the next step, and the exit code says what kind of wrong it was.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::Arc,
};

use insta::assert_snapshot;

use crate::stage::{Done, Stage, settled};

#[test]
fn every_failure_helps_to_the_next_step() {
    let stage = Stage::demo();
    stage.run(&["patch", "cluster", "demo-cluster-01", "-p", "deletion_protection: true"]).good();
    let mut told = String::new();
    let mut tell = |what: &str, expected: i32, Done { code, out, err }: Done| {
        assert_eq!((code, out.as_str()), (expected, ""), "{what}: {err}");
        writeln!(told, "# {what} (exit code {code})\n{err}").unwrap();
    };
    tell("a wrong flag", 2, stage.run(&["cluster", "list", "--selectr", "environment=dev"]));
    tell("a wrong command", 2, stage.run(&["clutser", "list"]));
    tell("a wrong type", 2, stage.run(&["list", "namespacs"]));
    tell("a wrong selector", 2, stage.run(&["cluster", "list", "--selector", "environment!=prod"]));
    tell("a wrong id", 3, stage.run(&["namespace", "get", "pod-info"]));
    tell("a wrong cluster", 3, stage.run(&["namespace", "assign", "podinfo", "--cluster", "demo-cluster-02"]));
    tell("a wrong component", 3, stage.run(&["fleet", "patch", "podinf", "--all", "--set", "a=b"]));
    tell("a taken id", 4, stage.run(&["namespace", "create", "podinfo"]));
    tell("a delete of what is in use", 4, stage.run(&["namespace", "delete", "podinfo"]));
    tell("a delete of what is protected", 4, stage.run(&["cluster", "delete", "demo-cluster-01", "--yes"]));
    let component = ["component", "create", "x", "--oci-url", "ftp://x", "--oci-tag", "a b", "--depends-on", "ghost"];
    tell("three broken rules", 1, stage.run(&component));
    tell("a cycle", 1, stage.run(&["component", "patch", "cert-manager", "-p", "depends_on: [traefik]"]));
    tell("nothing to change", 2, stage.run(&["component", "patch", "podinfo"]));
    tell("no tool to render with", 1, stage.run(&["render", "demo-cluster-01", "--flux-operator", "no-such-program"]));
    settled(|| assert_snapshot!("failures", told));
}

#[test]
fn a_server_that_cannot_be_used_is_told_apart() {
    let stage = Stage::demo();
    let mut told = String::new();
    let mut tell = |what: &str, expected: i32, variables: &[(&str, &str)], arguments: &[&str]| {
        let output = stage.tool(arguments).envs(variables.iter().copied()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(expected), "{what}: {err}");
        assert!(!err.contains("secret"), "a token is never told: {err}");
        writeln!(told, "# {what} (exit code {expected})\n{err}").unwrap();
    };
    let list = ["cluster", "list"];
    // Nobody listens on a port that is reserved.
    tell("a dead server", 1, &[("FLUX_API_URL", "http://127.0.0.1:1")], &list);
    tell("a wrong token", 1, &[("FLUX_API_TOKEN", "secret")], &list);
    tell("a token that only reads", 1, &[("FLUX_API_WRITE_TOKEN", harness::READ)], &["namespace", "create", "x"]);
    tell("a token that is none", 2, &[("FLUX_API_TOKEN", "sec ret")], &list);
    tell("no server", 2, &[("FLUX_API_URL", "")], &list);
    tell("no address", 2, &[("FLUX_API_URL", "fleet.example.com")], &list);
    settled(|| assert_snapshot!("servers", told));
}

#[test]
fn a_server_without_the_operators_api_says_how_to_get_it() {
    let stage = Stage::with(&[("API_MODE", "read-only"), ("SEED_FILE", "")]);
    let refused = stage.run(&["cluster", "list"]);
    assert_eq!(refused.code, 1);
    settled(|| assert_snapshot!("read-only", refused.err));
    stage.run(&["status"]).good();
}

#[test]
fn what_is_decommissioned_is_not_found_and_says_how_to_come_back() {
    let stage = Stage::demo();
    stage.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).good();
    let gone = stage.run(&["cluster", "get", "demo-cluster-01"]);
    assert_eq!(gone.code, 3);
    assert_snapshot!("decommissioned", gone.err);
    assert_eq!(stage.run(&["cluster", "list", "--decommissioned", "-o", "name"]).out, "cluster/demo-cluster-01\n");
    stage.run(&["cluster", "restore", "demo-cluster-01"]).good();
    stage.run(&["cluster", "get", "demo-cluster-01"]).good();
    stage.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).good();
    stage.run(&["cluster", "purge", "demo-cluster-01"]).good();
    assert_eq!(stage.run(&["cluster", "restore", "demo-cluster-01"]).code, 3);
}

#[test]
fn a_server_that_is_not_ready_is_waited_for() {
    let demo = Stage::demo();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let settings = [("DATABASE_URL", "sqlite://later.db?mode=rw"), ("SEED_FILE", "")];
    let stage = Stage::launch(folder.clone(), &settings);
    let mut list = stage.tool(&["cluster", "list", "-o", "name"]);
    let mut list = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut talk = BufReader::new(list.stderr.take().unwrap());
    talk.read_line(&mut said).unwrap();
    assert!(said.contains("the fleet has not been loaded from the store yet; trying again in"), "{said}");
    // A whole database comes into its place at once.
    let copy = folder.path().join("copy.db");
    demo.copy_database(&copy);
    fs::rename(copy, folder.path().join("later.db")).unwrap();
    let done = list.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "cluster/demo-cluster-01\n");
}
