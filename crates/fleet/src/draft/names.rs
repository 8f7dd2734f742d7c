//! A DNS name moves from one cluster to another only on purpose.
//!
//! Whatever an edit contains, a cluster keeps the names that it has answered to: a renamed cluster goes on answering to its old
//! name, since it may still poll there. The list `former_dns` is the server's. An edit that leaves it out keeps it, and an
//! edit cannot add a name to it; only a document that is created brings its own, as an import does. Only
//! [`Draft::release_dns`] takes a name off the list, and writes down what a poller under it has.

use std::collections::BTreeSet;

use model::{Body, Excerpt, FieldError, Id, Kind, Map, Op, ResourceType, Value, Write, dns_spelling};
use serde_json::json;

use super::{Draft, Edit, EditError, check_fields};
use crate::{
    Cluster,
    cluster::{FORMER, RELEASED},
    plan::held_by_pollers,
};

/// How many former names a cluster document holds.
const MOST: usize = 16;

/// How many released names a cluster document holds. None is forgotten to make room.
const MOST_RELEASED: usize = 64;

impl Draft<'_> {
    /// Completes the names in the new fields of a cluster with those that it has; refuses names that it does not have.
    pub(super) fn keep_names(&self, ty: &ResourceType, id: &Id, fields: &mut Map) -> Result<(), EditError> {
        let given = DnsNames::read(fields);
        if self.has_one_name(ty, id, &given) {
            return Ok(());
        }
        if let Some(known) = self.known(ty, id) {
            return known.keep_in(ty, id, fields);
        }
        let mut errors = Vec::new();
        given.check_new(|field, rule, message| {
            errors.push(FieldError::new(format!("/{field}"), rule, message).in_document(&ty.kind, id));
        });
        if errors.is_empty() { Ok(()) } else { Err(EditError::Invalid(errors)) }
    }

    /// The same for a document of the past: its names of today stay.
    pub(super) fn with_kept_names(&self, ty: &ResourceType, id: &Id, op: Op) -> Op {
        let Op::Put(body) = &op else { return op };
        // A text that cannot be read is refused when the change is applied.
        let (Some(known), Ok(before)) = (self.known(ty, id), body.fields()) else { return op };
        let mut fields = before.clone();
        known.put_into(&mut fields);
        if fields == before { op } else { Op::Put(Body::from_fields(&fields)) }
    }

    /// Releases a former DNS name of a cluster: a poll under it gets 404 from then on, and another cluster may take it.
    pub fn release_dns(&mut self, cluster: &Id, name: &str) -> Result<(), EditError> {
        let clusters = self.clusters()?;
        let mut fields = self.fields(clusters, cluster)?;
        let mut names = DnsNames::read(&fields);
        let is_present = names.dns.as_deref().is_some_and(|dns| is_same(dns, name));
        if is_present || !holds(names.former.iter().map(String::as_str), name) {
            let missing = Id::parse(name).map_err(|error| FieldError::new("", "former-dns", error.to_string()))?;
            return Err(EditError::NotFound { kind: Kind::from(FORMER), id: missing });
        }
        names.former.retain(|former| !is_same(former, name));
        // Pollers under a name that another cluster answers to have what that cluster answers.
        let is_taken = |name: &str| self.fleet.claims(&dns_spelling(name)).any(|other| other.id() != cluster);
        names.released.retain(|entry| released_name(entry).is_none_or(|name| !is_taken(name)));
        if names.released.len() >= MOST_RELEASED {
            let error = FieldError::new(format!("/{RELEASED}"), RELEASED_LIMIT, released_limit());
            return Err(error.in_document(&clusters.kind, cluster).into());
        }
        // A release is a change of its own: pollers have what is answered before it.
        let mut entry = json!({"name": dns_spelling(name), "inputs": held_by_pollers(self.fleet, cluster)});
        if self.fleet.cluster(cluster).is_some_and(Cluster::is_protected) {
            entry["protected"] = Value::Bool(true);
        }
        names.released.push(entry);
        names.write(&mut fields);
        let body = Body::from_fields(&fields);
        let broken = Some(check_fields(self.fleet, clusters, cluster, fields, &body));
        Ok(self.enter(clusters, cluster, Edit { op: Op::Put(body), broken, changes: None })?)
    }

    /// Whether a cluster has always had the one name that it is given: then there is nothing to keep, and the document that it
    /// has need not be read.
    fn has_one_name(&self, ty: &ResourceType, id: &Id, given: &DnsNames) -> bool {
        let key = (ty.kind.clone(), id.clone());
        let is_edited = self.edits.contains_key(&key) || self.open.contains_key(&key);
        let cluster = self.fleet.cluster(id).filter(|cluster| !is_edited && cluster.has_one_name());
        let dns = given.dns.as_deref().map(dns_spelling);
        given.former.is_empty()
            && given.released.is_empty()
            && cluster.is_some_and(|it| dns.as_deref() == Some(it.dns()))
    }

    /// The names of a cluster at this point of the draft, also of a decommissioned one.
    fn known(&self, ty: &ResourceType, id: &Id) -> Option<DnsNames> {
        let op = self.op(ty, id)?;
        Some(DnsNames::read(&op.body()?.fields().ok()?))
    }
}

