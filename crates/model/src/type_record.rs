//! The records of the resource types by which a fleet is served, in its change log.
//!
//! A type's file decides under which path, from which list and from documents of which kind a cluster is answered. If these
//! change while a fleet is served, by an edited file or by a replica with other files, clusters get another type's inputs or
//! none at all, and delete what they have. So the change log has one document of the kind `resource_type` for each served type,
//! and a server whose files differ does not serve that type until an operator accepts the change.
//!
//! A record is never deleted: a removed type is recorded as retired, and a moved one keeps its former paths and lists. Otherwise a
//! server that still has the old file would serve it as a new type.
//!
//! The same holds for fields and their defaults: if `enabled` became false by default, clusters would delete objects by mistake,
//! and if a field is left out or moved into another object (`nest`), a template may render something else. Only an additional
//! field changes no existing input, unless its default disables every input or delivers components in another way.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Body, Id, InvalidId, Kind, Map, Op, ResourceType, Value, Write};

/// The field of an input with the cluster's patches, if the type is patchable.
pub(crate) const PATCHES: &str = "patches";

/// Whether a default changes the objects of every input that does not set the field: it disables the input, or delivers a
/// component in another way.
pub(crate) fn alters_objects(field: &str, default: &Value) -> bool {
    match field {
        "enabled" => *default != Value::Bool(true),
        "oci_content" | "oci_url" | "component_path" => true,
        _ => false,
    }
}

/// How a type is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRecord {
    /// The kind of the documents that are served.
    pub kind: Kind,
    /// The list in a cluster document that refers to them.
    pub list: String,
    /// The last part of the Flux endpoint.
    pub path: String,
    /// The name of the key of its documents, from its file.
    pub key: String,
    /// The defaults of its fields.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map,
    /// The fields that reach Flux; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<BTreeSet<String>>,
    /// The fields that Kubernetes cannot change: a change of one is planned as a new object. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<BTreeSet<String>>,
    /// The fields that are inside an object of an input and not at its top level, by the object's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nest: BTreeMap<String, BTreeSet<String>>,
    /// The field that lists the ids which must be healthy first, by which inputs have `effective_depends_on`. Absent in records of
    /// older versions too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_by: Option<String>,
    /// Whether an operator has accepted that it is not served any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
    /// Paths under which it was the last type to be served, but is not any more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub former_paths: BTreeSet<String>,
    /// Lists from which it was the last type to be served, but is not any more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub former_lists: BTreeSet<String>,
}

impl TypeRecord {
    /// The kind of the documents that hold records. No type can have it.
    pub const KIND: &str = "resource_type";

