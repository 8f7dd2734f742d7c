//! A resource type: what its documents look like and how they become Flux inputs.
//!
//! A type is a value read from a file, in one of two forms: Firestone's (`schema` is an array with `key` and `items`) and the
//! plain one (`schema` is the object itself). Settings that Firestone does not have are in `schema.x-flux`, with obvious
//! defaults.

mod declaration;
mod rules;
mod schema;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::{
    FieldError, Kind, Map, TypeRecord, Value,
    limits::ERRORS,
    type_record::{PATCHES, alters_objects},
};

pub(crate) use declaration::{Declaration, InvalidType};
pub(crate) use schema::resolve_references;

/// Fields that are put under one name in an input: `source: {oci_url, oci_tag}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    /// The name of the object.
    pub name: String,
    /// The fields in it.
    pub fields: Vec<String>,
}

/// A kind of document.
#[derive(Clone)]
pub struct ResourceType {
    /// Its position among the types of its registry, used as an index.
    pub position: usize,
    /// The singular name: `platform_component`.
    pub kind: Kind,
    /// The plural name, which is also the path of its documents and its list in a seed file: `platform_components`.
    pub plural: String,
    /// The last part of its Flux endpoint: `platform-components`.
    pub path: String,
    /// The list in a cluster document that refers to it: `platform_components`.
    pub list: String,
    /// The name of the key of its documents, from its file.
    pub key: String,
    /// Its description, for people.
    pub description: String,
    /// The JSON Schema of one document, as declared.
    pub schema: Value,
    /// The only fields that reach Flux, if the type restricts them.
    pub fields: Option<Vec<String>>,
    /// All fields that can reach Flux, from a definition or from a reference.
    pub served: BTreeSet<String>,
    /// The values of fields that neither the definition nor the reference sets.
    pub defaults: Map,
    /// Ids that no document may have; a `*` at the end matches any rest.
    pub reserved: Vec<String>,
    /// Fields that are put under one name.
    pub nests: Vec<Nest>,
    /// Whether a cluster may patch it, which adds `patches` and `values`.
    pub patchable: bool,
    /// The field that lists the ids which must be healthy first, which adds `effective_depends_on`.
    pub ordered_by: Option<String>,
    /// Fields that Kubernetes cannot change, each with the field that, when true, lets Flux create the object again.
    pub fixed: BTreeMap<String, String>,
    /// The template of the objects of one input, for Flux Operator; `$in` is the input.
    pub template: Option<String>,
    /// The custom resource definitions that must be on a cluster before its template can be applied.
    pub requires: Vec<String>,
    /// The defaults of fields that only references have: a reference that sets a field to its default sets nothing.
    reference_defaults: Map,
    outline: Arc<rules::Outline>,
    validator: Arc<jsonschema::Validator>,
}

impl fmt::Debug for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceType").field("kind", &self.kind).field("path", &self.path).finish_non_exhaustive()
    }
}

impl ResourceType {
    /// The kind whose documents are the clusters; the one kind that has an identity of its own.
    pub const CLUSTER: &str = "cluster";

    /// The kind whose documents are the catalogue: the objects of a component depend on whether it is enabled, and on its source.
    pub const COMPONENT: &str = "platform_component";

    /// Whether this is the cluster type.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.kind.as_str() == Self::CLUSTER
    }

    /// Whether a reference that sets this field sets nothing: it is the default, and definitions cannot have the field.
    #[must_use]
    pub fn is_default(&self, name: &str, value: &Value) -> bool {
        self.reference_defaults.iter().any(|(field, default)| field == name && default == value)
    }

    /// Sets its names, its fields and their defaults to those of a record.
    pub(crate) fn restore(&mut self, record: &TypeRecord) {
        self.kind = record.kind.clone();
        self.path.clone_from(&record.path);
        self.key.clone_from(&record.key);
        // A list that another type has taken over belongs to that type.
        self.list = if record.has_list(&record.list) { record.list.clone() } else { String::new() };
        let was_served = |name: &str| record.fields.as_ref().is_some_and(|fields| fields.contains(name));
        for defaults in [&mut self.defaults, &mut self.reference_defaults] {
            defaults.retain(|name, default| {
                record.defaults.contains_key(name) || (!was_served(name) && !alters_objects(name, default))
            });
            for (name, default) in defaults.iter_mut() {
                if let Some(recorded) = record.defaults.get(name) {
                    default.clone_from(recorded);
                }
            }
        }
        // A default that was removed counts as a changed one.
        for (name, default) in record.defaults.iter().filter(|(name, _)| was_served(name)) {
            self.defaults.entry(name.clone()).or_insert_with(|| default.clone());
        }
        if let Some(fields) = &record.fields {
            self.patchable = fields.contains(PATCHES);
            if let Some(only) = &mut self.fields {
                only.extend(fields.iter().cloned());
            }
        }
        if record.ordered_by.is_some() {
            self.ordered_by.clone_from(&record.ordered_by);
        }
        let nest = |(name, fields): (&String, &BTreeSet<String>)| Nest {
            name: name.clone(),
            fields: fields.iter().cloned().collect(),
        };
        self.nests = record.nest.iter().map(nest).collect();
    }

    /// The schemas of a document's fields.
    #[must_use]
    pub fn properties(&self) -> Option<&Map> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The rules that the fields of a document break, all or the first [`ERRORS`]; none for a good one.
    #[must_use]
    pub fn check(&self, fields: Map) -> Vec<FieldError> {
        let mut errors = rules::check(self, &fields);
        let document = Value::Object(fields);
        // A check without error messages is faster.
        if !self.validator.is_valid(&document) {
            let broken = self.validator.iter_errors(&document).take(ERRORS.saturating_sub(errors.len()));
            errors.extend(broken.map(|error| FieldError::from(&error)));
        }
        errors.sort();
        errors
    }

    /// The fields of a document with the id first, under its one name.
    pub fn normalise(&self, fields: Map) -> Result<Map, FieldError> {
        with_id_first(fields, self.is_cluster())
    }
}

/// The fields of a document with the id first, under its one name: it may stand under `id` or `_id`, and a cluster
/// without one is named by its `cluster_name`.
pub fn with_id_first(mut fields: Map, is_cluster: bool) -> Result<Map, FieldError> {
    if fields.keys().next().is_some_and(|first| first == "id") && !fields.contains_key("_id") {
        return Ok(fields);
    }
    let id = match (fields.shift_remove("id"), fields.shift_remove("_id")) {
        (Some(id), Some(other)) if id != other => {
            return Err(FieldError::new("/_id", "id", "\"id\" and \"_id\" differ"));
        }
        (Some(id), _) | (None, Some(id)) => Some(id),
        (None, None) if is_cluster => fields.get("cluster_name").cloned(),
        (None, None) => None,
    };
    let mut ordered = Map::new();
    ordered.extend(id.map(|id| ("id".to_owned(), id)));
    ordered.extend(fields);
    Ok(ordered)
}
