//! `store`: a truncated change log is reported, checked and accepted.

use harness::eventually;
use insta::assert_snapshot;
use serde_json::json;

use crate::environment::{TestEnvironment, with_stable_values};

const CLUSTER: &str = "demo-cluster-01";
const DEMO: [&str; 3] = ["cert-manager", "traefik", "podinfo"];

/// Replaces values that differ between change logs by constants.
fn with_stable_log_values(check: impl FnOnce()) {
    with_stable_values(|| {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d+\.\d s", "AGE");
        settings.add_filter(r"\([0-9a-f]{12}, epoch (\d+), log [^)]+\)", "(DIGEST, epoch $1, log UUID)");
        settings.bind(check);
    });
}

/// The namespaces that the cluster gets when it polls.
fn polled(env: &TestEnvironment) -> Vec<String> {
    let answer = env.run(&["demo", "flux-namespaces", &format!("{CLUSTER}.k8s.example.com")]).success().json();
    let inputs = answer["inputs"].as_array().unwrap();
    inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect()
}

/// Creates a namespace and assigns it to the cluster.
fn assign_namespace(env: &TestEnvironment, namespace: &str) {
    env.run(&["namespace", "create", namespace, "--cluster", CLUSTER]).success();
}

/// Restores a backup of the change log, and waits until the server has noticed it.
fn restore_backup(env: &TestEnvironment, file: &str) {
    env.on_database(&["restore", "--replace", file]);
    eventually("the server notices the restored change log", &mut || {
        env.run(&["store", "-o", "name"]).out == "diverged\n"
    });
}

#[test]
fn accept_is_refused_while_the_change_log_is_followed() {
    let env = TestEnvironment::demo();
    let shown = env.run(&["store", "-o", "table"]).success();
    with_stable_log_values(|| assert_snapshot!("store-following", shown.out));
    let store = env.run(&["store"]).json();
    assert_eq!((&store["status"], &store["picture"]["revision"]), (&json!("following"), &json!(1)));
    assert_eq!(store["picture"], store["log"]);
    for accept in [&["store", "accept", "--yes"][..], &["store", "accept", "--dry-run"]] {
        let refused = env.run(accept);
        assert_eq!((refused.code, refused.out.as_str()), (4, ""));
        assert_snapshot!("store-nothing-to-accept", refused.err);
    }
    assert_eq!(env.revision(), 1);
}

#[test]
fn a_truncated_change_log_is_accepted_after_its_losses_are_confirmed() {
    let env = TestEnvironment::demo();
    env.on_database(&["backup", "older.log"]);
    assign_namespace(&env, "team");
    restore_backup(&env, "older.log");

    let shown = env.run(&["store", "-o", "table"]).success();
    with_stable_log_values(|| assert_snapshot!("store-diverged", shown.out));
    assert!(
        env.run(&["status", "-o", "table"])
            .success()
            .out
            .contains("diverged; for details, run flux-resourceset-cli store")
    );
    assert!(env.run(&["store", "-o", "yaml"]).success().out.starts_with("status: diverged\n"));
    let refused = env.run(&["namespace", "create", "x"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("store-diverged-refuses", refused.err);

    let planned = env.run(&["store", "accept", "--dry-run"]).success().json();
    assert_eq!((&planned["revision"], &planned["clusters"][0]["id"]), (&json!(2), &json!(CLUSTER)));
    assert_eq!(planned["clusters"][0]["inputs"]["namespaces"]["removed"], json!(["team"]));
    let unconfirmed = env.run(&["store", "accept"]);
    assert_eq!(unconfirmed.code, 1);
    assert_snapshot!("store-accept-unconfirmed", unconfirmed.err);
    assert_eq!(env.run_and_answer(120, "n\n", &["store", "accept"]).code, 1);
    assert_eq!(polled(&env), [&DEMO[..], &["team"]].concat(), "without confirmation, nothing is lost");
    env.run(&["export", "--output-dir", "served"]).success();

    let accepted =
        env.run(&["store", "accept", "--yes", "--reason", "the standby was behind", "-o", "table"]).success();
    assert_eq!(accepted.out, "the change log is accepted and followed (revision 2)\n");
    assert_eq!(polled(&env), DEMO);
    let store = env.run(&["store"]).json();
    assert_eq!((&store["status"], &store["picture"]["epoch"]), (&json!("following"), &json!(1)));
    assert_eq!(env.run(&["changes"]).json()[0]["reason"], "the standby was behind");
    env.run(&["apply", "-f", "served"]).success();
    assert_eq!(polled(&env), [&DEMO[..], &["team"]].concat(), "exported documents can be applied again");
}

#[test]
fn a_confirmation_is_valid_only_for_the_change_log_that_was_shown() {
    let env = TestEnvironment::demo();
    env.on_database(&["backup", "oldest.log"]);
    assign_namespace(&env, "one");
    env.on_database(&["backup", "older.log"]);
    assign_namespace(&env, "two");
    env.on_database(&["backup", "whole.log"]);
    restore_backup(&env, "older.log");

    let mut terminal = env.terminal(120, &["store", "accept"]);
    terminal.wait_for("Make this change on", 1);
    // Meanwhile, another backup is restored.
    restore_backup(&env, "oldest.log");
    terminal.enter("y\n");
    terminal.wait_for("Make this change on", 2);
    terminal.enter("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 1);
    let (first, second) = done.out.split_once("The fleet was changed meanwhile").unwrap();
    assert!(
        first.contains("diverged from it and is at revision 2") && second.contains("nothing was changed"),
        "{}",
        done.out
    );
    assert!(!first.contains("-one") && second.contains("-one") && second.contains("-two"), "{}", done.out);
    assert_eq!(polled(&env), [&DEMO[..], &["one", "two"]].concat());

    env.on_database(&["restore", "--replace", "whole.log"]);
    eventually("the server follows the change log again", &mut || {
        env.run(&["store", "-o", "name"]).out == "following\n"
    });
}

#[test]
fn the_change_log_of_another_fleet_is_not_accepted() {
    let (env, other) = (TestEnvironment::demo(), TestEnvironment::demo());
    let file = env.home().join("other.log");
    other.on_database(&["backup", file.to_str().unwrap()]);
    restore_backup(&env, file.to_str().unwrap());
    let shown = env.run(&["store", "-o", "table"]).success();
    with_stable_log_values(|| assert_snapshot!("store-other-fleet", shown.out));
    let refused = env.run(&["store", "accept", "--yes"]);
    assert_eq!(refused.code, 4);
    assert_snapshot!("store-other-fleet-refused", refused.err);
}

#[test]
fn a_read_only_server_shows_its_store_and_refuses_accept() {
    let env = TestEnvironment::with_settings(&[("API_MODE", "read-only"), ("SEED_FILE", "")]);
    assert_eq!(env.run(&["store"]).success().json()["status"], "following");
    let refused = env.run(&["store", "accept", "--yes"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("API_MODE=crud"), "{}", refused.err);
}
