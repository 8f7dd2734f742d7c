//! A definition: a document that clusters refer to, read for merging.

use std::collections::BTreeSet;

use model::{Document, ResourceType, Value, prune_nulls};

use crate::{
    merge::{Field, Layout, Source, fields_of, merge},
    order::Delivery,
    snapshot::SnapshotError,
};

/// A definition and what of it reaches Flux.
#[derive(Debug)]
pub struct Definition {
    /// Its document.
    pub document: Document,
    /// The fields that it sets, and that reach Flux.
    pub(crate) fields: Box<[Field<'static>]>,
    /// The input of a cluster that overrides and patches nothing, as JSON, up to the cluster's identity. Written once, when the
    /// document is read, and not for every poll: most references override nothing.
    pub(crate) plain: Box<str>,
    /// Its length without the additions to the merged fields.
    own: usize,
    /// What must be healthy first, as the definition lists it.
    pub(crate) depends_on: Box<[Dependency]>,
    /// What Flux makes of it.
    pub(crate) delivery: Delivery,
}

/// An entry of the list of what must be healthy first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) id: Box<str>,
    /// Whether the same id is in the list before it. Known once, because a poll would compare each entry with all before it.
    pub(crate) is_repeated: bool,
}

/// What the input of a type has where nothing is patched, as more members of a JSON object.
pub(crate) fn unpatched(ty: &ResourceType) -> &'static str {
    if ty.patchable { ",\"patches\":{},\"values\":{}" } else { "" }
}

impl Definition {
    pub(crate) fn read(document: Document, ty: &ResourceType, defaults: Source<'_>) -> Result<Self, SnapshotError> {
        let mut fields =
            document.body.fields().map_err(|error| SnapshotError::unreadable(&document, error.to_string()))?;
        fields.shift_remove("id");
        if let Some(only) = &ty.fields {
            fields.retain(|name, _| only.contains(name));
        }
        prune_nulls(&mut fields);
        let list = ty.ordered_by.as_ref().and_then(|field| fields.get(field)).and_then(Value::as_array);
        let mut seen = BTreeSet::new();
        let dependency = |id: &str| Dependency { id: id.into(), is_repeated: !seen.insert(id.to_owned()) };
        let depends_on = list.into_iter().flatten().filter_map(Value::as_str).map(dependency).collect();
        let delivery = Delivery::from_source(fields.get("oci_url"), fields.get("oci_content"));
        let fields = fields_of(&fields);
        let mut plain = String::from("{");
        Layout::new(ty, &merge(&[defaults, &fields])).write(&document.id, &mut plain);
        let own = plain.len();
        plain.push_str(unpatched(ty));
        if ty.ordered_by.is_some() {
            plain.push_str(",\"effective_depends_on\":[]");
        }
        Ok(Self { document: document.packed(), fields, plain: plain.into(), own, depends_on, delivery })
    }

    /// The merged fields, as the beginning of a JSON object.
    pub(crate) fn own(&self) -> &str {
        &self.plain[..self.own]
    }

    /// Whether Flux orders another version of the definition in the same way.
    pub(crate) fn is_ordered_as(&self, other: &Self) -> bool {
        self.depends_on == other.depends_on && self.delivery == other.delivery
    }
}
