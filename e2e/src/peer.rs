//! A process of the stack, with a log of its own. It ends with the harness.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

pub(crate) struct Peer {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    log: PathBuf,
    process: Option<Child>,
}

impl Peer {
    /// A peer that is not started yet; its home is a folder of its own.
    pub(crate) fn new(name: &str, program: PathBuf, root: &Path) -> Self {
        let home = root.join(format!("{name}.home"));
        fs::create_dir_all(&home).unwrap();
        let home = home.display().to_string();
        let environment = ["HOME", "TMPDIR"].map(|variable| (variable.to_owned(), home.clone())).into_iter().collect();
        let log = root.join(format!("{name}.log"));
        Self { name: name.to_owned(), program, arguments: Vec::new(), environment, log, process: None }
    }

    pub(crate) fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Arguments in one line; none of them has a space.
    pub(crate) fn arguments(mut self, line: &str) -> Self {
        self.arguments.extend(line.split_whitespace().map(str::to_owned));
        self
    }

    pub(crate) fn environment(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn start(&mut self) {
        self.kill();
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        // The kernel kills the peer when the harness ends, however that happens.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program).args(&self.arguments);
        command.env_clear().envs(self.environment.iter().cloned()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.name));
        self.process = Some(process);
    }

    pub(crate) fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Ends it at once, as a machine that loses its power does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Why it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.process.as_mut()?.try_wait().unwrap()?;
        Some(format!("{} has ended ({status}); its last output:\n{}", self.name, self.last_lines()))
    }

    pub(crate) fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| !line.contains("\"level\":\"info\"")).collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}
