//! A folder that is removed when the test process ends, however it ends. Values in a `static` are never dropped, and a killed
//! process drops nothing, so a shell outside the process watches it: `guardian.sh`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};

pub(crate) struct Guardian {
    folder: PathBuf,
    shell: Mutex<Shell>,
}

struct Shell {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Guardian {
    /// Creates a folder. The command of the shell must run as the owner of the folder's processes.
    pub(crate) fn start(mut shell: Command) -> Self {
        // The shell compares it with paths of the kernel, which have no symbolic links.
        let folder = tempfile::Builder::new().prefix("flux-").tempdir().unwrap().keep().canonicalize().unwrap();
        let mut process = shell
            .args(["-c", include_str!("guardian.sh"), "guardian"])
            .arg(&folder)
            .current_dir("/")
            // A signal to the process group of the test must not end the guardian.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { folder, shell: Mutex::new(Shell { process, answers }) }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sends a signal to all processes that work in the folder. After `KILL` there are none.
    pub(crate) fn signal(&self, name: &str) {
        let mut shell = self.shell.lock().unwrap();
        writeln!(shell.process.stdin.as_mut().unwrap(), "{name}").unwrap();
        let answer = shell.answers.read_line(&mut String::new()).unwrap();
        assert_eq!(answer, 1, "the guardian of {} has ended", self.folder.display());
    }
}

impl Guardian {
    /// Ends the processes that work in the folder, and removes it.
    pub(crate) fn end(&mut self) {
        // A test may have failed while it held the lock.
        let shell = self.shell.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(shell.process.stdin.take());
        let _ = shell.process.wait();
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.end();
    }
}
