//! A change in the making: edits on top of a snapshot, each of which sees the ones before it.
//!
//! Everything that an operator can do to the fleet is a method here, so that a single request, a batch and a dry run
//! are the same code. A draft decides what is written; whether that may be is [`review`](crate::review())'s to say.

mod cascade;
mod clusters;

use std::collections::BTreeMap;

use model::{Body, FieldError, Id, Kind, Map, Op, Patch, ResourceType, Value, Write};

use crate::{Snapshot, cores::beside_polls};

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
    ops: BTreeMap<(Kind, Id), Op>,
}

impl<'a> Draft<'a> {
    /// No edits yet.
    #[must_use]
    pub fn on(fleet: &'a Snapshot) -> Self {
        Self { fleet, ops: BTreeMap::new() }
    }

    /// The snapshot that is edited.
    #[must_use]
    pub fn fleet(&self) -> &'a Snapshot {
        self.fleet
    }

    /// The writes that these edits come to, without those that change nothing.
    #[must_use]
    pub fn into_writes(self) -> Vec<Write> {
        let fleet = self.fleet;
        let changes = |(kind, id): &(Kind, Id), op: &Op| {
            let known = fleet.registry().by_kind(kind.as_str()).and_then(|ty| fleet.document(ty, id));
            known.map_or(*op != Op::Remove, |document| document.op() != *op)
        };
        let writes = self.ops.into_iter().filter(|(key, op)| changes(key, op));
        writes.map(|((kind, id), op)| Write { kind, id, op }).collect()
    }

    /// What the document is at this point of the draft.
    fn op(&self, ty: &ResourceType, id: &Id) -> Option<Op> {
        match self.ops.get(&(ty.kind.clone(), id.clone())) {
            Some(op) => Some(op.clone()),
            None => self.fleet.document(ty, id).map(model::Document::op),
        }
    }

    /// The fields of a document that is in force.
    pub fn fields(&self, ty: &ResourceType, id: &Id) -> Result<Map, EditError> {
        match self.op(ty, id) {
            Some(Op::Put(body)) => body.fields().map_err(|error| unreadable(&error)),
            Some(Op::Retire(_)) => Err(EditError::Decommissioned(id.clone())),
            Some(Op::Remove) | None => Err(EditError::NotFound { kind: ty.kind.clone(), id: id.clone() }),
        }
    }

    /// Writes an operation as it is, for changes that put the past back.
    pub fn write(&mut self, ty: &ResourceType, id: &Id, op: Op) {
        self.ops.insert((ty.kind.clone(), id.clone()), op);
    }

    fn put(&mut self, ty: &ResourceType, id: &Id, fields: &Map) {
        self.write(ty, id, Op::Put(Body::from_fields(fields)));
    }

    /// Creates a document; a decommissioned cluster of that id is in force again.
    pub fn create(&mut self, ty: &ResourceType, fields: Map) -> Result<Id, EditError> {
        let (id, fields) = with_id(ty, fields, None)?;
        if let Some(Op::Put(_)) = self.op(ty, &id) {
            return Err(EditError::Exists { kind: ty.kind.clone(), id });
        }
        self.put(ty, &id, &fields);
        Ok(id)
    }

    /// Makes a document say this and no more.
    pub fn replace(&mut self, ty: &ResourceType, id: &Id, fields: Map) -> Result<(), EditError> {
        self.fields(ty, id)?;
        let (id, fields) = with_id(ty, fields, Some(id))?;
        self.put(ty, &id, &fields);
        Ok(())
    }

    /// Changes a document.
    pub fn patch(&mut self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<(), EditError> {
        let patched = self.patched(ty, id, patch)?;
        self.write(ty, id, Op::Put(patched));
        Ok(())
    }

    /// Changes documents alike.
    pub fn patch_all(&mut self, ty: &ResourceType, ids: Vec<Id>, patch: &Patch) -> Result<(), EditError> {
        let patched = beside_polls(ids, |id| self.patched(ty, &id, patch).map(|body| (id, body)));
        for patched in patched {
            let (id, body) = patched?;
            self.write(ty, &id, Op::Put(body));
        }
        Ok(())
    }

    /// What a document says after a patch.
    fn patched(&self, ty: &ResourceType, id: &Id, patch: &Patch) -> Result<Body, EditError> {
        let fields = patch
            .apply(self.fields(ty, id)?)
            .map_err(|error| FieldError::new("", "patch", error.to_string()).of(&ty.kind, id))?;
        let (_, fields) = with_id(ty, fields, Some(id))?;
        Ok(Body::from_fields(&fields))
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
        (Some(id), _) => {
            let mut ordered = Map::new();
            ordered.insert("id".to_owned(), Value::String(id.to_string()));
            fields.shift_remove("id");
            ordered.extend(fields);
            Ok((id.clone(), ordered))
        }
        (None, Some(said)) => match Id::parse(said) {
            Ok(id) => Ok((id, fields)),
            Err(error) => Err(FieldError::new("/id", "id", error.to_string()).into()),
        },
        // The schema says what is wrong with an id that is missing or no string, and with all else.
        (None, None) => Err(EditError::Invalid(ty.check(fields))),
    }
}
