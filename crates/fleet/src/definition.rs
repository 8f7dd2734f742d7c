//! A definition: a document that clusters refer to, read for merging.

use model::{Document, Map, ResourceType, Value, prune_nulls};

use crate::{order::Delivery, snapshot::SnapshotError};

/// A definition and the fields of it that reach Flux.
#[derive(Debug)]
pub struct Definition {
    /// Its document.
    pub document: Document,
    /// What it says beside the id; null says nothing.
    pub(crate) fields: Map,
}

impl Definition {
    pub(crate) fn read(document: Document, ty: &ResourceType) -> Result<Self, SnapshotError> {
        let mut fields =
            document.body.fields().map_err(|error| SnapshotError::unreadable(&document, error.to_string()))?;
        fields.shift_remove("id");
        if let Some(only) = &ty.fields {
            fields.retain(|name, _| only.contains(name));
        }
        prune_nulls(&mut fields);
        Ok(Self { document, fields })
    }

    /// Whether Flux orders another version of the definition in the same way.
    pub(crate) fn is_ordered_as(&self, other: &Self, ty: &ResourceType) -> bool {
        self.depends_on(ty).eq(other.depends_on(ty)) && Delivery::of(self) == Delivery::of(other)
    }

    /// The ids that must be healthy first, by the field that the type declares for it.
    pub(crate) fn depends_on<'a>(&'a self, ty: &ResourceType) -> impl Iterator<Item = &'a str> {
        let list = ty.ordered_by.as_ref().and_then(|field| self.fields.get(field)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }
}
