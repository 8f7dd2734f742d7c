//! Changes, before they are made. An [`Edit`] is a value: the same one is planned, shown and then made.

use api::{Batch, BatchWrite, RevertTarget, TypeDescription};
use model::{Digest, Epoch, Map, Value};
use serde::Serialize;

use crate::Query;

const JSON: &str = "application/json";

/// The kind of a patch.
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

    fn with_body(self, body: &impl Serialize) -> Self {
        // A body of these types can be written. If one could not, the server would refuse the request without it.
        Self { body: serde_json::to_value(body).ok(), ..self }
    }

    fn with_flag(mut self, name: &str, flag: bool) -> Self {
        self.query.extend(flag.then(|| (name.to_owned(), "true".to_owned())));
        self
    }

    /// Only if the document has this ETag.
    #[must_use]
    pub fn if_match(self, etag: &str) -> Self {
        Self { if_match: Some(etag.to_owned()), ..self }
    }

    /// Only if the fleet is still at this revision of this epoch, such as those of the plan that an operator agreed to.
    #[must_use]
    pub fn on(self, revision: u64, epoch: Epoch) -> Self {
        Self { expected: Some((revision, epoch)), ..self }
    }

    /// The change may remove so many inputs from clusters with `deletion_protection`.
    #[must_use]
    pub fn allowing_removals(self, count: u32) -> Self {
        Self { allow_removals: Some(count), ..self }
    }

    /// A new document.
    #[must_use]
    pub fn create(ty: &TypeDescription, body: Map) -> Self {
        Self::new("POST", &[&ty.plural]).with(body)
    }

    /// Replaces a document.
    #[must_use]
    pub fn replace(ty: &TypeDescription, id: &str, body: Map) -> Self {
        Self::new("PUT", &[&ty.plural, id]).with(body)
    }

    /// Changes a document.
    #[must_use]
    pub fn patch(ty: &TypeDescription, id: &str, kind: PatchKind, patch: Value) -> Self {
        Self { media: kind.media(), ..Self::new("PATCH", &[&ty.plural, id]).with(patch) }
    }

    /// Removes a definition, decommissions a cluster.
    #[must_use]
    pub fn delete(ty: &TypeDescription, id: &str, cascade: bool) -> Self {
        Self::new("DELETE", &[&ty.plural, id]).with_flag("cascade", cascade)
    }

    /// Removes a decommissioned cluster for good.
    #[must_use]
    pub fn purge(cluster: &str) -> Self {
        Self::new("DELETE", &["clusters", cluster]).with_flag("purge", true)
    }

    /// Releases a DNS name that a cluster had before.
    #[must_use]
    pub fn release_dns(cluster: &str, name: &str) -> Self {
        Self::new("DELETE", &["clusters", cluster, "former_dns", name])
    }

    /// Restores a decommissioned cluster.
    #[must_use]
    pub fn restore(cluster: &str) -> Self {
        Self::new("POST", &["clusters", cluster, "restore"])
    }

    /// Changes the patches of a component on a cluster; null removes one.
    #[must_use]
    pub fn values(cluster: &str, component: &str, values: Map) -> Self {
        Self::new("PATCH", &["clusters", cluster, "patches", component]).with(values)
    }

    /// One strategic merge patch over every document that matches the filters, of which there must be one.
    #[must_use]
    pub fn patch_many(ty: &TypeDescription, filters: Query<'_>, patch: Value) -> Self {
        let mut edit = Self::new("PATCH", &[&ty.plural]).with(patch);
        edit.query.extend(filters.iter().cloned());
        Self { media: PatchKind::Strategic.media(), ..edit }
    }

    /// One strategic merge patch over every document of a type.
    #[must_use]
    pub fn patch_all(ty: &TypeDescription, patch: Value) -> Self {
        Self::patch_many(ty, &[("all".to_owned(), "true".to_owned())], patch)
    }

    /// Many writes, one change, all or none.
    #[must_use]
    pub fn batch(writes: Vec<BatchWrite>) -> Self {
        Self::new("POST", &["batch"]).with_body(&Batch { writes })
    }

    /// Makes a document again what it was at a revision.
    #[must_use]
    pub fn revert(ty: &TypeDescription, id: &str, revision: u64) -> Self {
        Self::new("POST", &[&ty.plural, id, "revert"]).with_body(&RevertTarget { revision })
    }

    /// Serves the resource types as the server's files declare them, where these differ from the change log as the operator saw it.
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

    /// Accepts a change log, which an operator saw, though it diverged from what is served: by this server, or by another one that
    /// serves this digest.
    #[must_use]
    pub fn accept_log(seen: &Digest, served: Option<&Digest>) -> Self {
        let mut edit = Self::new("POST", &["store", "accept"]);
        edit.query.push(("expected_digest".to_owned(), seen.to_string()));
        edit.query.extend(served.map(|digest| ("served".to_owned(), digest.to_string())));
        edit
    }
}
