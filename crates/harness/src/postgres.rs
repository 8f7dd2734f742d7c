//! A real PostgreSQL server, with its own folder and port. It ends when its test process ends, however it ends, and leaves
//! nothing behind.

use std::{
    fs::{self, DirBuilder, File},
    hash::{BuildHasher as _, RandomState},
    iter,
    net::TcpListener,
    os::unix::{fs::DirBuilderExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{eventually, guardian::Guardian};
use installed::Installed;

mod installed;

/// TCP connections must use TLS.
const TLS_ONLY: &str = "\
local all all trust
hostssl all all 127.0.0.1/32 trust
hostssl replication all 127.0.0.1/32 trust
";

/// Clients trust the certificate itself; some refuse a CA certificate as a server's.
const CERTIFICATE: &str = "\
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
";

/// A PostgreSQL server.
pub struct Postgres {
    installed: Installed,
    guardian: Guardian,
    port: u16,
    settings: Vec<(String, String)>,
    postmaster: Mutex<Option<Child>>,
}

impl Postgres {
    /// Starts a server.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with settings, as in `("fsync", "on")`.
    #[must_use]
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let server = Self::initialized(settings);
        server.run();
        server
    }

    /// Starts a server that refuses connections without TLS. Its certificate is for `localhost` and `127.0.0.1`.
    #[must_use]
    pub fn with_tls() -> Self {
        let server = Self::initialized(&[("ssl", "on")]);
        fs::write(server.data().join("pg_hba.conf"), TLS_ONLY).unwrap();
        fs::write(server.data().join("openssl.cnf"), CERTIFICATE).unwrap();
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let files = ["-config", "openssl.cnf", "-keyout", "server.key", "-out", "server.crt"];
        succeed(server.command("openssl").args(["req", "-x509", "-days", "30"]).args(curve).args(files));
        server.run();
        server
    }

    /// The server that all tests of a process share. Each test creates a database of its own.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts another server, which follows this one.
    #[must_use]
    pub fn standby(&self) -> Self {
        let settings: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let standby = Self::with_empty_folder(&settings);
        let from = format!("--dbname=host=127.0.0.1 port={} user=postgres", self.port);
        let how = ["--pgdata=.", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
        succeed(standby.command("pg_basebackup").args(how).arg(from));
        standby.run();
        standby
    }

    fn initialized(settings: &[(&str, &str)]) -> Self {
        let server = Self::with_empty_folder(settings);
        let options = ["--auth=trust", "--username=postgres", "--no-sync", "--no-instructions"];
        succeed(server.command("initdb").args(options).args(["--encoding=UTF8", "--locale=C", "."]));
        server
    }

    fn with_empty_folder(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let installed = Installed::find();
        // In a container without all privileges of root, only its own user can read the working folder of a process.
        let guardian = Guardian::start(installed.command("sh", Path::new("/")));
        let server = Self { installed, guardian, port: free_port(), settings, postmaster: Mutex::default() };
        DirBuilder::new().mode(0o700).create(server.data()).unwrap();
        server.installed.set_owner(server.guardian.folder());
        server.installed.set_owner(&server.data());
        server
    }

    /// Starts it again, on the same data and port, after [`stop`](Self::stop) or [`kill`](Self::kill).
    pub fn run(&self) {
        let mut postmaster = self.postmaster.lock().unwrap();
        assert!(postmaster.is_none(), "it has not been stopped");
        let log = File::options().create(true).append(true).open(self.log_file()).unwrap();
        let folder = self.guardian.folder().display();
        let mut command = self.command("postgres");
        command
            .args(["-D", "."])
            .arg(format!("-cport={}", self.port))
            .arg(format!("-cunix_socket_directories={folder}"));
        command.args(["-clisten_addresses=127.0.0.1", "-cmax_connections=200", "-cwal_level=replica", "-cfsync=off"]);
        // Shared memory as files in the folder is removed with the folder.
        command.arg("-cdynamic_shared_memory_type=mmap");
        command.args(self.settings.iter().map(|(name, value)| format!("-c{name}={value}")));
        command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = postmaster.insert(command.spawn().unwrap());
        eventually("PostgreSQL accepts connections", &mut || {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "PostgreSQL has ended: {}", self.log());
            let mut ready = self.command("pg_isready");
            ready.arg("--quiet").arg(format!("--host={folder}")).arg(format!("--port={}", self.port));
            ready.status().unwrap().success()
        });
    }

    /// Shuts it down. Its clients are disconnected.
    pub fn stop(&self) {
        let mut process = self.postmaster.lock().unwrap().take().unwrap();
        kill(Pid::from_raw(process.id().try_into().unwrap()), Signal::SIGINT).unwrap();
        process.wait().unwrap();
    }

    /// Kills all of its processes at once.
    pub fn kill(&self) {
        let process = self.postmaster.lock().unwrap().take();
        self.guardian.signal("KILL");
        process.unwrap().wait().unwrap();
    }

    /// Shuts it down and starts it again.
    pub fn restart(&self) {
        self.stop();
        self.run();
    }

    /// Suspends all of its processes: it accepts connections and does not answer.
    pub fn pause(&self) {
        self.guardian.signal("STOP");
    }

    /// Resumes its processes.
    pub fn resume(&self) {
        self.guardian.signal("CONT");
    }

    /// Promotes a standby, so that it accepts writes.
    pub fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote()"), "t", "{}", self.log());
    }

    /// Waits until this standby has replayed everything that its primary has now.
    pub fn wait_for_replay_of(&self, primary: &Self) {
        let end = primary.sql("postgres", "SELECT pg_current_wal_flush_lsn()");
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{end}'");
        eventually("the standby has replayed everything", &mut || self.sql("postgres", &replayed) == "t");
    }

    /// Creates a database and returns its URL.
    #[must_use]
    pub fn database(&self) -> String {
        // Counted over all servers: a standby has the databases of its primary.
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of all its files, in which all its processes work.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.guardian.folder()
    }

    /// The certificate of a server [with TLS](Self::with_tls), which its clients are to trust.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.data().join("server.crt")
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap()
    }

    /// Starts `PgBouncer` for a database, in transaction mode: every transaction may use another connection. Returns its URL; it
    /// ends with the server. `more` has more lines of its configuration.
    #[must_use]
    pub fn pooled(&self, database: &str, more: &str) -> String {
        let (folder, port) = (self.guardian.folder().display(), free_port());
        let configuration = format!(
            "[databases]\n{database} = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\npool_mode = transaction\ndefault_pool_size = 3\nauth_type = any\n\
             logfile = {folder}/pooler.log\npidfile = {folder}/pooler.pid\n{more}\n",
            self.port
        );
        fs::write(self.guardian.folder().join("pooler.ini"), configuration).unwrap();
        // The guardian ends it, like every process that works in the folder.
        let mut pooler = self.command("pgbouncer");
        pooler.args(["--quiet", "--daemon", "../pooler.ini"]);
        succeed(&mut pooler);
        let url = format!("postgres://postgres@127.0.0.1:{port}/{database}");
        eventually("the pooler accepts connections", &mut || self.sql_at(&url, "SELECT 1").is_ok());
        url
    }

    /// The result of a statement. Columns are separated by `|`.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        // The socket works with and without TLS.
        let folder = self.guardian.folder().display();
        let url = format!("postgres://postgres@/{database}?host={folder}&port={}", self.port);
        self.sql_at(&url, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// The result of a statement in the database of a URL, or its error. The URL may be that of another server or of a
    /// [`Proxy`](crate::Proxy).
    pub fn sql_at(&self, url: &str, statement: &str) -> Result<String, String> {
        let mut psql = self.command("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
        run(&mut psql)
    }

    fn command(&self, program: &str) -> Command {
        self.installed.command(program, &self.data())
    }

    fn data(&self) -> PathBuf {
        self.guardian.folder().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.guardian.folder().join("log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.guardian.end();
        let postmaster = self.postmaster.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(process) = postmaster {
            let _ = process.wait();
        }
    }
}

fn succeed(command: &mut Command) -> String {
    run(command).unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()))
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// A free port. It is below those that the kernel gives to clients, so that no client has it when the server restarts.
fn free_port() -> u16 {
    let random = || RandomState::new().hash_one(());
    let mut ports = iter::repeat_with(|| 20_000 + u16::try_from(random() % 12_000).unwrap());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
