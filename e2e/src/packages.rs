//! The packages of the components: a small chart under the names of the demo's charts, in a repository and in the registry, and
//! an artifact with manifests.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use harness::repository;

use crate::stack::Stack;

/// The files of a repository of charts by their paths: the demo's charts, and podinfo also in a second version.
pub(crate) fn chart_repository(stack: &Stack, port: u16) -> BTreeMap<String, Vec<u8>> {
    let folder = stack.root.path().join("charts");
    for name in ["cert-manager", "traefik", "podinfo"] {
        pack(stack, name, "1.0.0", &folder);
    }
    pack(stack, "podinfo", "1.1.0", &folder);
    let mut index = stack.tool("helm/helm");
    index.args(["repo", "index", "--url", &format!("http://127.0.0.1:{port}")]).arg(&folder);
    succeed(index);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (format!("/{}", path.file_name().unwrap().display()), fs::read(&path).unwrap())).collect()
}

/// Pushes a version of the chart into the registry.
pub(crate) fn push_chart(stack: &Stack, version: &str) {
    let folder = stack.root.path().join("oci-charts");
    pack(stack, "in-registry", version, &folder);
    let mut command = stack.tool("helm/helm");
    command.arg("push").arg(folder.join(format!("in-registry-{version}.tgz")));
    command.arg(format!("oci://{}/charts", stack.registry)).arg("--plain-http");
    succeed(command);
}

/// Pushes the artifact into the registry, with a tag that its objects contain.
pub(crate) fn push_artifact(stack: &Stack, tag: &str) {
    let folder = stack.root.path().join(format!("artifact-{tag}"));
    copy(&repository("e2e/artifact"), &folder, &|text| text.replace("BUILD", tag));
    push_folder(stack, &folder, "platform", tag);
}

/// Pushes a folder into the registry.
pub(crate) fn push_folder(stack: &Stack, folder: &Path, name: &str, tag: &str) {
    let address = format!("oci://{}/{name}:{tag}", stack.registry);
    let mut command = stack.tool("flux/flux");
    command.args(["push", "artifact", &address, "--source=e2e", "--insecure-registry"]);
    command.arg(format!("--revision={tag}")).arg(format!("--path={}", folder.display()));
    succeed(command);
}

fn pack(stack: &Stack, name: &str, version: &str, folder: &Path) {
    let source = stack.root.path().join(format!("chart-{name}-{version}"));
    let renamed = |text: String| text.replace("name: podinfo", &format!("name: {name}"));
    copy(&repository("e2e/chart"), &source, &renamed);
    let mut command = stack.tool("helm/helm");
    command.arg("package").arg(&source).args(["--version", version, "--destination"]).arg(folder);
    succeed(command);
}

/// Copies a folder of texts.
fn copy(from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to, change);
        } else {
            fs::write(to, change(fs::read_to_string(from).unwrap())).unwrap();
        }
    }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {error}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