/// The DNS names that stand twice in a cluster document that a seed brings. Many names are no error there, as they are in a request.
#[must_use]
pub fn repeated_dns_names(write: &Write) -> Vec<FieldError> {
    let Op::Put(body) = &write.op else { return Vec::new() };
    // Most clusters never had another name, and their texts need not be read. A name may be escaped.
    let text = body.text();
    let may_have =
        write.kind.as_str() == ResourceType::CLUSTER && [FORMER, RELEASED, "\\"].iter().any(|part| text.contains(part));
    let fields = may_have.then(|| body.fields().ok()).flatten();
    let mut errors = Vec::new();
    if let Some(fields) = fields {
        DnsNames::read(&fields).check_repeated((usize::MAX, usize::MAX), |field, rule, message| {
            errors.push(FieldError::new(format!("/{field}"), rule, message).in_document(&write.kind, &write.id));
        });
    }
    errors
}

/// The names in a cluster document, as they are written there.
pub(super) struct DnsNames {
    dns: Option<String>,
    former: Vec<String>,
    /// With what is remembered of each.
    released: Vec<Value>,
}

impl DnsNames {
    pub(super) fn read(fields: &Map) -> Self {
        // What is no name is refused by the schema.
        let list = |field: &str| fields.get(field).and_then(Value::as_array).into_iter().flatten();
        let dns = fields.get("cluster_dns").and_then(Value::as_str).map(ToOwned::to_owned);
        let former = list(FORMER).filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        Self { dns, former, released: list(RELEASED).cloned().collect() }
    }

    /// Every name that the cluster answers to.
    fn all(&self) -> impl Iterator<Item = &str> {
        self.former.iter().chain(&self.dns).map(String::as_str)
    }

    fn released_names(&self) -> impl Iterator<Item = &str> {
        self.released.iter().filter_map(released_name)
    }

