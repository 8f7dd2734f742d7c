//! Output formats, contexts, completions, manual pages and the editor.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use insta::assert_snapshot;

use crate::environment::{TestEnvironment, with_stable_values};

#[test]
fn the_output_flag_works_anywhere_and_with_every_format() {
    let env = TestEnvironment::demo();
    let name = "cluster/demo-cluster-01\n";
    for line in [
        &["-o", "name", "cluster", "list"][..],
        &["cluster", "-o", "name", "list"],
        &["cluster", "list", "-o", "name"],
        &["cluster", "list", "--output=name"],
        &["list", "-oname", "cluster"],
    ] {
        assert_eq!(env.run(line).success().out, name, "{line:?}");
    }
    assert!(env.run(&["cluster", "list"]).json().is_array(), "JSON in a pipe");
    for format in ["yaml", "table", "wide"] {
        assert_snapshot!(format!("namespaces-{format}"), env.run(&["namespace", "list", "-o", format]).success().out);
    }
}

#[test]
fn a_closed_pipe_is_not_reported_as_an_error() {
    let env = TestEnvironment::demo();
    let done = env.shell("flux-resourceset-cli cluster list | true; flux-resourceset-cli export | head -1");
    assert_eq!(done.err.replace("exported 9 documents of revision 1\n", ""), "");
}

