//! Authority: the source of the server has no way to the data that needs no token, but the two that are named here.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The files of the server's source, with their text without white space: a line break hides nothing.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap().split_whitespace().collect();
                sources.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(sources.len() > 60, "only {} files were read", sources.len());
    sources
}

/// The files that contain one of these texts, sorted.
fn files_with(texts: &[&str]) -> Vec<String> {
    let sources = sources().into_iter().filter(|(_, source)| texts.iter().any(|text| source.contains(text)));
    let mut files: Vec<_> = sources.map(|(path, _)| path.to_str().unwrap().to_owned()).collect();
    files.sort();
    files
}

/// The compiler refuses any other way to the served snapshot: only `access.rs` can read it.
#[test]
fn only_probes_and_metrics_read_the_snapshot_without_a_token() {
    assert_eq!(files_with(&["probe_snapshot"]), ["access.rs", "handlers/metrics.rs", "handlers/ready.rs"]);
}

/// The follower, retention and group commit have the store itself. A handler has it from its access, and makes changes by `write`.
#[test]
fn no_handler_reaches_the_store_without_a_token() {
    let ways = ["log.store()", "opened_store", "ChangeLog::store", "group_commit", "publish_own"];
    let handlers: Vec<_> = files_with(&ways).into_iter().filter(|file| file.starts_with("handlers/")).collect();
    assert!(handlers.is_empty(), "{handlers:?}: the store is reached through an access (access.store())");
}
