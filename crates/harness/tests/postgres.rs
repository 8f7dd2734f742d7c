//! The PostgreSQL server of the tests, and that nothing is left of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use harness::{LONG, Postgres, Proxy, eventually};

const TABLE: &str = "CREATE TABLE numbers (n int); INSERT INTO numbers VALUES (7)";
const READ: &str = "SELECT n FROM numbers";

/// The processes of a running server.
fn processes(server: &Path) -> Vec<PathBuf> {
    let lock = fs::read_to_string(server.join("data/postmaster.pid")).unwrap();
    let (postmaster, _) = lock.split_once('\n').unwrap();
    let parent = format!("\nPPid:\t{postmaster}\n");
    let is_child = |process: &Path| fs::read_to_string(process.join("status")).is_ok_and(|text| text.contains(&parent));
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|process| process.ends_with(postmaster) || is_child(process)).collect()
}

/// Whether a process is running, and not a zombie.
fn is_running(process: &Path) -> bool {
    fs::read_to_string(process.join("status")).is_ok_and(|text| !text.contains("\nState:\tZ"))
}

#[test]
fn databases_are_separate() {
    let server = Postgres::shared();
    let (one, other) = (server.database(), server.database());
    server.sql_at(&one, TABLE).unwrap();
    assert_eq!(server.sql_at(&one, READ).unwrap(), "7");
    assert!(server.sql_at(&other, READ).unwrap_err().contains("does not exist"));
    assert_eq!(server.sql("postgres", "SHOW fsync"), "off");
    assert_eq!(Postgres::start_with(&[("fsync", "on")]).sql("postgres", "SHOW fsync"), "on");
}

#[test]
fn data_outlives_a_stop_and_a_kill() {
    let server = Postgres::start();
    let url = server.database();
    server.sql_at(&url, TABLE).unwrap();
    server.stop();
    assert!(server.sql_at(&url, READ).unwrap_err().contains("refused"));
    server.run();
    assert_eq!(server.sql_at(&url, READ).unwrap(), "7");
    for _ in 0..2 {
        let processes = processes(server.folder());
        assert!(processes.iter().filter(|process| is_running(process)).count() > 1);
        server.kill();
        assert!(!processes.iter().any(|process| is_running(process)));
        assert!(server.sql_at(&url, READ).unwrap_err().contains("refused"));
        server.run();
        assert_eq!(server.sql_at(&url, READ).unwrap(), "7");
    }
    assert!(server.log().contains("was not properly shut down"), "{}", server.log());
    server.restart();
    assert_eq!(server.sql_at(&url, READ).unwrap(), "7");
}

#[test]
fn a_paused_server_does_not_answer_until_it_is_resumed() {
    let server = Postgres::start();
    let url = server.url("postgres");
    server.pause();
    let error = server.sql_at(&format!("{url}?connect_timeout=2"), "SELECT 1").unwrap_err();
    assert!(error.contains("timeout"), "{error}");
    server.resume();
    assert_eq!(server.sql_at(&url, "SELECT 1").unwrap(), "1");
}

#[test]
fn a_standby_follows_and_takes_over() {
    let primary = Postgres::start();
    primary.sql("postgres", TABLE);
    let standby = primary.standby();
    primary.sql("postgres", "INSERT INTO numbers VALUES (8)");
    standby.wait_for_replay_of(&primary);
    assert_eq!(standby.sql("postgres", READ), "7\n8");
    let write = "INSERT INTO numbers VALUES (9)";
    assert!(standby.sql_at(&standby.url("postgres"), write).unwrap_err().contains("read-only"));

    let proxy = Proxy::to(primary.port());
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
    primary.kill();
    standby.promote();
    proxy.retarget(standby.port());
    standby.sql_at(&url, write).unwrap();
    assert_eq!(standby.sql_at(&url, READ).unwrap(), "7\n8\n9");
}

#[test]
fn a_tls_server_refuses_connections_without_tls() {
    let server = Postgres::with_tls();
    let url = server.url("postgres");
    let ask =
        |how: &str| server.sql_at(&format!("{url}?{how}"), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    assert!(ask("sslmode=disable").unwrap_err().contains("no encryption"));
    let certificate = server.certificate();
    assert_eq!(ask(&format!("sslmode=verify-full&sslrootcert={}", certificate.display())).unwrap(), "t");
    assert_eq!(server.standby().sql("postgres", "SELECT status FROM pg_stat_wal_receiver"), "streaming");
}

/// Not a test of its own: the process that the test below kills.
#[test]
fn keeper() {
    let Ok(paused) = std::env::var("KEEP_POSTGRES") else { return };
    let server = Postgres::shared();
    if paused == "paused" {
        server.pause();
    }
    writeln!(std::io::stdout(), "\nkept {} {}", server.port(), server.folder().display()).unwrap();
    thread::sleep(LONG);
}

#[test]
fn nothing_is_left_of_a_server_when_its_test_is_killed() {
    for state in ["running", "paused"] {
        let mut keeper = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "keeper", "--nocapture"])
            .env("KEEP_POSTGRES", state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines().map_while(Result::ok);
        let kept = lines.find_map(|line| line.strip_prefix("kept ").map(str::to_owned)).unwrap();
        let (port, folder) = kept.split_once(' ').unwrap();
        let folder = Path::new(folder);
        let processes = processes(folder);
        assert!(processes.len() > 1);
        keeper.kill().unwrap();
        keeper.wait().unwrap();
        eventually("its folder is deleted", &mut || !folder.exists());
        assert!(!processes.iter().any(|process| is_running(process)));
        assert!(TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_err());
    }
}

#[test]
fn nothing_is_left_of_a_server_when_it_is_dropped() {
    let server = Postgres::start();
    let folder = server.folder().to_owned();
    server.kill();
    server.run();
    let processes = processes(&folder);
    drop(server);
    assert!(!folder.exists());
    assert!(!processes.iter().any(|process| is_running(process)));
}