#[test]
fn contexts_contain_urls_and_token_sources_but_no_tokens() {
    let env = TestEnvironment::demo();
    let token = env.file("token", &format!("{}\n", harness::WRITE));
    // Without FLUX_API_URL, the context decides.
    let run = |arguments: &[&str]| {
        let output = env.tool(arguments).env_remove("FLUX_API_URL").env("MINE", harness::READ).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(run(&["config", "current"]).0, 1);
    let url = env.url();
    run(&["config", "set", "staging", "--url", &url, "--token-env", "MINE", "--write-token-file", &token]);
    let command = format!("cat '{token}'");
    run(&["config", "set", "other", "--url", "http://127.0.0.1:1", "--token-command", &command]);
    assert_eq!(run(&["config", "current"]).1, "staging\n", "the first one is the current one");
    assert_eq!(run(&["cluster", "list", "-o", "name"]).1, "cluster/demo-cluster-01\n");
    assert_eq!(run(&["namespace", "create", "x", "-o", "name"]).1, "namespace/x\n");
    assert_eq!(run(&["--context", "other", "cluster", "list"]).0, 1, "no server at this URL");
    assert_eq!(run(&["config", "use", "other"]).0, 0);
    assert_eq!(run(&["cluster", "list"]).0, 1);
    assert_eq!(run(&["--context", "staging", "cluster", "list"]).0, 0);
    assert_eq!(run(&["config", "set", "other", "--url", &url]).0, 0);
    assert_eq!(
        run(&["namespace", "create", "y", "-o", "name"]).1,
        "namespace/y\n",
        "the token of a command is used for changes too"
    );
    let listed = run(&["config", "list", "-o", "table"]).1.replace(&*env.home().to_string_lossy(), "HOME");
    with_stable_values(|| assert_snapshot!("contexts", listed));
    let file = fs::read_to_string(run(&["config", "path"]).1.trim()).unwrap();
    assert!(!file.contains(harness::WRITE), "tokens are not in the file: {file}");
    assert_eq!(run(&["config", "use", "nowhere"]).0, 2);
    assert_eq!(run(&["config", "delete", "other"]).0, 0);
    assert_eq!(run(&["config", "current"]).0, 1);
    for secret in ["token: s3cr3t", "token: {command: s3cr3t}", "write_token: {secret: s3cr3t}"] {
        let path = env.file("secret.yaml", &format!("contexts:\n  a:\n    url: http://x\n    {secret}\n"));
        let broken = run(&["--config", &path, "config", "list"]);
        assert!(
            broken.0 == 1 && broken.2.contains("secret.yaml:4: a token is") && !broken.2.contains("s3cr3t"),
            "{broken:?}"
        );
    }
    let path = env.file("secret.yaml", "contexts:\n  a: s3cr3t\n");
    let broken = run(&["--config", &path, "config", "list"]);
    assert!(
        broken.0 == 1 && broken.2.contains("secret.yaml:2: expected: current") && !broken.2.contains("s3cr3t"),
        "{broken:?}"
    );
    for wrong in [&["--url", "http://user:s3cr3t@x"][..], &["--url", &url, "--token-env", "s3cr3t-token"]] {
        let refused = run(&[&["config", "set", "wrong"][..], wrong].concat());
        assert!(refused.0 == 2 && !refused.2.contains("s3cr3t"), "{refused:?}");
    }
    let path = env.file("broken.yaml", "current: a\ncontexts:\n  a:\n    adress: x\n");
    let broken = run(&["--config", &path, "config", "list"]);
    assert!(broken.0 == 1 && broken.2.contains("broken.yaml:4: unknown field `adress`"), "{broken:?}");
}

#[test]
fn shells_complete_commands_types_and_ids() {
    let env = TestEnvironment::demo();
    let candidates = |words: &[&str]| {
        let mut command = env.tool(&["--", "flux-resourceset-cli"]);
        command.args(words).env("COMPLETE", "fish");
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(candidates(&["namespace", "get", ""])[..3], ["cert-manager", "podinfo", "traefik"]);
    assert_eq!(candidates(&["get", "rolebinding", "dev"]), ["dev-readers"]);
    assert_eq!(candidates(&["list", "pla"]), ["platform_component"]);
    assert_eq!(candidates(&["namespace", "assign", "podinfo", "--cluster", "demo"]), ["demo-cluster-01"]);
    assert_eq!(candidates(&["ns", "get", "pod"]), ["podinfo"]);
    let nowhere = candidates(&["--api-url", "http://127.0.0.1:1", "namespace", "get", "pod"]);
    assert!(nowhere.is_empty(), "the ids of another server are not offered: {nowhere:?}");
    assert!(candidates(&["fle"]).contains(&"fleet".to_owned()));
    assert!(candidates(&["store", "acc"]).contains(&"accept".to_owned()));
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = env.run(&["completions", shell]).success().out;
        assert!(script.contains("flux-resourceset-cli") && script.contains("COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn the_completions_work_in_bash() {
    let env = TestEnvironment::demo();
    let script = "source <(flux-resourceset-cli completions bash); \
        COMP_WORDS=(flux-resourceset-cli cluster get demo); COMP_CWORD=3; COMP_TYPE=9; \
        $(complete -p flux-resourceset-cli | sed -E 's/.*-F ([^ ]+).*/\\1/') flux-resourceset-cli demo get; \
        echo \"${COMPREPLY[@]}\"";
    assert_eq!(env.shell(script).success().out, "demo-cluster-01\n");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let env = TestEnvironment::demo();
    env.run(&["man", "--output-dir", "man"]).success();
    let pages = fs::read_dir(env.home().join("man")).unwrap().count();
    assert!(pages > 60, "{pages}");
    let page = fs::read_to_string(env.home().join("man/flux-resourceset-cli-apply.1")).unwrap();
    assert!(page.contains("\\-\\-prune") && page.contains("Examples"), "{page}");
    let page = fs::read_to_string(env.home().join("man/flux-resourceset-cli-store-accept.1")).unwrap();
    assert!(page.contains("\\-\\-dry\\-run") && page.contains("\\-\\-yes"), "{page}");
}

/// An editor that runs a command of sed on the file.
fn editor(env: &TestEnvironment, script: &str) -> String {
    let path = env.file("editor", &format!("#!/bin/sh\nsed -i '{script}' \"$1\"\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn an_edit_that_cannot_be_saved_is_kept() {
    let env = TestEnvironment::demo();
    let edit = |script: &str| {
        let editor = editor(&env, script);
        let mut command = env.tool(&["edit", "namespace", "podinfo", "-o", "name"]);
        let output = command.env("EDITOR", editor).stdin(Stdio::null()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(edit("s/app: podinfo/app: edited/").0, 0);
    assert_eq!(env.run(&["namespace", "get", "podinfo"]).json()["labels"]["app"], "edited");
    let unchanged = edit("");
    assert!(unchanged.0 == 0 && unchanged.1.contains("was not changed"), "{unchanged:?}");
    let (code, stderr) = edit("s/app: edited/\"a b\": c/");
    assert!(code == 1 && stderr.contains("/labels/a b"), "{stderr}");
    let kept = stderr.rsplit("your edits are in ").next().unwrap().trim();
    let kept_text = fs::read_to_string(kept).unwrap();
    assert!(kept_text.contains("a b") && kept_text.contains("# error:"), "{kept_text}");
    fs::remove_file(kept).unwrap();

    // Another change is made while the editor is open.
    let slow = env.file(
        "slow",
        "#!/bin/sh\nflux-resourceset-cli namespace patch podinfo -p 'labels: {app: faster}' >&2\nsed -i 's/edited/slower/' \"$1\"\n",
    );
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let output = env.tool(&["edit", "namespace", "podinfo"]).env("EDITOR", slow).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    fs::remove_file(stderr.rsplit("your edits are in ").next().unwrap().trim()).unwrap();
    assert_eq!(env.run(&["namespace", "get", "podinfo"]).json()["labels"]["app"], "faster");
}
