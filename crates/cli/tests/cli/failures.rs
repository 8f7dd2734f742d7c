//! Errors: their messages, hints and exit codes.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::Arc,
};

use insta::assert_snapshot;

use crate::environment::{CommandResult, TestEnvironment, with_stable_values};

#[test]
fn every_error_names_the_next_step() {
    let env = TestEnvironment::demo();
    env.run(&["patch", "cluster", "demo-cluster-01", "-p", "deletion_protection: true"]).success();
    let mut output = String::new();
    let mut record = |what: &str, expected: i32, CommandResult { code, out, err }: CommandResult| {
        assert_eq!((code, out.as_str()), (expected, ""), "{what}: {err}");
        writeln!(output, "# {what} (exit code {code})\n{err}").unwrap();
    };
    record("a wrong flag", 2, env.run(&["cluster", "list", "--selectr", "environment=dev"]));
    record("a wrong command", 2, env.run(&["clutser", "list"]));
    record("a wrong type", 2, env.run(&["list", "namespacs"]));
    record("a wrong selector", 2, env.run(&["cluster", "list", "--selector", "environment!=prod"]));
    record("a wrong id", 3, env.run(&["namespace", "get", "pod-info"]));
    record("a wrong cluster", 3, env.run(&["namespace", "assign", "podinfo", "--cluster", "demo-cluster-02"]));
    record("a wrong component", 3, env.run(&["fleet", "patch", "podinf", "--all", "--set", "a=b"]));
    record("a taken id", 4, env.run(&["namespace", "create", "podinfo"]));
    record("a delete of an assigned namespace", 4, env.run(&["namespace", "delete", "podinfo"]));
    record("a delete of a protected cluster", 4, env.run(&["cluster", "delete", "demo-cluster-01", "--yes"]));
    let component = ["component", "create", "x", "--oci-url", "ftp://x", "--oci-tag", "a b", "--depends-on", "ghost"];
    record("three broken rules", 1, env.run(&component));
    record("a cycle", 1, env.run(&["component", "patch", "cert-manager", "-p", "depends_on: [traefik]"]));
    record("nothing to change", 2, env.run(&["component", "patch", "podinfo"]));
    record(
        "no program to render with",
        1,
        env.run(&["render", "demo-cluster-01", "--flux-operator", "no-such-program"]),
    );
    with_stable_values(|| assert_snapshot!("failures", output));
}

#[test]
fn errors_distinguish_why_a_server_cannot_be_used() {
    let env = TestEnvironment::demo();
    let mut output = String::new();
    let mut record = |what: &str, expected: i32, variables: &[(&str, &str)], arguments: &[&str]| {
        let result = env.tool(arguments).envs(variables.iter().copied()).output().unwrap();
        let err = String::from_utf8(result.stderr).unwrap();
        assert_eq!(result.status.code(), Some(expected), "{what}: {err}");
        assert!(!err.contains("secret"), "a token is never printed: {err}");
        writeln!(output, "# {what} (exit code {expected})\n{err}").unwrap();
    };
    let list = ["cluster", "list"];
    // No process listens on this reserved port.
    record("no server at the URL", 1, &[("FLUX_API_URL", "http://127.0.0.1:1")], &list);
    record("a wrong token", 1, &[("FLUX_API_TOKEN", "secret")], &list);
    record("a token that only reads", 1, &[("FLUX_API_WRITE_TOKEN", harness::READ)], &["namespace", "create", "x"]);
    record("an invalid token", 2, &[("FLUX_API_TOKEN", "sec ret")], &list);
    record("no server configured", 2, &[("FLUX_API_URL", "")], &list);
    record("an invalid URL", 2, &[("FLUX_API_URL", "fleet.example.com")], &list);
    with_stable_values(|| assert_snapshot!("servers", output));
}

#[test]
fn a_read_only_server_is_reported_with_the_required_mode() {
    let env = TestEnvironment::with_settings(&[("API_MODE", "read-only"), ("SEED_FILE", "")]);
    let refused = env.run(&["cluster", "list"]);
    assert_eq!(refused.code, 1);
    with_stable_values(|| assert_snapshot!("read-only", refused.err));
    env.run(&["status"]).success();
}

#[test]
fn a_decommissioned_cluster_is_reported_with_the_restore_command() {
    let env = TestEnvironment::demo();
    env.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).success();
    let decommissioned = env.run(&["cluster", "get", "demo-cluster-01"]);
    assert_eq!(decommissioned.code, 3);
    assert_snapshot!("decommissioned", decommissioned.err);
    assert_eq!(env.run(&["cluster", "list", "--decommissioned", "-o", "name"]).out, "cluster/demo-cluster-01\n");
    env.run(&["cluster", "restore", "demo-cluster-01"]).success();
    env.run(&["cluster", "get", "demo-cluster-01"]).success();
    env.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).success();
    env.run(&["cluster", "purge", "demo-cluster-01"]).success();
    assert_eq!(env.run(&["cluster", "restore", "demo-cluster-01"]).code, 3);
}

#[test]
fn requests_are_retried_until_the_server_is_ready() {
    let demo = TestEnvironment::demo();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let settings = [("DATABASE_URL", "sqlite://later.db?mode=rw"), ("SEED_FILE", "")];
    let env = TestEnvironment::launch(folder.clone(), &settings);
    let mut list = env.tool(&["cluster", "list", "-o", "name"]);
    let mut list = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut message = String::new();
    let mut stderr = BufReader::new(list.stderr.take().unwrap());
    stderr.read_line(&mut message).unwrap();
    assert!(message.contains("the fleet has not been loaded from the store yet; retrying in"), "{message}");
    // The complete database appears atomically.
    let copy = folder.path().join("copy.db");
    demo.copy_database(&copy);
    fs::rename(copy, folder.path().join("later.db")).unwrap();
    let result = list.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(result.stdout).unwrap(), "cluster/demo-cluster-01\n");
}
