//! Settings: an invalid one is a one-line error and exit code 2.

use std::{fs, sync::Arc};

use serde_json::json;

use crate::harness::{Server, command};

/// Starts a server with settings that it must refuse; returns its error message.
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
    let lines = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = lines.lines().filter(|line| !line.contains(" INFO ")).collect();
    assert_eq!(lines.len(), 1, "{settings:?}: {lines:?}");
    lines[0].to_owned()
}

#[test]
fn a_missing_or_invalid_setting_is_one_line() {
    let lines: Vec<_> = [
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
        &[("SNAPSHOT_FILE", "snapshot"), ("STORE_BACKEND", "memory")],
        &[("LISTEN_ADDR", "localhost")],
        &[("ADMIN_ADDR", "9090")],
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
        let lines = refusal(settings);
        assert!(!lines.contains("secret"), "{lines}");
        lines
    })
    .collect();
    insta::assert_snapshot!("bad-settings", lines.join("\n"));
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
        "ADMIN_ADDR",
        "RUST_LOG",
    ] {
        let flag = format!("--{}", name.to_lowercase().replace('_', "-"));
        assert!(help.contains(&flag) && help.contains(name), "{name} is not in {help}");
    }
    assert!(!help.contains("read-token") && !help.contains("write-token"), "{help}");
}

#[test]
fn an_address_in_use_is_reported_in_one_line() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path()).env("LISTEN_ADDR", server.address()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with(&format!("flux-resourceset: cannot listen on {}: ", server.address())), "{stderr}");
}

/// Huge pages are never used completely, which matters for the memory of a small server and not for that of a large one.
#[cfg(target_os = "linux")]
#[test]
fn only_a_large_fleet_uses_huge_pages() {
    for (namespaces, allowed) in [(10, "0"), (20_000, "1")] {
        let folder = tempfile::tempdir().unwrap();
        let namespaces: Vec<_> = (0..namespaces).map(|at| json!({"id": format!("n{at}")})).collect();
        fs::write(folder.path().join("seed.json"), json!({"namespaces": namespaces}).to_string()).unwrap();
        let server = Server::start_in(Arc::new(folder), &[("SEED_FILE", "seed.json")]);
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let enabled = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).unwrap();
        assert_eq!(enabled.trim(), allowed, "{} documents", namespaces.len());
    }
}

/// The status of a request without a token to an address.
fn status_at(address: &str, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    agent.get(format!("http://{address}{path}")).call().unwrap().status().as_u16()
}

#[test]
fn metrics_are_served_only_at_the_admin_address_if_it_is_set() {
    for mode in ["crud", "read-only"] {
        let server = Server::start(&[("ADMIN_ADDR", "127.0.0.1:0"), ("API_MODE", mode)]);
        let log = server.log();
        let admin = log.split_once("admin.address=").unwrap().1.split_whitespace().next().unwrap();
        let at = |address: &str| ["/health", "/ready", "/metrics"].map(|path| status_at(address, path));
        assert_eq!(at(admin), [200, 200, 200], "{mode}");
        assert_eq!(at(server.address()), [200, 200, 401], "{mode}");
        assert_eq!(server.get("/metrics").status, 404, "{mode}: as for any unknown path");
        for path in ["/clusters", "/openapi.yaml", "/api/v2/flux/clusters"] {
            assert_eq!(status_at(admin, path), 401, "{mode}: {path}");
        }
        // Requests at both addresses are counted.
        let agent: ureq::Agent = ureq::Agent::new_with_defaults();
        let text = agent.get(format!("http://{admin}/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
        assert!(text.contains(r#"route="/metrics",status="200""#), "{text}");
        server.signal(nix::sys::signal::SIGTERM);
        assert!(server.wait().success(), "{mode}");
    }
    let alone = Server::start(&[("ADMIN_ADDR", "")]);
    assert_eq!(alone.get_open("/metrics").status, 200);
}

#[test]
fn a_failure_is_logged_with_the_address_of_the_client() {
    let server = Server::crud();
    let forwarded = [("x-forwarded-for", "203.0.113.7")];
    let statuses = [
        server.exchange("GET", "/api/v2/flux/clusters/unknown.example/namespaces", &forwarded, None).status,
        server.write("POST", "/namespaces", &json!({"id": 1}), &forwarded).status,
    ];
    assert_eq!(statuses, [401, 422]);
    let is_refusal = |line: &&str| line.contains("a request was refused");
    server.wait_until("both are logged", || server.log().lines().filter(is_refusal).count() == 2);
    let log = server.log();
    let refused: Vec<_> = log.lines().filter(is_refusal).collect();
    assert!(refused.iter().all(|line| line.contains(" client.address=127.0.0.1:")), "{refused:?}");
    assert!(!log.contains("203.0.113.7"), "a forwarded address is not trusted: {log}");
}
