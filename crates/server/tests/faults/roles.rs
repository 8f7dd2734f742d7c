//! How servers connect to the database: encrypted, with few rights, through a pooler, or with another version of the tables.

use std::{process::Command, sync::Arc};

use harness::Postgres;
use serde_json::json;

use crate::{
    server::{Server, command},
    world::{Writing, assert_nothing_lost, converge, finish_without_failures, load, log, start},
};

#[test]
fn connections_are_encrypted_if_configured() {
    let postgres = Postgres::with_tls();
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let certificate = postgres.certificate();
    let url = |how: &str| format!("postgres://postgres@localhost:{}/fleet?{how}", postgres.port());
    let trusted = url(&format!("sslmode=verify-full&sslrootcert={}", certificate.display()));
    let server = start(&trusted, "crud");
    assert_eq!(server.put("/clusters/c1/namespaces/n1", &json!({})).status, 200);
    for refused in [url("sslmode=disable"), url("sslmode=verify-full")] {
        let server = crate::world::launch(&refused, "read-only");
        server.wait_until("it has tried", || server.log().contains("the fleet is not loaded"));
        assert_eq!(server.poll("c1.example", "namespaces").status, 503);
    }
}

/// A read-only replica needs no right to write.
#[test]
fn a_reader_needs_only_to_read() {
    let postgres = Postgres::start();
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let writer = start(&postgres.url("fleet"), "crud");
    for statement in ["CREATE ROLE reader LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"] {
        postgres.sql("fleet", statement);
    }
    let url = postgres.url("fleet").replace("postgres@", "reader@");
    let reader = start(&url, "read-only");
    assert_eq!(writer.put("/clusters/c1/namespaces/n1", &json!({})).status, 200);
    converge(&[&writer, &reader], &postgres.url("fleet"));
}

#[test]
fn a_server_that_is_older_than_the_tables_refuses_to_start() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let name = url.rsplit('/').next().unwrap();
    drop(start(&url, "crud"));
    postgres.sql(name, "INSERT INTO fleet_schema (version) VALUES (99)");
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path()).env("DATABASE_URL", &url).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("its tables are of version 99, made by a newer version of this program"), "{stderr}");
}

/// `PgBouncer` in transaction mode: every transaction may be on another connection.
#[test]
fn a_pooler_between_the_servers_and_the_database() {
    works_through_a_pooler("");
}

#[test]
fn a_pooler_that_drops_session_settings() {
    works_through_a_pooler("ignore_startup_parameters = options");
}

fn works_through_a_pooler(setting: &str) {
    let postgres = Postgres::start_with(&[("max_connections", "30")]);
    postgres.sql("postgres", "CREATE DATABASE fleet");
    let url = postgres.pooled("fleet", setting);
    let servers = [start(&url, "crud"), start(&url, "crud"), start(&url, "read-only")];
    let all: Vec<_> = servers.iter().collect();
    let loads = load(&all, 300);
    let writing = Writing::start(servers[..2].iter().map(|server| server.address().to_owned()).collect());
    writing.wait_for_more(200);
    let acknowledged = writing.finish();
    let url = postgres.url("fleet");
    converge(&all, &url);
    finish_without_failures(loads);
    assert_nothing_lost(&url, &acknowledged);
    assert!(servers.iter().all(|server| !server.log().contains("ERROR")), "{}", servers[0].log());
    assert!(log(&url).len() > 200);
}

/// An unreachable database is reported without the password of its URL.
#[test]
fn a_password_is_never_logged_or_printed() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = harness::Proxy::to(1);
    proxy.refuse();
    let url = format!("postgres://me:verysecret@127.0.0.1:{}/fleet", proxy.port());
    let server = Server::launch(Arc::new(folder), &[("RUST_LOG", "trace"), ("DATABASE_URL", &url)]);
    server.wait_until("it has tried", || server.log().contains("the fleet is not loaded"));
    assert!(!server.log().contains("verysecret"), "{}", server.log());
    let output = Command::new(env!("CARGO_BIN_EXE_flux-resourceset")).arg("--help").env("DATABASE_URL", &url).output();
    assert!(!String::from_utf8(output.unwrap().stdout).unwrap().contains("verysecret"));
}