    /// The record of a type as its file declares it.
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
            fixed: (!ty.fixed.is_empty()).then(|| ty.fixed.keys().cloned().collect()),
            nest: ty.nests.iter().map(|nest| (nest.name.clone(), nest.fields.iter().cloned().collect())).collect(),
            ordered_by: ty.ordered_by.clone(),
            retired: false,
            former_paths: BTreeSet::new(),
            former_lists: BTreeSet::new(),
        }
    }

    /// Whether a file serves to clusters what this record does, as far as it is recorded; the file may have additional fields.
    pub(crate) fn agrees_with(&self, declared: &Self) -> bool {
        let named = |it: &Self| [it.kind.as_str(), &it.list, &it.path, &it.key].map(str::to_owned);
        let has_field = |name: &String| self.fields.as_ref().is_some_and(|fields| fields.contains(name));
        let is_served = |name: &String| declared.fields.as_ref().is_none_or(|fields| fields.contains(name));
        let is_in_same_nest = |name: &String| self.nest_of(name) == declared.nest_of(name);
        // A new field whose default changes the objects of every input is not only an addition.
        let is_harmless = |(name, value): (&String, &Value)| !has_field(name) && !alters_objects(name, value);
        !self.retired
            && named(self) == named(declared)
            && self.defaults.iter().all(|(name, value)| declared.defaults.get(name) == Some(value))
            && declared.defaults.iter().all(|field| self.defaults.contains_key(field.0) || is_harmless(field))
            && self.fixed.iter().flatten().all(|name| declared.fixed.as_ref().is_some_and(|fixed| fixed.contains(name)))
            && self.ordered_by.as_ref().is_none_or(|name| declared.ordered_by.as_ref() == Some(name))
            && self.fields.iter().flatten().all(|name| is_served(name) && is_in_same_nest(name))
    }

    /// Whether clusters get by a later record what they got by this one, as far as both say.
    #[must_use]
    pub fn is_continued_by(&self, later: &Self) -> bool {
        self.retired == later.retired && Self { retired: false, ..self.clone() }.agrees_with(later)
    }

    /// Whether it records everything of a file with which it agrees.
    pub(crate) fn covers(&self, declared: &Self) -> bool {
        self.fields == declared.fields
            && self.defaults == declared.defaults
            && self.nest == declared.nest
            && self.fixed == declared.fixed
            && self.ordered_by == declared.ordered_by
    }

    /// The object of an input that has a field; none if the field is at the top level.
    fn nest_of(&self, field: &str) -> Option<&str> {
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

    /// This record as the successor of an earlier one, whose paths and lists become former ones.
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

    /// The record of the same type when it is not served any more.
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
        if let Some(names) = &self.fixed {
            fields.insert("fixed".to_owned(), names.iter().cloned().collect());
        }
        if let Some(name) = &self.ordered_by {
            fields.insert("ordered_by".to_owned(), Value::from(name.as_str()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn declared(kind: &str) -> (ResourceType, TypeRecord) {
        let registry = Registry::built_in().unwrap();
        let ty = registry.by_kind(kind).unwrap().clone();
        let record = TypeRecord::declared(&ty);
        (ty, record)
    }

    #[test]
    fn a_template_is_not_recorded() {
        let (mut ty, record) = declared("namespace");
        ty.template = Some("another".to_owned());
        assert_eq!(TypeRecord::declared(&ty), record);
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        for kind in ["platform_component", "namespace", "rolebinding"] {
            let (_, record) = declared(kind);
            let Op::Put(body) = record.write().unwrap().op else { panic!("a record is put") };
            assert_eq!(TypeRecord::read(&body).unwrap(), record);
        }
    }

    #[test]
    fn a_type_with_another_key_is_another_type() {
        let (_, record) = declared("namespace");
        let other = TypeRecord { key: "name".to_owned(), ..record.clone() };
        assert!(record.agrees_with(&record) && !record.agrees_with(&other));
    }

    #[test]
    fn a_field_that_is_no_longer_fixed_is_a_change() {
        let (_, record) = declared("rolebinding");
        assert!(record.fixed.is_some());
        let free = TypeRecord { fixed: None, ..record.clone() };
        assert!(!record.agrees_with(&free));
        assert!(free.agrees_with(&record), "planning more changes is safe");
    }

    #[test]
    fn inputs_do_not_lose_their_order_unasked() {
        let (_, ordered) = declared("platform_component");
        assert_eq!(ordered.ordered_by.as_deref(), Some("depends_on"));
        let unordered = TypeRecord { ordered_by: None, ..ordered.clone() };
        assert!(!ordered.agrees_with(&unordered));
        let other = TypeRecord { ordered_by: Some("labels".to_owned()), ..ordered.clone() };
        assert!(!ordered.agrees_with(&other));
        // A record of an older version has changed nothing, and is completed.
        assert!(unordered.agrees_with(&ordered) && !unordered.covers(&ordered));
    }

    /// A file may add a field that is not recorded, but not with a default that changes objects.
    #[test]
    fn a_new_field_must_not_deliver_components_in_another_way() {
        let (_, now) = declared("platform_component");
        let without = |field: &str| {
            let mut record = now.clone();
            record.fields.as_mut().unwrap().remove(field);
            record.defaults.shift_remove(field);
            record
        };
        let with_default = |field: &str, value: Value| {
            let mut file = now.clone();
            file.defaults.insert(field.to_owned(), value);
            file
        };
        for (field, value, is_harmless) in [
            ("oci_content", Value::from("chart"), false),
            ("oci_url", Value::from("oci://registry.example/other"), false),
            ("enabled", Value::from(false), false),
            ("enabled", Value::from(true), true),
            ("cluster_env_enabled", Value::from(true), true),
        ] {
            let file = with_default(field, value.clone());
            assert_eq!(without(field).agrees_with(&file), is_harmless, "{field}: {value}");
        }
    }
}