    /// Checks the names that a cluster brings along which is not known.
    fn check_new(&self, mut refuse: impl FnMut(&str, &'static str, String)) {
        if self.former.len() > MOST {
            refuse(FORMER, FORMER_LIMIT, former_limit());
        }
        if self.released.len() > MOST_RELEASED {
            refuse(RELEASED, RELEASED_LIMIT, released_limit());
        }
        self.check_repeated((MOST, MOST_RELEASED), refuse);
    }

    /// Refuses names that stand in two places, in any spelling, among the first so many of each list.
    fn check_repeated(&self, (former, released): (usize, usize), mut refuse: impl FnMut(&str, &'static str, String)) {
        let mut seen: BTreeSet<_> = self.dns.as_deref().map(dns_spelling).into_iter().collect();
        let former = self.former.iter().take(former).map(|name| (FORMER, name.as_str()));
        for (field, name) in former.chain(self.released_names().take(released).map(|name| (RELEASED, name))) {
            if !seen.insert(dns_spelling(name)) {
                let message =
                    format!("\"{}\" is a name of this cluster already; each stands in one place", Excerpt(name));
                refuse(field, "former-dns", message);
            }
        }
    }

    /// Completes the names in the new fields of a cluster with these that it has; refuses names that it does not have.
    pub(super) fn keep_in(&self, ty: &ResourceType, id: &Id, fields: &mut Map) -> Result<(), EditError> {
        let given = Self::read(fields);
        let has_others = [self, &given].iter().any(|names| !names.former.is_empty() || !names.released.is_empty());
        if !has_others && self.dns.as_deref().map(dns_spelling) == given.dns.as_deref().map(dns_spelling) {
            return Ok(());
        }
        let mut errors = Vec::new();
        let mut refuse = |field: &str, rule, message| {
            errors.push(FieldError::new(format!("/{field}"), rule, message).in_document(&ty.kind, id));
        };
        let not_owned = |name: &&str| format!("the server keeps this list, and \"{}\" is not on it", Excerpt(name));
        for name in given.former.iter().map(String::as_str).filter(|name| !holds(self.all(), name)) {
            refuse(FORMER, "server-owned", not_owned(&name));
        }
        for name in given.released_names().filter(|name| !holds(self.released_names(), name)) {
            refuse(RELEASED, "server-owned", not_owned(&name));
        }
        // A document that came with more, as with a seed, is still edited.
        if self.put_into(fields) > MOST.max(self.former.len()) {
            refuse("cluster_dns", FORMER_LIMIT, former_limit());
        }
        if errors.is_empty() { Ok(()) } else { Err(EditError::Invalid(errors)) }
    }

    /// Adds the cluster's names to its new fields; returns how many of them are former names.
    fn put_into(&self, fields: &mut Map) -> usize {
        let new = Self::read(fields);
        let is_new = |name: &str| new.dns.as_ref().is_some_and(|dns| is_same(dns, name));
        let mut former: Vec<String> = Vec::new();
        for name in self.all().filter(|name| !is_new(name)) {
            if !holds(former.iter().map(String::as_str), name) {
                former.push(name.to_owned());
            }
        }
        let is_answered = |name: &str| is_new(name) || holds(former.iter().map(String::as_str), name);
        let released = self.released.iter().filter(|entry| released_name(entry).is_none_or(|name| !is_answered(name)));
        let released = released.cloned().collect();
        let count = former.len();
        Self { dns: new.dns, former, released }.write(fields);
        count
    }

    /// Writes both lists; an empty one is left out.
    fn write(&self, fields: &mut Map) {
        for (field, names) in [(FORMER, json!(self.former)), (RELEASED, json!(self.released))] {
            if names.as_array().is_none_or(Vec::is_empty) {
                fields.shift_remove(field);
            } else {
                fields.insert(field.to_owned(), names);
            }
        }
    }
}

const FORMER_LIMIT: &str = "former-dns-limit";

fn former_limit() -> String {
    format!("a cluster keeps at most {MOST} former DNS names; release one first")
}

const RELEASED_LIMIT: &str = "released-dns-limit";

fn released_limit() -> String {
    format!(
        "a cluster keeps at most {MOST_RELEASED} released DNS names, and none is forgotten while a cluster may still poll under \
         it; set the cluster_dns of this cluster or of another one to a released name first: then it leaves the list"
    )
}

/// The name in an entry of `released_dns`, which was a bare name once.
fn released_name(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("name")?.as_str())
}

/// Whether two names are one, in any spelling.
fn is_same(one: &str, other: &str) -> bool {
    dns_spelling(one) == dns_spelling(other)
}

/// Whether a name is among others, in any spelling.
fn holds<'a>(mut names: impl Iterator<Item = &'a str>, name: &str) -> bool {
    names.any(|known| is_same(known, name))
}
