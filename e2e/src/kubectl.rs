//! The cluster, through `kubectl`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::clock::pass;

#[derive(Clone)]
pub(crate) struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) config: PathBuf,
}

impl Kubectl {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let home = self.config.parent().unwrap_or(Path::new("/"));
        command.env_clear().env("KUBECONFIG", &self.config).env("HOME", home).args(arguments);
        command
    }

    /// Runs it; it may fail.
    pub(crate) fn attempt(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs it; it must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.attempt(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {}: {error}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// An object or a list of them; null if there is none.
    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let get = || self.attempt(&[&["get", "-o", "json", "--ignore-not-found"], arguments].concat());
        let mut output = get();
        // A server under load may fail once; that is not the failure of a scenario.
        for _ in 0..5 {
            if output.status.success() {
                break;
            }
            pass(Duration::from_secs(1));
            output = get();
        }
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl get {}: {error}", arguments.join(" "));
        if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
    }

    /// The requested objects, if any.
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        match self.get(arguments)["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// An object in `flux-system`.
    pub(crate) fn flux(&self, kind: &str, name: &str) -> Value {
        self.get(&["-n", "flux-system", kind, name])
    }

    /// Applies manifests, and takes over fields of other managers.
    pub(crate) fn apply(&self, manifests: &str) {
        let output = self.feed(&["apply", "--server-side", "--force-conflicts", "-f", "-"], manifests);
        assert!(output.status.success(), "kubectl apply: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn feed(&self, arguments: &[&str], text: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Follows objects of a kind, one JSON text for each state.
    pub(crate) fn watch(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(&[&["get", "-o", "json", "--watch"], arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// A condition: its status, reason and message.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.map_or_else(
        || "no condition yet".to_owned(),
        |found| {
            let text = |name: &str| found[name].as_str().unwrap_or_default().trim().to_owned();
            format!("{kind}={} {}: {}", text("status"), text("reason"), text("message"))
        },
    )
}

/// Whether the condition `Ready` of an object is true.
pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").starts_with("Ready=True")
}
