//! Shell completion of types, ids, clusters and contexts. The candidates are requested from the server while the
//! operator types; a server that does not answer within two seconds has no candidates.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use api::TypeDescription;
use clap_complete::{
    ArgValueCompleter,
    engine::{CompletionCandidate, ValueCompleter},
};
use client::{Client, Settings, Types};

use crate::{
    contexts::{self, Contexts},
    session::{self, Access, GlobalArgs, full_name},
};

/// Completes with the results of a function that begin with the typed text.
pub(crate) fn completer(find: fn() -> Option<Vec<String>>) -> ArgValueCompleter {
    ArgValueCompleter::new(ServerCompleter(find))
}

struct ServerCompleter(fn() -> Option<Vec<String>>);

impl ValueCompleter for ServerCompleter {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let typed = typed.to_string_lossy();
        let found = (self.0)().unwrap_or_default().into_iter();
        found.filter(|candidate| candidate.starts_with(&*typed)).map(CompletionCandidate::new).collect()
    }
}

/// The names of contexts.
pub(crate) fn contexts() -> Option<Vec<String>> {
    let config = flag(&words(), "--config").map(PathBuf::from);
    let contexts = Contexts::read(&contexts::path(config.as_deref()).ok()?).ok()?;
    Some(contexts.contexts.into_keys().collect())
}

/// The kinds of the resource types of the server.
pub(crate) fn types() -> Option<Vec<String>> {
    Some(server()?.1.iter().map(|ty| ty.kind.clone()).collect())
}

/// The ids of clusters.
pub(crate) fn clusters() -> Option<Vec<String>> {
    ids_of(|types| types.by_name(model::ResourceType::CLUSTER))
}

/// The ids of decommissioned clusters.
pub(crate) fn decommissioned() -> Option<Vec<String>> {
    let (client, types) = server()?;
    let clusters = types.by_name(model::ResourceType::CLUSTER)?;
    ids_in(&client.list(clusters, &[("decommissioned".to_owned(), "true".to_owned())]).ok()?)
}

/// The ids of components.
pub(crate) fn components() -> Option<Vec<String>> {
    ids_of(|types| types.by_name("component"))
}

/// The ids of the type that the command line is about: its first word that names a type.
pub(crate) fn ids() -> Option<Vec<String>> {
    let words = words();
    ids_of(|types| words.iter().find_map(|word| types.by_name(full_name(word))))
}

/// The words of the command line after the program name. The shell passes them after "--".
fn words() -> Vec<String> {
    std::env::args().skip_while(|word| word != "--").skip(2).collect()
}

/// The value of a flag on the command line.
fn flag(words: &[String], name: &str) -> Option<String> {
    let after = |word: &String| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let index = words.iter().position(|word| word == name);
    words.iter().find_map(after).or_else(|| words.get(index? + 1).cloned())
}

fn ids_of(choose: impl Fn(&Types) -> Option<&TypeDescription>) -> Option<Vec<String>> {
    let (client, types) = server()?;
    ids_in(&client.list(choose(&types)?, &[]).ok()?)
}

fn ids_in(documents: &[model::Map]) -> Option<Vec<String>> {
    documents.iter().map(|document| Some(document.get("id")?.as_str()?.to_owned())).collect()
}

/// The server that the command line selects. No token command runs, because it may ask for a password.
fn server() -> Option<(Client, Types)> {
    let words = words();
    // For `bootstrap`, --api-url is the URL that the cluster calls, not the server of this command.
    let is_bootstrap = words.iter().any(|word| word == "bootstrap");
    let url = flag(&words, "--api-url").filter(|_| !is_bootstrap);
    let global = GlobalArgs::for_completion(url, flag(&words, "--context"), flag(&words, "--config"));
    let (settings, _) = session::connection_settings(&global, Access::Complete).ok()?;
    let client = Client::new(Settings { timeout: Duration::from_secs(2), retries: 0, ..settings }).ok()?;
    let types = client.types().ok()?;
    Some((client, types))
}
