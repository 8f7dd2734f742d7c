//! The environment of a test: a server, a home folder, and the command line tool.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use client::{Client, Settings};
use harness::{READ, Running, WRITE, eventually, repository};
use model::Value;
use nix::{
    pty::{Winsize, openpty},
    sys::signal,
    unistd::Pid,
};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_flux-resourceset-cli");

/// A server process and a home folder, in which the tool is run.
pub(crate) struct TestEnvironment {
    server: Running,
    home: TempDir,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandResult {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the command succeeded.
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }
}

impl TestEnvironment {
    /// A server with the demo fleet.
    pub(crate) fn demo() -> Self {
        Self::with_settings(&[("SEED_FILE", repository("data/seed.json").to_str().unwrap())])
    }

    /// A server without documents.
    pub(crate) fn empty() -> Self {
        Self::with_settings(&[("SEED_FILE", "")])
    }

    /// A server with a seed.
    pub(crate) fn with_seed(seed: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        Self::start(folder, &[("SEED_FILE", "seed.json")])
    }

    /// A server in mode crud with these settings.
    pub(crate) fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::start(tempfile::tempdir().unwrap(), settings)
    }

    fn start(folder: TempDir, settings: &[(&str, &str)]) -> Self {
        let environment = Self::launch(Arc::new(folder), settings);
        environment.wait_until_ready();
        environment
    }

    /// A server that may not be ready yet.
    pub(crate) fn launch(folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Self {
        let mut all = vec![("API_MODE", "crud")];
        all.extend(settings);
        let server = Running::launch(&harness::server(), folder, &all);
        Self { server, home: tempfile::tempdir().unwrap() }
    }

    fn wait_until_ready(&self) {
        let settings =
            Settings { url: self.url(), read: None, write: None, reason: None, timeout: harness::LONG, retries: 0 };
        let client = Client::new(settings).unwrap();
        eventually("the server is ready", &mut || client.ready().is_ok());
    }

    /// Restarts the server on the same port and database.
    pub(crate) fn restart(&mut self, settings: &[(&str, &str)]) {
        let (folder, address) = (self.server.folder.clone(), self.server.address().to_owned());
        let mut all = vec![("API_MODE", "crud"), ("LISTEN_ADDR", &*address)];
        all.extend(settings);
        self.server.end();
        self.server = Running::launch(&harness::server(), folder, &all);
        self.wait_until_ready();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A program with the environment of an operator.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let tools = Path::new(BINARY).parent().unwrap().display();
        command
            .env_clear()
            .current_dir(self.home())
            .env("HOME", self.home())
            .env("PATH", format!("{tools}:{}", std::env::var("PATH").unwrap()))
            .env("FLUX_API_URL", self.url())
            .env("FLUX_API_TOKEN", READ)
            .env("FLUX_API_WRITE_TOKEN", WRITE);
        command
    }

    /// The tool, with arguments.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(BINARY);
        command.args(arguments);
        command
    }

    /// Runs the tool without a terminal.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandResult {
        run_to_end(self.tool(arguments).stdin(Stdio::null()))
    }

    /// Runs the tool with a text as standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], text: &str) -> CommandResult {
        let mut command = self.tool(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The tool may exit before it has read its input.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        command_result(&child.wait_with_output().unwrap())
    }

    /// Runs the tool on a terminal of this width. The result contains what the terminal shows.
    pub(crate) fn on_terminal(&self, columns: u16, arguments: &[&str]) -> CommandResult {
        self.terminal(columns, arguments).finish()
    }

    /// Runs the tool on a terminal and answers its question.
    pub(crate) fn run_and_answer(&self, columns: u16, answer: &str, arguments: &[&str]) -> CommandResult {
        let mut terminal = self.terminal(columns, arguments);
        terminal.wait_for("[y/N]", 1);
        terminal.enter(answer);
        terminal.finish()
    }

    /// Starts the tool on a terminal.
    pub(crate) fn terminal(&self, columns: u16, arguments: &[&str]) -> Terminal {
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let side = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = self.tool(arguments);
        let child = command.env("TERM", "xterm").stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let keyboard = File::from(pty.master);
        let mut screen = keyboard.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let reader = thread::spawn({
            let shown = shown.clone();
            move || {
                let mut bytes = [0; 4096];
                // Reading fails after all processes have closed the other side.
                while let Ok(count @ 1..) = screen.read(&mut bytes) {
                    shown.lock().unwrap().extend_from_slice(&bytes[..count]);
                }
            }
        });
        Terminal { child, keyboard, shown, reader }
    }

    /// Runs a shell script.
    pub(crate) fn shell(&self, script: &str) -> CommandResult {
        run_to_end(self.command("bash").args(["-euo", "pipefail", "-c", script]).stdin(Stdio::null()))
    }

    /// Writes a file in the home folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Stops the server gracefully, so that its database is complete, and copies the database.
    pub(crate) fn copy_database(self, to: &Path) {
        let pid = Pid::from_raw(self.server.pid().try_into().unwrap());
        signal::kill(pid, signal::Signal::SIGTERM).unwrap();
        let folder = self.server.folder.clone();
        assert!(self.server.wait().success());
        std::fs::copy(folder.path().join("data/flux-resourceset.db"), to).unwrap();
    }

    /// Runs a command of the server binary on its database, while the server runs.
    pub(crate) fn on_database(&self, arguments: &[&str]) {
        let done = run_to_end(harness::command(&harness::server(), self.server.folder.path()).args(arguments));
        assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    }

    /// The revision of the fleet.
    pub(crate) fn revision(&self) -> u64 {
        self.run(&["status"]).json()["revision"].as_u64().unwrap()
    }
}

/// The tool on a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub(crate) fn enter(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).replace("\r\n", "\n")
    }

    /// Waits until a text has been shown this many times.
    pub(crate) fn wait_for(&self, text: &str, times: usize) {
        eventually(text, &mut || self.shown().matches(text).count() >= times);
    }

    pub(crate) fn finish(mut self) -> CommandResult {
        let code = self.child.wait().unwrap().code().unwrap();
        let shown = self.shown.clone();
        self.reader.join().unwrap();
        let out = String::from_utf8(shown.lock().unwrap().clone()).unwrap().replace("\r\n", "\n");
        CommandResult { code, out, err: String::new() }
    }
}

fn run_to_end(command: &mut Command) -> CommandResult {
    command_result(&command.output().unwrap())
}

fn command_result(output: &std::process::Output) -> CommandResult {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    CommandResult { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Replaces values that differ between runs by constants.
pub(crate) fn with_stable_values<T>(check: impl FnOnce() -> T) -> T {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"127\.0\.0\.1:\d+", "SERVER");
    settings.add_filter(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z", "TIME");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "REQUEST");
    settings.bind(check)
}
