//! Settings: a bad one is one sentence and exit code 2.

use std::{fs, sync::Arc};

use serde_json::json;

use crate::harness::{Server, command};

/// Starts a server that must not start; answers what it says.
fn refusal(settings: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.json"), "{").unwrap();
    fs::create_dir(folder.path().join("types")).unwrap();
    fs::write(folder.path().join("types/x.yaml"), "kind: x\napiVersion: v1\nschema:\n  type: text\n").unwrap();
    let mut command = command(folder.path());
    for (name, value) in settings {
        match *value {
            "unset" => command.env_remove(name),
            value => command.env(name, value),
        };
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{settings:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    let told: Vec<_> = told.lines().filter(|line| !line.contains(" INFO ")).collect();
    assert_eq!(told.len(), 1, "{settings:?}: {told:?}");
    told[0].to_owned()
}

#[test]
fn a_missing_or_bad_setting_is_one_sentence() {
    let told: Vec<_> = [
        &[("AUTH_TOKEN", "unset")][..],
        &[("AUTH_TOKEN", "")],
        &[("AUTH_TOKEN", "two words")],
        &[("CRUD_AUTH_TOKEN", " ")],
        &[("API_MODE", "write")],
        &[("STORE_BACKEND", "mongodb")],
        &[("DATABASE_URL", "mysql://user:secret@host/db")],
        &[("DATABASE_URL", "sqlite://x.db?mode=maybe")],
        &[("DATABASE_URL", "sqlite::memory:")],
        &[("STORE_BACKEND", "postgres")],
        &[("DATABASE_URL", "postgres://me:secret@host/db?sslmode=maybe")],
        &[("DATABASE_URL", "postgres://me:secret@host/db"), ("DATABASE_POOL_SIZE", "0")],
        &[("DATABASE_URL", "postgres://me:secret@host/db"), ("DATABASE_POOL_TIMEOUT", "soon")],
        &[("DATABASE_URL", "postgres://me:secret@host/db"), ("DATABASE_STATEMENT_TIMEOUT", "2h")],
        &[("SNAPSHOT_MAX_AGE", "-1h")],
        &[("SNAPSHOT_FILE", "kept"), ("STORE_BACKEND", "memory")],
        &[("LISTEN_ADDR", "localhost")],
        &[("RUST_LOG", "a=b=c")],
        &[("HISTORY_RETENTION", "a while")],
        &[("SEED_FILE", "missing.json")],
        &[("SEED_FILE", "broken.json")],
        &[("OPENAPI_FILE", "missing.yaml")],
        &[("RESOURCES_DIR", "missing")],
        &[("RESOURCES_DIR", "types")],
    ]
    .into_iter()
    .map(|settings| {
        let told = refusal(settings);
        assert!(!told.contains("secret"), "{told}");
        told
    })
    .collect();
    insta::assert_snapshot!("bad-settings", told.join("\n"));
}

#[test]
fn every_setting_is_also_a_flag_and_help_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path()).arg("--help").output().unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    for name in [
        "API_MODE",
        "STORE_BACKEND",
        "DATABASE_URL",
        "AUTH_TOKEN",
        "CRUD_AUTH_TOKEN",
        "SEED_FILE",
        "OPENAPI_FILE",
        "HISTORY_RETENTION",
        "RESOURCES_DIR",
        "LISTEN_ADDR",
        "RUST_LOG",
    ] {
        let flag = format!("--{}", name.to_lowercase().replace('_', "-"));
        assert!(help.contains(&flag) && help.contains(name), "{name} is not in {help}");
    }
    assert!(!help.contains("read-token") && !help.contains("write-token"), "{help}");
}

#[test]
fn an_address_that_is_taken_is_told_in_a_sentence() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path()).env("LISTEN_ADDR", server.address()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with(&format!("flux-resourceset: cannot listen on {}: ", server.address())), "{told}");
}

/// Large pages of memory are never all used, which a small server would notice and a large one would not.
#[cfg(target_os = "linux")]
#[test]
fn only_a_large_fleet_is_held_in_large_pages() {
    for (namespaces, allowed) in [(10, "0"), (20_000, "1")] {
        let folder = tempfile::tempdir().unwrap();
        let namespaces: Vec<_> = (0..namespaces).map(|at| json!({"id": format!("n{at}")})).collect();
        fs::write(folder.path().join("seed.json"), json!({"namespaces": namespaces}).to_string()).unwrap();
        let server = Server::start_in(Arc::new(folder), &[("SEED_FILE", "seed.json")]);
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let told = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).unwrap();
        assert_eq!(told.trim(), allowed, "of {} documents", namespaces.len());
    }
}
