//! A change in the making: edits on top of a snapshot, each of which sees the ones before it.
//!
//! Everything that an operator can do to the fleet is a method here, so that a single request, a batch and a dry run
//! are the same code. A draft decides what is written; whether that may be is for review to say.

mod cascade;
mod clusters;

use std::collections::BTreeMap;

use model::{Body, Change, FieldError, Id, Kind, Map, Op, Origin, Patch, ResourceType, Value, Write};

use crate::{
    Snapshot,
    cores::beside_polls,
    review::{Objections, check_fields, review},
};

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
        /// Who refers to it, as `kind/id`.
        by: Vec<String>,
    },
    /// The cluster must not be decommissioned.
    #[error("cluster \"{0}\" is protected; set deletion_protection to false first")]
    Protected(Id),
    /// The request breaks rules.
    #[error("the document breaks {} rule(s)", .0.len())]
    Invalid(Vec<FieldError>),
}

/// Names the first few.
fn several(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
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
}

/// What a draft does to a document.
#[derive(Debug)]
struct Edit {
    op: Op,
    /// The rules that the document breaks by itself, if that was looked at: whoever has its fields does.
    broken: Option<Vec<FieldError>>,
    /// Whether the document says something else then, if that was looked at: whoever has both texts does.
    changes: Option<bool>,
}

impl<'a> Draft<'a> {
    /// No edits yet.
    #[must_use]
    pub fn on(fleet: &'a Snapshot) -> Self {
        Self { fleet, edits: BTreeMap::new() }
    }

