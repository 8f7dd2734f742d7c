//! Which resource types a fleet is served by, as its change log records it.
//!
//! A type's file decides under which path, from which list and from documents of which kind a cluster is answered. If these move
//! under a running fleet, by an edited file or by a replica that has other files, clusters get another type's inputs or none
//! at all, and delete what they have. So the change log holds one document of the kind `resource_type` for each served type,
//! and a server whose files say otherwise does not serve that type until an operator accepts the change.
//!
//! A record is never forgotten: a type that is gone is recorded as retired, and one that moved keeps the paths and lists that it
//! had. Else a server that still has the old file would take it for a new type, and serve it.
//!
//! So it is with fields and their defaults: where `enabled` became false by default, clusters would delete what they were never
//! told to, and where a field is left out or put into another object (`nest`), a template may render something else. Only a
//! field more changes nothing that was there, unless it is an `enabled` that is false by default.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Body, Id, InvalidId, Kind, Map, Op, ResourceType, Value, Write};

/// The field of an input that a cluster's patches are in, where the type is patchable.
pub(crate) const PATCHES: &str = "patches";

/// Whether a default disables every input that says nothing else: most templates then render nothing.
pub(crate) fn disables(field: &str, default: &Value) -> bool {
    field == "enabled" && *default == Value::Bool(false)
}

/// How a type is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeRecord {
    /// The kind of the documents that are served.
    pub kind: Kind,
    /// The list in a cluster document that refers to them.
    pub list: String,
    /// The last part of the Flux endpoint.
    pub path: String,
    /// The name of the key that the type's file gives its documents.
    pub key: String,
    /// What its fields hold where nothing else says anything.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map,
    /// The fields that reach Flux; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<BTreeSet<String>>,
    /// Which of them stand in an object of an input and not beside its id, by the object's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nest: BTreeMap<String, BTreeSet<String>>,
    /// Whether an operator has accepted that it is served no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
    /// Paths under which it was the last type to be served, and is no more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub former_paths: BTreeSet<String>,
    /// Lists from which it was the last type to be served, and is no more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub former_lists: BTreeSet<String>,
}

impl TypeRecord {
    /// The kind of the documents that hold records. No type can have it.
    pub const KIND: &str = "resource_type";

    /// How a type is served by its file.
    #[must_use]
    pub fn declared(ty: &ResourceType) -> Self {
        let patches = ty.patchable.then(|| PATCHES.to_owned());
        Self {
            kind: ty.kind.clone(),
            list: ty.list.clone(),
            path: ty.path.clone(),
            key: ty.key.clone(),
            defaults: ty.defaults.clone(),
            fields: Some(ty.served.iter().cloned().chain(patches).collect()),
            nest: ty.nests.iter().map(|nest| (nest.name.clone(), nest.fields.iter().cloned().collect())).collect(),
            retired: false,
            former_paths: BTreeSet::new(),
            former_lists: BTreeSet::new(),
        }
    }

    /// Whether clusters get by a file what they got by this record, as far as it says; the file may have fields beside.
    pub(crate) fn agrees_with(&self, declared: &Self) -> bool {
        let named = |it: &Self| [it.kind.as_str(), &it.list, &it.path, &it.key].map(str::to_owned);
        let has_field = |name: &String| self.fields.as_ref().is_some_and(|fields| fields.contains(name));
        let is_served = |name: &String| declared.fields.as_ref().is_none_or(|fields| fields.contains(name));
        let is_in_place = |name: &String| self.place_of(name) == declared.place_of(name);
        // A new field that disables every input is not merely one more.
        let is_harmless = |(name, value): (&String, &Value)| !has_field(name) && !disables(name, value);
        !self.retired
            && named(self) == named(declared)
            && self.defaults.iter().all(|(name, value)| declared.defaults.get(name) == Some(value))
            && declared.defaults.iter().all(|field| self.defaults.contains_key(field.0) || is_harmless(field))
            && self.fields.iter().flatten().all(|name| is_served(name) && is_in_place(name))
    }

    /// Whether it says all that a file with which it agrees says.
    pub(crate) fn covers(&self, declared: &Self) -> bool {
        self.fields == declared.fields && self.defaults == declared.defaults && self.nest == declared.nest
    }

    /// The object of an input in which a field stands; none if it stands beside the id.
    fn place_of(&self, field: &str) -> Option<&str> {
        self.nest.iter().find(|(_, fields)| fields.contains(field)).map(|(name, _)| name.as_str())
    }

    /// Whether this type was the last to be served under a path.
    #[must_use]
    pub fn has_path(&self, path: &str) -> bool {
        (!self.retired && self.path == path) || self.former_paths.contains(path)
    }

    /// Whether this type was the last to be served from a list.
    #[must_use]
    pub fn has_list(&self, list: &str) -> bool {
        (!self.retired && self.list == list) || self.former_lists.contains(list)
    }

    /// This, which takes the place of an earlier record and remembers what that one had.
    #[must_use]
    pub fn in_place_of(mut self, earlier: &Self) -> Self {
        self.former_paths.clone_from(&earlier.former_paths);
        self.former_lists.clone_from(&earlier.former_lists);
        if !earlier.retired {
            self.former_paths.insert(earlier.path.clone());
            self.former_lists.insert(earlier.list.clone());
        }
        self.former_paths.remove(&self.path);
        self.former_lists.remove(&self.list);
        self
    }

    /// The record of the same type, once it is served no more.
    pub(crate) fn retire(mut self) -> Self {
        if !self.retired {
            self.retired = true;
            self.former_paths.insert(self.path.clone());
            self.former_lists.insert(self.list.clone());
        }
        self
    }

    /// Reads a record from its document.
    pub fn read(body: &Body) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&body.text())
    }

    /// The write that records it.
    pub fn write(&self) -> Result<Write, InvalidId> {
        let id = Id::parse(self.kind.as_str())?;
        let texts = [
            ("id", id.as_str()),
            ("kind", self.kind.as_str()),
            ("list", &self.list),
            ("path", &self.path),
            ("key", &self.key),
        ];
        let mut fields: Map = texts.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        if !self.defaults.is_empty() {
            fields.insert("defaults".to_owned(), Value::Object(self.defaults.clone()));
        }
        if let Some(names) = &self.fields {
            fields.insert("fields".to_owned(), names.iter().cloned().collect());
        }
        if !self.nest.is_empty() {
            let nest = self.nest.iter().map(|(name, fields)| (name.clone(), fields.iter().cloned().collect()));
            fields.insert("nest".to_owned(), Value::Object(nest.collect()));
        }
        if self.retired {
            fields.insert("retired".to_owned(), Value::Bool(true));
        }
        for (name, former) in [("former_paths", &self.former_paths), ("former_lists", &self.former_lists)] {
            if !former.is_empty() {
                fields.insert(name.to_owned(), former.iter().cloned().collect());
            }
        }
        Ok(Write { kind: Kind::from(Self::KIND), id, op: Op::Put(Body::from_fields(&fields)) })
    }
}
