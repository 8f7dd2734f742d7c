//! The store: a log that lost its end is told, looked at and accepted.

use harness::eventually;
use insta::assert_snapshot;
use serde_json::json;

use crate::stage::{Stage, settled};

const CLUSTER: &str = "demo-cluster-01";
const DEMO: [&str; 3] = ["cert-manager", "traefik", "podinfo"];

/// What differs between two logs is written as one word.
fn settled_log(check: impl FnOnce()) {
    settled(|| {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d+\.\d s", "AGE");
        settings.add_filter(r"\([0-9a-f]{12}, epoch (\d+), log [^)]+\)", "(DIGEST, epoch $1, log UUID)");
        settings.bind(check);
    });
}

/// The namespaces that the cluster gets when it polls.
fn polled(stage: &Stage) -> Vec<String> {
    let answer = stage.run(&["demo", "flux-namespaces", &format!("{CLUSTER}.k8s.example.com")]).good().json();
    let inputs = answer["inputs"].as_array().unwrap();
    inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect()
}

/// Gives the cluster a namespace.
fn give(stage: &Stage, namespace: &str) {
    stage.run(&["namespace", "create", namespace, "--cluster", CLUSTER]).good();
}

/// Puts an older log in the place of the one that the server follows, and waits until it notices.
fn put_back(stage: &Stage, file: &str) {
    stage.on_database(&["restore", "--replace", file]);
    eventually("it is noticed", &mut || stage.run(&["store", "-o", "name"]).out == "diverged\n");
}

#[test]
fn a_log_that_is_followed_is_shown_and_there_is_nothing_to_accept() {
    let stage = Stage::demo();
    let shown = stage.run(&["store", "-o", "table"]).good();
    settled_log(|| assert_snapshot!("store-following", shown.out));
    let store = stage.run(&["store"]).json();
    assert_eq!((&store["status"], &store["picture"]["revision"]), (&json!("following"), &json!(1)));
    assert_eq!(store["picture"], store["log"]);
    for accept in [&["store", "accept", "--yes"][..], &["store", "accept", "--dry-run"]] {
        let refused = stage.run(accept);
        assert_eq!((refused.code, refused.out.as_str()), (4, ""));
        assert_snapshot!("store-nothing-to-accept", refused.err);
    }
    assert_eq!(stage.revision(), 1);
}

#[test]
fn a_log_that_lost_its_end_is_accepted_by_who_has_seen_what_clusters_lose() {
    let stage = Stage::demo();
    stage.on_database(&["backup", "older.log"]);
    give(&stage, "team");
    put_back(&stage, "older.log");

    let shown = stage.run(&["store", "-o", "table"]).good();
    settled_log(|| assert_snapshot!("store-diverged", shown.out));
    assert!(
        stage.run(&["status", "-o", "table"]).good().out.contains("diverged: flux-resourceset-cli store says more")
    );
    assert!(stage.run(&["store", "-o", "yaml"]).good().out.starts_with("status: diverged\n"));
    let refused = stage.run(&["namespace", "create", "x"]);
    assert_eq!(refused.code, 1);
    assert_snapshot!("store-diverged-refuses", refused.err);

    let planned = stage.run(&["store", "accept", "--dry-run"]).good().json();
    assert_eq!((&planned["revision"], &planned["clusters"][0]["id"]), (&json!(2), &json!(CLUSTER)));
    assert_eq!(planned["clusters"][0]["inputs"]["namespaces"]["removed"], json!(["team"]));
    let unasked = stage.run(&["store", "accept"]);
    assert_eq!(unasked.code, 1);
    assert_snapshot!("store-accept-unasked", unasked.err);
    assert_eq!(stage.asked(120, "n\n", &["store", "accept"]).code, 1);
    assert_eq!(polled(&stage), [&DEMO[..], &["team"]].concat(), "nothing is lost without a yes");
    stage.run(&["export", "--output-dir", "served"]).good();

    let accepted = stage.run(&["store", "accept", "--yes", "--reason", "the standby was behind", "-o", "table"]).good();
    assert_eq!(accepted.out, "the log is accepted, and followed from here (revision 2)\n");
    assert_eq!(polled(&stage), DEMO);
    let store = stage.run(&["store"]).json();
    assert_eq!((&store["status"], &store["picture"]["epoch"]), (&json!("following"), &json!(1)));
    assert_eq!(stage.run(&["changes"]).json()[0]["reason"], "the standby was behind");
    stage.run(&["apply", "-f", "served"]).good();
    assert_eq!(polled(&stage), [&DEMO[..], &["team"]].concat(), "what was kept can be made again");
}

#[test]
fn a_yes_is_for_the_log_that_was_looked_at() {
    let stage = Stage::demo();
    stage.on_database(&["backup", "oldest.log"]);
    give(&stage, "one");
    stage.on_database(&["backup", "older.log"]);
    give(&stage, "two");
    stage.on_database(&["backup", "whole.log"]);
    put_back(&stage, "older.log");

    let mut terminal = stage.terminal(120, &["store", "accept"]);
    terminal.wait_for("Go on with", 1);
    // Meanwhile, somebody puts another backup back.
    put_back(&stage, "oldest.log");
    terminal.enter("y\n");
    terminal.wait_for("Go on with", 2);
    terminal.enter("n\n");
    let done = terminal.finish();
    assert_eq!(done.code, 1);
    let (first, second) = done.out.split_once("Others have changed the fleet meanwhile").unwrap();
    assert!(
        first.contains("which does not continue it, is at revision 2") && second.contains("nothing was changed"),
        "{}",
        done.out
    );
    assert!(!first.contains("-one") && second.contains("-one") && second.contains("-two"), "{}", done.out);
    assert_eq!(polled(&stage), [&DEMO[..], &["one", "two"]].concat());

    stage.on_database(&["restore", "--replace", "whole.log"]);
    eventually("it goes on by itself", &mut || stage.run(&["store", "-o", "name"]).out == "following\n");
}

#[test]
fn the_log_of_another_fleet_is_not_accepted() {
    let (stage, other) = (Stage::demo(), Stage::demo());
    let file = stage.home().join("other.log");
    other.on_database(&["backup", file.to_str().unwrap()]);
    put_back(&stage, file.to_str().unwrap());
    let shown = stage.run(&["store", "-o", "table"]).good();
    settled_log(|| assert_snapshot!("store-another-log", shown.out));
    let refused = stage.run(&["store", "accept", "--yes"]);
    assert_eq!(refused.code, 4);
    assert_snapshot!("store-another-log-refused", refused.err);
}

#[test]
fn a_server_that_only_answers_polls_shows_its_store_and_takes_no_word() {
    let stage = Stage::with(&[("API_MODE", "read-only"), ("SEED_FILE", "")]);
    assert_eq!(stage.run(&["store"]).good().json()["status"], "following");
    let refused = stage.run(&["store", "accept", "--yes"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("API_MODE=crud"), "{}", refused.err);
}
