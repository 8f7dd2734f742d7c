//! Changes, before they are made. An [`Edit`] is a value: the same one is planned, shown and then made.

use model::{Digest, Epoch, Map, Value};
use serde::Serialize;
use serde_json::json;

use crate::{Query, ResourceType};

const JSON: &str = "application/json";

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7396: objects are merged, lists are replaced, null removes.
    Merge,
    /// As merge, but lists are merged by `id`.
    Strategic,
    /// RFC 6902: a list of operations.
    Json,
}

impl PatchKind {
    fn media(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

/// One write of a batch.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum BatchWrite {
    /// A new document.
    Create {
        /// Its kind.
        kind: String,
        /// What it says.
        body: Map,
    },
    /// A document, whether it is there or not.
    Put {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// What it says, and no more.
        body: Map,
    },
    /// Removes a definition, decommissions a cluster.
    Delete {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// Whether references to it go too.
        cascade: bool,
    },
    /// Changes a document by a strategic merge patch.
    Patch {
        /// Its kind.
        kind: String,
        /// Its id.
        id: String,
        /// The patch.
        body: Map,
    },
    /// Takes something away from a cluster.
    Unassign {
        /// The cluster.
        cluster: String,
        /// The kind.
        kind: String,
        /// The id.
        id: String,
    },
}

/// A change that can be planned and made.
#[derive(Clone, Debug)]
pub struct Edit {
    pub(crate) method: &'static str,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) media: &'static str,
    pub(crate) body: Option<Value>,
    pub(crate) if_match: Option<String>,
    pub(crate) expected: Option<(u64, Epoch)>,
    pub(crate) allow_removals: Option<u32>,
}

impl Edit {
    fn new(method: &'static str, path: &[&str]) -> Self {
        Self {
            method,
            path: path.iter().map(|&part| part.to_owned()).collect(),
            query: Vec::new(),
            media: JSON,
            body: None,
            if_match: None,
            expected: None,
            allow_removals: None,
        }
    }

    fn with(self, body: impl Into<Value>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    fn asking(mut self, name: &str, flag: bool) -> Self {
        self.query.extend(flag.then(|| (name.to_owned(), "true".to_owned())));
        self
    }

    /// Only if the document has this ETag.
    #[must_use]
    pub fn if_match(self, etag: &str) -> Self {
        Self { if_match: Some(etag.to_owned()), ..self }
    }

    /// Only if the fleet is still at this revision of this epoch, such as those of the plan that somebody agreed to.
    #[must_use]
    pub fn on(self, revision: u64, epoch: Epoch) -> Self {
        Self { expected: Some((revision, epoch)), ..self }
    }

    /// It may take so many inputs from clusters with `deletion_protection`.
    #[must_use]
    pub fn allowing_removals(self, count: u32) -> Self {
        Self { allow_removals: Some(count), ..self }
    }

    /// A new document.
    #[must_use]
    pub fn create(ty: &ResourceType, body: Map) -> Self {
        Self::new("POST", &[&ty.plural]).with(body)
    }

    /// The document says this and no more.
    #[must_use]
    pub fn replace(ty: &ResourceType, id: &str, body: Map) -> Self {
        Self::new("PUT", &[&ty.plural, id]).with(body)
    }

    /// Changes a document.
    #[must_use]
    pub fn patch(ty: &ResourceType, id: &str, kind: PatchKind, patch: Value) -> Self {
        Self { media: kind.media(), ..Self::new("PATCH", &[&ty.plural, id]).with(patch) }
    }

    /// Removes a definition, decommissions a cluster.
    #[must_use]
    pub fn delete(ty: &ResourceType, id: &str, cascade: bool) -> Self {
        Self::new("DELETE", &[&ty.plural, id]).asking("cascade", cascade)
    }

    /// Forgets a decommissioned cluster.
    #[must_use]
    pub fn purge(cluster: &str) -> Self {
        Self::new("DELETE", &["clusters", cluster]).asking("purge", true)
    }

    /// Releases a DNS name that a cluster had before.
    #[must_use]
    pub fn release_dns(cluster: &str, name: &str) -> Self {
        Self::new("DELETE", &["clusters", cluster, "former_dns", name])
    }

    /// Brings a decommissioned cluster back.
    #[must_use]
    pub fn restore(cluster: &str) -> Self {
        Self::new("POST", &["clusters", cluster, "restore"])
    }

    /// Changes the patches of a component on a cluster; null takes one away.
    #[must_use]
    pub fn values(cluster: &str, component: &str, values: Map) -> Self {
        Self::new("PATCH", &["clusters", cluster, "patches", component]).with(values)
    }

    /// One strategic merge patch over every document that the filters take, of which there must be one.
    #[must_use]
    pub fn patch_many(ty: &ResourceType, filters: Query<'_>, patch: Value) -> Self {
        let mut edit = Self::new("PATCH", &[&ty.plural]).with(patch);
        edit.query.extend(filters.iter().cloned());
        Self { media: PatchKind::Strategic.media(), ..edit }
    }

    /// One strategic merge patch over every document of a type.
    #[must_use]
    pub fn patch_all(ty: &ResourceType, patch: Value) -> Self {
        Self::patch_many(ty, &[("all".to_owned(), "true".to_owned())], patch)
    }

    /// Many writes, one change, all or none.
    #[must_use]
    pub fn batch(writes: &[BatchWrite]) -> Self {
        Self::new("POST", &["batch"]).with(json!({"writes": writes}))
    }

    /// The document says again what it said at a revision.
    #[must_use]
    pub fn revert(ty: &ResourceType, id: &str, revision: u64) -> Self {
        Self::new("POST", &[&ty.plural, id, "revert"]).with(json!({"revision": revision}))
    }

    /// Serves the resource types as the server's files say, where these differ from the change log as it was seen.
    #[must_use]
    pub fn accept_types(seen: &Digest) -> Self {
        let mut edit = Self::new("POST", &["types", "accept"]);
        edit.query.push(("expected_changes".to_owned(), seen.to_string()));
        edit
    }

    /// Undoes a change.
    #[must_use]
    pub fn revert_change(revision: u64) -> Self {
        Self::new("POST", &["changes", &revision.to_string(), "revert"])
    }

    /// Says that the log, which was looked at, is to be followed, though it does not continue what is served: here, or by
    /// a server elsewhere that serves what has this digest.
    #[must_use]
    pub fn accept_log(looked_at: &Digest, served: Option<&Digest>) -> Self {
        let mut edit = Self::new("POST", &["store", "accept"]);
        edit.query.push(("expected_digest".to_owned(), looked_at.to_string()));
        edit.query.extend(served.map(|digest| ("served".to_owned(), digest.to_string())));
        edit
    }
}
