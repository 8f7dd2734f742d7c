//! nginx with the same answers as files: the baseline for polls.
//!
//! It is configured for speed: one process serves with `sendfile`, files stay open, compressed files are made beforehand, a
//! connection is accepted once it has sent data, and nothing is logged. All its files are in one folder, and it needs no
//! privileges.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    fleet::{TYPES, poll},
    http::HttpConnection,
    machine::{Core, Machine},
    server::{Server, free_address},
};

/// File descriptors in addition to those of cached files.
const SPARE: u64 = 500;

pub(crate) struct Nginx {
    process: Child,
    pub(crate) address: String,
    pub(crate) log: PathBuf,
    folder: PathBuf,
}

impl Nginx {
    /// Fetches the answers for some clusters from a server, and starts.
    pub(crate) fn start(machine: &Machine, under: &Path, server: &Server, names: &[String]) -> Self {
        let folder = under.join("nginx");
        fetch(&folder, server, names);
        let address = free_address();
        let files = (names.len() * TYPES.len() * 2) as u64;
        fs::write(folder.join("nginx.conf"), configuration(&address, files)).unwrap();
        let mut command = machine.command(Core::Measured, "TERM", "nginx");
        command.arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "error.log"]).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let nginx = Self { process, address, log: folder.join("error.log"), folder };
        harness::eventually("nginx listens", &mut || HttpConnection::open(&nginx.address).is_ok());
        nginx.compare(server, names);
        nginx
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Checks that both servers give the same answers; otherwise the comparison would mean nothing.
    fn compare(&self, server: &Server, names: &[String]) {
        let (mut theirs, mut ours) = (HttpConnection::open(&self.address).unwrap(), server.connect());
        for name in names.iter().step_by((names.len() / 20).max(1)) {
            for path in TYPES.map(|kind| poll(name, kind)) {
                let body = ours.get(&path, "").unwrap().ok().body;
                assert!(theirs.get(&path, "").unwrap().ok().body == body, "{path} differs");
                let gzip = "Accept-Encoding: gzip\r\n";
                let packed = theirs.get(&path, gzip).unwrap().ok();
                assert!(packed.is_gzip(), "nginx does not compress");
                assert!(packed.unpacked() == body, "{path} differs when compressed");
                assert!(ours.get(&path, gzip).unwrap().ok().unpacked() == body, "our {path} differs when compressed");
            }
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes the answers into files, under the paths by which they are polled, and compresses them.
fn fetch(folder: &Path, server: &Server, names: &[String]) {
    let root = folder.join("root");
    let mut connection = server.connect();
    for name in names {
        fs::create_dir_all(root.join(&poll(name, "")[1..])).unwrap();
        for path in TYPES.map(|kind| poll(name, kind)) {
            fs::write(root.join(&path[1..]), connection.get(&path, "").unwrap().ok().body).unwrap();
        }
    }
    let pack = "find . -type f -print0 | xargs -0 -n 500 -P 2 gzip -9 --no-name --keep";
    let packed = Command::new("sh").args(["-c", pack]).current_dir(&root).status().unwrap();
    assert!(packed.success(), "the files could not be compressed");
}

fn configuration(address: &str, files: u64) -> String {
    let limit = most_files(files + SPARE);
    let cached = limit.saturating_sub(SPARE);
    // Only their owner may read the files, and nginx started by root would read them as another user.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let user = if is_root { "user root;" } else { "" };
    format!(
        "daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile {limit};
pid nginx.pid;
events {{ worker_connections 250; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  default_type application/json;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  open_file_cache max={cached} inactive=1h;
  open_file_cache_valid 1h;
  open_file_cache_min_uses 1;
  open_file_cache_errors on;
  gzip_static on;
  server_tokens off;
  server {{ listen {address} backlog=4096 deferred; root root; }}
}}
"
    )
}

/// How many files nginx may have open: as many as it needs or, if that is more than this machine allows, the machine's limit. A
/// run polls one type, compressed or not, so a sixth of all files must fit.
fn most_files(wanted: u64) -> u64 {
    let raised =
        Command::new("prlimit").args([&format!("--nofile={wanted}:{wanted}"), "true"]).stderr(Stdio::null()).status();
    if raised.is_ok_and(|status| status.success()) {
        return wanted;
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let most = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap_or(u64::MAX);
    if most < wanted / 6 + SPARE {
        eprintln!("bench: nginx may have only {most} files open, so it opens some again for every poll");
    }
    most.min(wanted)
}
