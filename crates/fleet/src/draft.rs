//! A change before it is committed: edits on top of a snapshot, each of which sees the ones before it.
//!
//! Everything that an operator can do to the fleet is a method here, so that a single request, a batch and a dry run
//! are the same code. A draft decides what is written; `review` decides whether that is allowed.

mod cascade;
mod clusters;
mod lists;
mod names;
mod open;

pub use names::repeated_dns_names;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use model::{
    Body, Change, Excerpt, FieldError, Id, Kind, Map, Op, Origin, Patch, PatchFailed, ResourceType, Revision,
    TypeRecord, Value, Write,
    limits::{BULK_GROWTH, BULK_VALUES, CHANGE_WORK, COUNTED_ERRORS, ERRORS, Size},
    read_fields,
};

use crate::{
    AllowedRemovals, Rule, Snapshot,
    cores::on_spare_cores,
    review::{Objections, check_fields, review},
};
use cascade::Dependants;
use open::{Cost, OpenDocument};

/// An edit that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// There is no such document.
    #[error("there is no {kind} \"{id}\"")]
    NotFound {
        /// The kind.
        kind: Kind,
        /// The id.
        id: Id,
    },
    /// The cluster is decommissioned.
    #[error("cluster \"{0}\" is decommissioned; it can be restored, created again or purged")]
    Decommissioned(Id),
    /// The cluster is not decommissioned.
    #[error("cluster \"{0}\" is in force; only a decommissioned cluster can be restored or purged")]
    NotDecommissioned(Id),
    /// There is such a document already.
    #[error("there is already a {kind} \"{id}\"")]
    Exists {
        /// The kind.
        kind: Kind,
        /// The id.
        id: Id,
    },
    /// Others refer to the document.
    #[error("{kind} \"{id}\" is still referred to by {}; a cascading delete removes these references too", several(.by))]
    Referenced {
        /// The kind.
        kind: Kind,
        /// The id.
        id: Id,
        /// The documents that refer to it, as `kind/id`.
        by: Vec<String>,
    },
    /// The cluster must not be decommissioned.
    #[error("cluster \"{0}\" is protected; set deletion_protection to false first")]
    Protected(Id),
    /// A patch that does not define how it treats lists would shorten one.
    #[error(
        "as application/json this patch would remove {} from \"{list}\" of cluster \"{id}\"; send it as \
         {}application/strategic-merge-patch+json to change only the items that it names",
        quoted(.gone),
        if *.is_strategic { "" } else { "application/merge-patch+json to replace the list, or as " }
    )]
    AmbiguousPatch {
        /// The cluster.
        id: Id,
        /// The list of references.
        list: String,
        /// The ids that it would lose.
        gone: Vec<String>,
        /// Whether it can only be meant as a strategic merge patch, as a patch of many documents.
        is_strategic: bool,
    },
    /// A patch that does not say how it treats lists would leave other references behind as one kind of patch than as the other.
    #[error(
        "as application/json this patch would replace what {} say in \"{list}\" of cluster \"{id}\", or change only the fields that \
         it names; send it as application/merge-patch+json to replace the list, or as application/strategic-merge-patch+json to \
         keep the other fields",
        quoted(.ids)
    )]
    AmbiguousReferences {
        /// The cluster.
        id: Id,
        /// The list of references.
        list: String,
        /// The ids of the references that would differ.
        ids: Vec<String>,
    },
    /// The request breaks rules.
    #[error("the document breaks {} rule(s)", .0.len())]
    Invalid(Vec<FieldError>),
}

/// Names the first few.
fn several(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len() {
        count if count > COUNTED_ERRORS => format!("{shown} and more than {} more", COUNTED_ERRORS - SHOWN),
        count if count > SHOWN => format!("{shown} and {} more", count - SHOWN),
        _ => shown,
    }
}

/// Names the first few, in quotes.
fn quoted(names: &[String]) -> String {
    several(&names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>())
}

impl From<FieldError> for EditError {
    fn from(error: FieldError) -> Self {
        Self::Invalid(vec![error])
    }
}

/// Edits on top of a snapshot.
#[derive(Debug)]
pub struct Draft<'a> {
    fleet: &'a Snapshot,
    edits: BTreeMap<(Kind, Id), Edit>,
    /// Documents that are being edited; what `edits` has of them is older.
    open: BTreeMap<(Kind, Id), OpenDocument>,
    /// About the bytes of all that are open.
    open_bytes: usize,
    /// Bytes of all documents that the edits have made so far, also of those that a later edit has made anew, and of what edits
    /// had to read.
    work: usize,
    /// How many broken rules the edits keep.
    broken: usize,
    /// The dependants in the snapshot, by the type's position; only of types of which something is deleted.
    dependants: BTreeMap<usize, Dependants<'a>>,
}