    /// The snapshot that is edited.
    #[must_use]
    pub fn fleet(&self) -> &'a Snapshot {
        self.fleet
    }

    /// The change that these edits come to, without those that change nothing, and the fleet after it; or every rule that
    /// it would break.
    pub fn into_change(self, origin: Origin) -> Result<(Change, Snapshot), Objections> {
        let fleet = self.fleet;
        let changes = |(kind, id): &(Kind, Id), op: &Op| {
            let known = fleet.registry().by_kind(kind.as_str()).and_then(|ty| fleet.document(ty, id));
            known.map_or(*op != Op::Remove, |document| document.op() != *op)
        };
        let edits = self.edits.into_iter().filter(|(key, edit)| edit.changes.unwrap_or_else(|| changes(key, &edit.op)));
        let (writes, broken) =
            edits.map(|((kind, id), Edit { op, broken, .. })| (Write { kind, id, op }, broken)).unzip();
        let change = Change::after(fleet.point(), origin, writes);
        let next = review(fleet, &change, broken)?;
        Ok((change, next))
    }

    /// What the document is at this point of the draft.
    fn op(&self, ty: &ResourceType, id: &Id) -> Option<Op> {
        match self.edits.get(&(ty.kind.clone(), id.clone())) {
            Some(edit) => Some(edit.op.clone()),
            None => self.fleet.document(ty, id).map(model::Document::op),
        }
    }

    /// The fields of a document that is in force.
    fn fields(&self, ty: &ResourceType, id: &Id) -> Result<Map, EditError> {
        self.in_force(ty, id)?.fields().map_err(|error| unreadable(&error))
    }

    /// What a document says that is in force.
    pub fn in_force(&self, ty: &ResourceType, id: &Id) -> Result<Body, EditError> {
        match self.op(ty, id) {
            Some(Op::Put(body)) => Ok(body),
            Some(Op::Retire(_)) => Err(EditError::Decommissioned(id.clone())),
            Some(Op::Remove) | None => Err(EditError::NotFound { kind: ty.kind.clone(), id: id.clone() }),
        }
    }

    /// Writes an operation as it is, for changes that put the past back.
    pub fn write(&mut self, ty: &ResourceType, id: &Id, op: Op) {
        self.edits.insert((ty.kind.clone(), id.clone()), Edit { op, broken: None, changes: None });
    }

    fn put(&mut self, ty: &ResourceType, id: &Id, fields: Map) {
        let edit = self.edit(ty, id, fields);
        self.edits.insert((ty.kind.clone(), id.clone()), edit);
    }

    /// The edit that makes a document say this.
    fn edit(&self, ty: &ResourceType, id: &Id, fields: Map) -> Edit {
        let op = Op::Put(Body::from_fields(&fields));
        Edit { op, broken: Some(check_fields(self.fleet, ty, id, fields)), changes: None }
    }

    /// Creates a document; a decommissioned cluster of that id is in force again.
    pub fn create(&mut self, ty: &ResourceType, fields: Map) -> Result<Id, EditError> {
        let (id, fields) = with_id(ty, fields, None)?;
        if let Some(Op::Put(_)) = self.op(ty, &id) {
            return Err(EditError::Exists { kind: ty.kind.clone(), id });
        }
        self.put(ty, &id, fields);
        Ok(id)
    }

    /// Makes a document say this and no more.
    pub fn replace(&mut self, ty: &ResourceType, id: &Id, fields: Map) -> Result<(), EditError> {
        self.in_force(ty, id)?;
        let (id, fields) = with_id(ty, fields, Some(id))?;
        self.put(ty, &id, fields);
        Ok(())
    }

    /// Changes a document.
    pub fn patch(&mut self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<(), EditError> {
        let edit = self.patched(ty, id, patch)?;
        self.edits.insert((ty.kind.clone(), id.clone()), edit);
        Ok(())
    }

    /// Changes documents alike.
    pub fn patch_all(&mut self, ty: &ResourceType, ids: Vec<Id>, patch: &Patch) -> Result<(), EditError> {
        for edited in beside_polls(ids, |id| self.patched(ty, &id, patch).map(|edit| (edit, id))) {
            let (edit, id) = edited?;
            self.edits.insert((ty.kind.clone(), id), edit);
        }
        Ok(())
    }

    /// The edit that a patch of a document is.
    fn patched(&self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<Edit, EditError> {
        let known = self.in_force(ty, id)?;
        let text = known.text();
        let fields = patch
            .apply(serde_json::from_str(&text).map_err(|error| unreadable(&error))?)
            .map_err(|error| FieldError::new("", "patch", error.to_string()).of(&ty.kind, id))?;
        let mut edit = self.edit(ty, id, with_id(ty, fields, Some(id))?.1);
        if !self.edits.contains_key(&(ty.kind.clone(), id.clone())) {
            edit.changes = edit.op.body().map(|body| body.text() != text);
        }
        Ok(edit)
    }

    /// Deletes a document: decommissions a cluster, removes any other that nobody refers to. With `cascade`, the
    /// references go too.
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

fn unreadable(error: &serde_json::Error) -> EditError {
    FieldError::new("", "unreadable", error.to_string()).into()
}

/// The id of a document and its fields with it; `id` is what the path says.
fn with_id(ty: &ResourceType, fields: Map, id: Option<&Id>) -> Result<(Id, Map), EditError> {
    let mut fields = fields;
    if let Some(id) = id.filter(|_| !fields.contains_key("_id")) {
        fields.entry("id").or_insert_with(|| Value::String(id.to_string()));
    }
    let mut fields = ty.normalise(fields)?;
    let said = fields.get("id").and_then(Value::as_str);
    match (id, said) {
        (Some(id), Some(said)) if said != id.as_str() => {
            let message = format!("the document's id is \"{said}\" and the path's is \"{id}\"");
            Err(FieldError::new("/id", "id", message).into())
        }
        (Some(id), Some(_)) => Ok((id.clone(), fields)),
        // An id that is no string gives way to the path's.
        (Some(id), None) => {
            fields.shift_insert(0, "id".to_owned(), Value::String(id.to_string()));
            Ok((id.clone(), fields))
        }
        (None, Some(said)) => match Id::parse(said) {
            Ok(id) => Ok((id, fields)),
            Err(error) => Err(FieldError::new("/id", "id", error.to_string()).into()),
        },
        // The schema says what is wrong with an id that is missing or no string, and with all else.
        (None, None) => Err(EditError::Invalid(ty.check(fields))),
    }
}
