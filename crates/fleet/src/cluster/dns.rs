//! The DNS names of a cluster: the one it has now, those it had before and still answers to, and those that were released.
//!
//! A name that a cluster has answered to stays that cluster's, because a running cluster may still poll under it: the
//! answer of any other cluster would make it delete everything. Only an operator releases a name. A released name is
//! recorded with what was answered there last, so that a plan can show what a poller under it would lose when a cluster
//! answers there again, whatever happened to the one that released it.

use std::{collections::BTreeMap, iter, sync::Arc};

use model::{Id, dns_spelling};
use serde::Deserialize;

use super::Cluster;

/// The fields of a cluster document that hold its other names. The server writes them; clients cannot.
pub(crate) const FORMER: &str = "former_dns";
pub(crate) const RELEASED: &str = "released_dns";

/// Inputs by the paths of their types, each with what Flux made of it or, where the cluster was refused an answer, [`UNKNOWN`].
pub(crate) type InputsByPath = BTreeMap<String, BTreeMap<Id, String>>;

/// What Flux made of an input of an answer that is refused.
pub(crate) const UNKNOWN: &str = "unknown";

/// The names that a cluster had before, each in its one spelling.
#[derive(Debug, Default)]
pub(crate) struct OtherNames {
    /// Those that it still answers to.
    pub(crate) former: Vec<Arc<str>>,
    /// Those that an operator has released: it no longer answers to them.
    pub(crate) released: Vec<Released>,
}

/// A name that an operator has released.
#[derive(Debug)]
pub(crate) struct Released {
    pub(crate) name: Box<str>,
    /// What a poller under the name had then; not known of a name that was released before this was recorded.
    pub(crate) inputs: Option<InputsByPath>,
    /// Whether the cluster had `deletion_protection` then.
    pub(crate) protected: bool,
}

/// A released name in a document: an object or, in older documents, the bare name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Name(String),
    Object {
        name: String,
        inputs: InputsByPath,
        #[serde(default)]
        protected: bool,
    },
}

impl From<Entry> for Released {
    fn from(entry: Entry) -> Self {
        let (name, inputs, protected) = match entry {
            Entry::Name(name) => (name, None, false),
            Entry::Object { name, inputs, protected } => (name, Some(inputs), protected),
        };
        Self { name: dns_spelling(&name).into(), inputs, protected }
    }
}

/// The DNS names in a field, each in its one spelling.
pub(super) fn dns_names(field: &str, text: &str) -> Result<Vec<Arc<str>>, String> {
    let names: Option<Vec<String>> =
        serde_json::from_str(text).map_err(|_| format!("{field} is not a list of DNS names"))?;
    Ok(names.into_iter().flatten().map(|name| dns_spelling(&name).into()).collect())
}

/// The released names in the text of their field.
pub(super) fn released_names(text: &str) -> Result<Vec<Released>, String> {
    let entries: Option<Vec<Entry>> =
        serde_json::from_str(text).map_err(|_| format!("{RELEASED} is not a list of released DNS names"))?;
    Ok(entries.into_iter().flatten().map(Released::from).collect())
}

impl Cluster {
    /// The names that it had before and still answers to.
    pub fn former_dns(&self) -> impl Iterator<Item = &str> {
        self.other_names.iter().flat_map(|names| names.former.iter().map(AsRef::as_ref))
    }

    /// Every name that it answers to, the present one first.
    pub(crate) fn dns_names(&self) -> impl Iterator<Item = &Arc<str>> {
        iter::once(&self.dns).chain(self.other_names.iter().flat_map(|names| &names.former))
    }

    /// Whether it never had another name than its present one.
    pub(crate) fn has_one_name(&self) -> bool {
        self.other_names.is_none()
    }

    /// Whether it answers to a name, in its one spelling.
    pub(crate) fn answers_to(&self, dns: &str) -> bool {
        self.dns_names().any(|name| **name == *dns)
    }

    /// The names that it had before and an operator has released since.
    pub(crate) fn released_dns(&self) -> impl Iterator<Item = &Released> {
        self.other_names.iter().flat_map(|names| &names.released)
    }
}