/// What a draft does to a document.
#[derive(Debug)]
struct Edit {
    op: Op,
    /// The rules that the document breaks by itself, if that was checked, which needs its fields.
    broken: Option<Vec<FieldError>>,
    /// Whether the document changes, if both texts were compared.
    changes: Option<bool>,
}

impl Edit {
    /// Whether the document changes.
    fn changes(&self, fleet: &Snapshot, (kind, id): &(Kind, Id)) -> bool {
        self.changes.unwrap_or_else(|| {
            let known = fleet.document_of_kind(kind, id);
            known.map_or(self.op != Op::Remove, |document| document.op() != self.op)
        })
    }
}

impl<'a> Draft<'a> {
    /// No edits yet.
    #[must_use]
    pub fn on(fleet: &'a Snapshot) -> Self {
        let (edits, open, dependants) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { fleet, edits, open, open_bytes: 0, work: 0, broken: 0, dependants }
    }

    /// The snapshot that is edited.
    #[must_use]
    pub fn fleet(&self) -> &'a Snapshot {
        self.fleet
    }

    /// The change that consists of these edits, without those that change nothing, and the fleet after it; or every rule that
    /// it would break, or what it would take from protected clusters beyond what it is allowed to.
    pub fn into_change(mut self, origin: Origin, allowed: AllowedRemovals) -> Result<(Change, Snapshot), Objections> {
        let fleet = self.fleet;
        self.close_all().map_err(|error| Objections::Rules(vec![error]))?;
        self.refuse_moved_types()?;
        if fleet.revision() == Revision::ZERO && !self.edits.is_empty() {
            // A change log begins with the types that its fleet is served by.
            fleet.unrecorded_types().into_iter().for_each(|write| self.write_record(write));
        }
        let edits = self.edits.into_iter().filter(|(key, edit)| edit.changes(fleet, key));
        let (writes, broken) =
            edits.map(|((kind, id), Edit { op, broken, .. })| (Write { kind, id, op }, broken)).unzip();
        let change = Change::after(fleet.point(), origin, writes);
        let next = review(fleet, &change, broken, allowed)?;
        Ok((change, next))
    }

    /// Whether any document changes.
    #[must_use]
    pub fn changes_anything(&self) -> bool {
        self.edits.iter().any(|(key, edit)| edit.changes(self.fleet, key))
    }

    /// What the document is at this point of the draft.
    fn op(&self, ty: &ResourceType, id: &Id) -> Option<Op> {
        let key = (ty.kind.clone(), id.clone());
        if let Some(open) = self.open.get(&key) {
            return Some(Op::Put(Body::from_fields(&open.fields)));
        }
        match self.edits.get(&key) {
            Some(edit) => Some(edit.op.clone()),
            None => self.fleet.document(ty, id).map(model::Document::op),
        }
    }

    /// The fields of a document that is in force.
    fn fields(&self, ty: &ResourceType, id: &Id) -> Result<Map, EditError> {
        if let Some(open) = self.open.get(&(ty.kind.clone(), id.clone())) {
            return Ok(open.fields.clone());
        }
        self.in_force(ty, id)?.fields().map_err(|error| unreadable(ty, id, &error))
    }

    /// The content of a document that is in force.
    pub fn in_force(&self, ty: &ResourceType, id: &Id) -> Result<Body, EditError> {
        match self.op(ty, id) {
            Some(Op::Put(body)) => Ok(body),
            Some(Op::Retire(_)) => Err(EditError::Decommissioned(id.clone())),
            Some(Op::Remove) | None => Err(EditError::NotFound { kind: ty.kind.clone(), id: id.clone() }),
        }
    }

    /// A server that does not serve a type as the change log records it, or has no file of it, cannot compute what a change would
    /// do to clusters: other servers may serve them.
    fn refuse_moved_types(&self) -> Result<(), Objections> {
        let is_about_types = self.edits.keys().all(|(kind, _)| kind.as_str() == TypeRecord::KIND);
        let unserved: Vec<_> = self.fleet.unserved_paths().collect();
        let undeclared: Vec<_> = self.fleet.types().undeclared().iter().map(Kind::as_str).collect();
        let message = match (unserved.is_empty(), undeclared.is_empty()) {
            _ if is_about_types => return Ok(()),
            (true, true) => return Ok(()),
            (false, _) => format!(
                "this server's files declare {} in another way than the change log; GET /types/changes shows it, and until it is \
                 accepted or the files are mended nothing is changed here",
                unserved.join(", ")
            ),
            (true, false) => format!(
                "the change log has types of which this server has no file ({}), so it cannot tell what a change would remove from \
                 clusters; put the file back, or accept that the type is gone: GET /types/changes shows it",
                undeclared.join(", ")
            ),
        };
        Err(Objections::Rules(vec![FieldError::new("", Rule::TypesChanged.name(), message)]))
    }

    /// Writes the record of a resource type.
    pub(crate) fn write_record(&mut self, Write { kind, id, op }: Write) {
        self.edits.insert((kind, id), Edit { op, broken: Some(Vec::new()), changes: None });
    }

    /// Writes an operation as it is, for changes that put the past back.
    pub fn write(&mut self, ty: &ResourceType, id: &Id, op: Op) {
        let op = if ty.is_cluster() { self.with_kept_names(ty, id, op) } else { op };
        self.forget_open(ty, id);
        self.edits.insert((ty.kind.clone(), id.clone()), Edit { op, broken: None, changes: None });
    }

    fn put(&mut self, ty: &ResourceType, id: &Id, fields: Map) -> Result<(), EditError> {
        let edit = self.edit(ty, id, fields)?;
        Ok(self.enter(ty, id, edit)?)
    }

    /// Takes an edit in, as long as a request does not ask for more work than it may.
    fn enter(&mut self, ty: &ResourceType, id: &Id, edit: Edit) -> Result<(), FieldError> {
        self.charge(ty, id, edit.op.body().map_or(0, |body| body.text().len()))?;
        self.keep(ty, id, edit);
        Ok(())
    }

    fn charge(&mut self, ty: &ResourceType, id: &Id, bytes: usize) -> Result<(), FieldError> {
        self.work += bytes;
        if self.work > CHANGE_WORK {
            let message = format!(
                "the documents that this request makes, one after another, have more than {CHANGE_WORK} bytes together: \
                 send several, and edit each document once"
            );
            return Err(FieldError::new("", "change-work", message).in_document(&ty.kind, id));
        }
        Ok(())
    }

    /// Keeps an edit, and as many of the rules that it breaks as are reported, but at least one.
    fn keep(&mut self, ty: &ResourceType, id: &Id, mut edit: Edit) {
        if let Some(broken) = &mut edit.broken {
            broken.truncate(ERRORS.saturating_sub(self.broken).max(1));
            self.broken += broken.len();
        }
        self.forget_open(ty, id);
        self.edits.insert((ty.kind.clone(), id.clone()), edit);
    }

    /// The edit that gives a document these fields.
    fn edit(&self, ty: &ResourceType, id: &Id, mut fields: Map) -> Result<Edit, EditError> {
        if ty.is_cluster() {
            self.keep_names(ty, id, &mut fields)?;
        }
        Ok(self.checked(ty, id, fields))
    }

    /// The edit that gives a document these fields, with the rules that it breaks by itself.
    fn checked(&self, ty: &ResourceType, id: &Id, fields: Map) -> Edit {
        let body = Body::from_fields(&fields);
        let broken = Some(check_fields(self.fleet, ty, id, fields, &body));
        Edit { op: Op::Put(body), broken, changes: None }
    }

    /// Creates a document; a decommissioned cluster of that id is in force again.
    pub fn create(&mut self, ty: &ResourceType, fields: Map) -> Result<Id, EditError> {
        let (id, fields) = with_id(ty, fields, None)?;
        if let Some(Op::Put(_)) = self.op(ty, &id) {
            return Err(EditError::Exists { kind: ty.kind.clone(), id });
        }
        self.put(ty, &id, fields)?;
        Ok(id)
    }

    /// Replaces all fields of a document.
    pub fn replace(&mut self, ty: &ResourceType, id: &Id, fields: Map) -> Result<(), EditError> {
        self.in_force(ty, id)?;
        let (id, fields) = with_id(ty, fields, Some(id))?;
        self.put(ty, &id, fields)
    }

    /// Changes a document.
    pub fn patch(&mut self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<(), EditError> {
        // A patch of so few values names few items, which are searched for one by one.
        const FEW_VALUES: usize = 16;
        let (cost, growth) = match patch {
            Patch::Strategic(patch) if Size::of_value(patch).elements <= FEW_VALUES => {
                (Cost::Items, Size::of_value(patch).bytes)
            }
            Patch::Merge(patch) | Patch::Strategic(patch) => (Cost::Document, Size::of_value(patch).bytes),
            // It is a request of its own.
            Patch::Json(_) => (Cost::Document, 0),
        };
        self.edit_open(ty, id, (cost, growth), |fields| {
            patch.apply_to(fields).map_err(|error| patch_failed(ty, id, &error))
        })
    }

    /// Applies one patch to many documents. A patch that breaks rules in many is not tried on all, and one that would make the
    /// fleet many times as large is refused before there is no memory left.
    pub fn patch_all(&mut self, ty: &ResourceType, ids: Vec<Id>, patch: &Patch) -> Result<(), EditError> {
        let values = match patch {
            Patch::Merge(patch) | Patch::Strategic(patch) => Size::of_value(patch).elements,
            Patch::Json(operations) => operations.len(),
        };
        if values.saturating_mul(ids.len()) > BULK_VALUES {
            let message = format!(
                "a patch writes at most {BULK_VALUES} values over all documents, and this has {values} for {} documents",
                ids.len()
            );
            return Err(FieldError::new("", "bulk-growth", message).into());
        }
        let (growth, broken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let edited = on_spare_cores(ids, |id| {
            if broken.load(Ordering::Relaxed) >= ERRORS {
                return Ok(None);
            }
            let before = self.fleet.document(ty, &id).map_or(0, |document| document.body.text().len());
            let edit = self.patched(ty, &id, patch)?;
            let after = edit.op.body().map_or(0, |body| body.text().len());
            let more = after.saturating_sub(before);
            if growth.fetch_add(more, Ordering::Relaxed) + more > BULK_GROWTH {
                let message = format!("a patch of many documents adds at most {BULK_GROWTH} bytes to all together");
                return Err(EditError::from(FieldError::new("", "bulk-growth", message)));
            }
            // A document that does not change does not count against the patch.
            let is_broken = edit.broken.as_ref().is_some_and(|broken| !broken.is_empty());
            if is_broken && edit.changes != Some(false) {
                broken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Some((edit, id)))
        });
        for edited in edited {
            if let Some((edit, id)) = edited? {
                self.keep(ty, &id, edit);
            }
        }
        Ok(())
    }

    /// The edit that a patch of a document is.
    fn patched(&self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<Edit, EditError> {
        let known = self.in_force(ty, id)?;
        let text = known.text();
        let fields = patch
            .apply(read_fields(&text).map_err(|error| unreadable(ty, id, &error))?)
            .map_err(|error| patch_failed(ty, id, &error))?;
        let mut edit = self.edit(ty, id, with_id(ty, fields, Some(id))?.1)?;
        if !self.edits.contains_key(&(ty.kind.clone(), id.clone())) {
            edit.changes = edit.op.body().map(|body| body.text() != text);
        }
        Ok(edit)
    }

    /// Deletes a document: decommissions a cluster, removes any other document that has no referrers. With `cascade`, the
    /// references are removed too.
    pub fn delete(&mut self, ty: &ResourceType, id: &Id, cascade: bool) -> Result<(), EditError> {
        let fields = self.fields(ty, id)?;
        if ty.is_cluster() {
            if fields.get("deletion_protection") == Some(&Value::Bool(true)) {
                return Err(EditError::Protected(id.clone()));
            }
            self.write(ty, id, Op::Retire(Body::from_fields(&fields)));
            return Ok(());
        }
        self.release(ty, id, cascade)?;
        self.write(ty, id, Op::Remove);
        Ok(())
    }
}

fn patch_failed(ty: &ResourceType, id: &Id, error: &PatchFailed) -> EditError {
    FieldError::new("", error.rule, error.to_string()).in_document(&ty.kind, id).into()
}

fn unreadable(ty: &ResourceType, id: &Id, error: &serde_json::Error) -> EditError {
    FieldError::new("", "unreadable", error.to_string()).in_document(&ty.kind, id).into()
}

/// The id of a document and its fields with it; `id` is the one of the path.
fn with_id(ty: &ResourceType, fields: Map, id: Option<&Id>) -> Result<(Id, Map), EditError> {
    let mut fields = fields;
    if let Some(id) = id.filter(|_| !fields.contains_key("_id")) {
        fields.entry("id").or_insert_with(|| Value::String(id.to_string()));
    }
    let mut fields = ty.normalise(fields)?;
    let given = fields.get("id").and_then(Value::as_str);
    match (id, given) {
        (Some(id), Some(given)) if given != id.as_str() => {
            let given = Excerpt(given);
            let message = format!("the document's id is \"{given}\" and the path's is \"{id}\"");
            Err(FieldError::new("/id", "id", message).into())
        }
        (Some(id), Some(_)) => Ok((id.clone(), fields)),
        // An id that is no string gives way to the path's.
        (Some(id), None) => {
            fields.shift_insert(0, "id".to_owned(), Value::String(id.to_string()));
            Ok((id.clone(), fields))
        }
        (None, Some(given)) => match Id::parse(given) {
            Ok(id) => Ok((id, fields)),
            Err(error) => Err(FieldError::new("/id", "id", error.to_string()).into()),
        },
        // The schema reports what is wrong with an id that is missing or no string, and with all other fields.
        (None, None) => Err(EditError::Invalid(ty.check(fields))),
    }
}
