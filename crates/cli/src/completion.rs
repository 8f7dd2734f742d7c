//! What the shell may offer: types, ids, clusters and contexts, asked from the server while a person types. A server
//! that does not answer at once has nothing to offer.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use api::TypeDescription;
use clap_complete::{
    ArgValueCompleter,
    engine::{CompletionCandidate, ValueCompleter},
};
use client::{Client, Settings, Types};

use crate::{
    contexts::{self, Contexts},
    session::{self, Access, Global, full_name},
};

/// Offers what a function finds, as far as it begins with what is typed.
pub(crate) fn of(find: fn() -> Option<Vec<String>>) -> ArgValueCompleter {
    ArgValueCompleter::new(Offer(find))
}

struct Offer(fn() -> Option<Vec<String>>);

impl ValueCompleter for Offer {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let typed = typed.to_string_lossy();
        let found = (self.0)().unwrap_or_default().into_iter();
        found.filter(|offer| offer.starts_with(&*typed)).map(CompletionCandidate::new).collect()
    }
}

/// The names of contexts.
pub(crate) fn contexts() -> Option<Vec<String>> {
    let config = flag(&words(), "--config").map(PathBuf::from);
    let contexts = Contexts::read(&contexts::path(config.as_deref()).ok()?).ok()?;
    Some(contexts.contexts.into_keys().collect())
}

/// The kinds that the server knows.
pub(crate) fn types() -> Option<Vec<String>> {
    Some(server()?.1.iter().map(|ty| ty.kind.clone()).collect())
}

/// The ids of clusters.
pub(crate) fn clusters() -> Option<Vec<String>> {
    ids_of(|types| types.by_name(model::ResourceType::CLUSTER))
}

/// The ids of clusters that are not in force any more.
pub(crate) fn decommissioned() -> Option<Vec<String>> {
    let (client, types) = server()?;
    let clusters = types.by_name(model::ResourceType::CLUSTER)?;
    ids_in(&client.list(clusters, &[("decommissioned".to_owned(), "true".to_owned())]).ok()?)
}

/// The ids of components.
pub(crate) fn components() -> Option<Vec<String>> {
    ids_of(|types| types.by_name("component"))
}

/// The ids of the type that the line is about: the first of its words that names one.
pub(crate) fn ids() -> Option<Vec<String>> {
    let words = words();
    ids_of(|types| words.iter().find_map(|word| types.by_name(full_name(word))))
}

/// The line that is typed, without the name of this program: the shell hands it over after "--".
fn words() -> Vec<String> {
    std::env::args().skip_while(|word| word != "--").skip(2).collect()
}

/// What the line says by a flag so far.
fn flag(words: &[String], name: &str) -> Option<String> {
    let after = |word: &String| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let place = words.iter().position(|word| word == name);
    words.iter().find_map(after).or_else(|| words.get(place? + 1).cloned())
}

fn ids_of(choose: impl Fn(&Types) -> Option<&TypeDescription>) -> Option<Vec<String>> {
    let (client, types) = server()?;
    ids_in(&client.list(choose(&types)?, &[]).ok()?)
}

fn ids_in(documents: &[model::Map]) -> Option<Vec<String>> {
    documents.iter().map(|document| Some(document.get("id")?.as_str()?.to_owned())).collect()
}

/// The server that the line would ask. Nobody is asked for a password because of a tab.
fn server() -> Option<(Client, Types)> {
    let words = words();
    // There, the flag is what a cluster calls, and no tokens are for it.
    let of_cluster = words.iter().any(|word| word == "bootstrap");
    let url = flag(&words, "--api-url").filter(|_| !of_cluster);
    let global = Global::of(url, flag(&words, "--context"), flag(&words, "--config"));
    let (settings, _) = session::settings(&global, Access::Complete).ok()?;
    let client = Client::new(Settings { timeout: Duration::from_secs(2), retries: 0, ..settings }).ok()?;
    let types = client.types().ok()?;
    Some((client, types))
}
