//! Reads a type from its file.
//!
//! The rules about one file are checked here and in [`coherence`], and each error has the location in the file. The registry
//! checks the rules about several types (duplicate names, lists of the cluster).

mod coherence;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::{Nest, ResourceType, rules::Outline, schema};
use crate::{
    Kind, Map, Value,
    yaml::{Located, child},
};

/// A broken rule and the JSON pointer to where in the file.
#[derive(Debug)]
pub(crate) struct InvalidType {
    pub(crate) pointer: String,
    pub(crate) rule: String,
}

impl InvalidType {
    pub(crate) fn new(pointer: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), rule: rule.into() }
    }
}

/// The top level of a file, with Firestone's keys and no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ResourceFile {
    kind: String,
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(default)]
    metadata: Metadata,
    schema: Map,
    // Only Firestone uses these keys; they are declared here so that a misspelt key is refused.
    #[serde(rename = "versionInPath")]
    _version_in_path: Option<bool>,
    #[serde(rename = "asyncapi")]
    _asyncapi: Option<IgnoredAny>,
    #[serde(rename = "default_query_params")]
    _default_query_params: Option<IgnoredAny>,
    #[serde(rename = "descriptions")]
    _descriptions: Option<IgnoredAny>,
    #[serde(rename = "methods")]
    _methods: Option<IgnoredAny>,
    #[serde(rename = "security")]
    _security: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    #[serde(rename = "name")]
    _name: Option<IgnoredAny>,
    #[serde(default)]
    description: String,
}

/// `schema.x-flux`: how the type is served to Flux.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flux {
    plural: Option<String>,
    path: Option<String>,
    list: Option<String>,
    #[serde(default)]
    reference: Map,
    fields: Option<Vec<String>>,
    #[serde(default)]
    reserved: Vec<String>,
    #[serde(default)]
    nest: Map,
    #[serde(default)]
    patchable: bool,
    ordered_by: Option<String>,
    #[serde(default)]
    fixed: BTreeMap<String, String>,
    template: Option<String>,
    #[serde(default)]
    requires: Vec<String>,
}

/// A type as its file declares it, before it is checked against the others.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) kind: Kind,
    pub(crate) plural: String,
    pub(crate) path: String,
    pub(crate) list: String,
    key: String,
    description: String,
    /// The schema of one document, and its location in the file.
    pub(crate) schema: Value,
    pub(crate) schema_pointer: String,
    /// The schema of references, if the cluster's own schema does not declare it.
    pub(crate) reference: Value,
    fields: Option<Vec<String>>,
    reserved: Vec<String>,
    nests: Vec<Nest>,
    patchable: bool,
    ordered_by: Option<String>,
    fixed: BTreeMap<String, String>,
    template: Option<String>,
    requires: Vec<String>,
}

const FLUX: &str = "/schema/x-flux";

impl Declaration {
    pub(crate) fn read(source: &Located) -> Result<Self, InvalidType> {
        let mut file: ResourceFile = decode(&source.value, "")?;
        let flux: Flux = match file.schema.shift_remove("x-flux") {
            Some(block) => decode(&block, FLUX)?,
            None => Flux::default(),
        };
        // The plain form has no key: its documents are identified by their id.
        let key =
            file.schema.get("key").and_then(|key| key.get("name")).and_then(Value::as_str).unwrap_or("id").to_owned();
        let (schema, schema_pointer) = document_schema(file.schema)?;

        let (singular, plural) = names(&file.kind, flux.plural)?;
        let path = flux.path.unwrap_or_else(|| plural.replace('_', "-"));
        if !is_object_name(&path) {
            let rule = "a path has at most 63 of a-z, 0-9 and single '-' between them, and starts with a letter";
            return Err(InvalidType::new(child(FLUX, "path"), rule));
        }
        let list = flux.list.unwrap_or_else(|| plural.clone());
        if !is_name(&list, '_') {
            return Err(InvalidType::new(
                child(FLUX, "list"),
                "a list holds a-z, 0-9 and '_' and starts with a letter",
            ));
        }
        let declaration = Self {
            kind: Kind::from(singular.as_str()),
            plural,
            path,
            list,
            key,
            description: file.metadata.description,
            schema,
            schema_pointer,
            reference: schema::reference(&flux.reference),
            fields: flux.fields,
            reserved: flux.reserved,
            nests: nests(flux.nest)?,
            patchable: flux.patchable,
            ordered_by: flux.ordered_by,
            fixed: flux.fixed,
            template: flux.template,
            requires: flux.requires,
        };
        coherence::check(&declaration)?;
        Ok(declaration)
    }

    /// The type, once references in its schema are resolved and the schema of its references is known.
    pub(crate) fn build(self, position: usize, reference: &Value) -> Result<ResourceType, InvalidType> {
        if self.kind.as_str() != ResourceType::CLUSTER {
            coherence::check_reference(&self, reference)?;
        }
        let strict = schema::strict(&self.schema);
        let validator = jsonschema::validator_for(&strict).map_err(|error| {
            InvalidType::new(format!("{}{}", self.schema_pointer, error.instance_path()), error.to_string())
        })?;
        let mut own_defaults = defaults(&self.schema);
        own_defaults.retain(|name, _| self.fields.as_ref().is_none_or(|only| only.contains(name)));
        let mut all_defaults = defaults(reference);
        all_defaults.extend(own_defaults);
        let mut reference_defaults = all_defaults.clone();
        let properties = self.schema.get("properties").and_then(Value::as_object);
        reference_defaults.retain(|name, _| properties.is_none_or(|properties| !properties.contains_key(name)));
        let names = |schema: &Value| -> Vec<String> {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.into_iter().flat_map(Map::keys).filter(|name| *name != "id").cloned().collect()
        };
        let own_fields = self.fields.clone().unwrap_or_else(|| names(&self.schema));
        let served = own_fields.into_iter().chain(names(reference)).collect();
        let outline = Outline::from_schema(&self.schema);
        Ok(ResourceType {
            position,
            kind: self.kind,
            plural: self.plural,
            path: self.path,
            list: self.list,
            key: self.key,
            description: self.description,
            schema: self.schema,
            fields: self.fields,
            reserved: self.reserved,
            served,
            defaults: all_defaults,
            nests: self.nests,
            patchable: self.patchable,
            ordered_by: self.ordered_by,
            fixed: self.fixed,
            template: self.template,
            requires: self.requires,
            reference_defaults,
            outline: Arc::new(outline),
            validator: Arc::new(validator),
        })
    }
}

fn decode<'de, T: Deserialize<'de>>(value: &'de Value, base: &str) -> Result<T, InvalidType> {
    crate::decode(value).map_err(|error| InvalidType::new(format!("{base}{}", error.pointer), error.message))
}

/// The schema of one document, with an id, and its location: `schema.items` in Firestone's form, else `schema`.
fn document_schema(mut schema: Map) -> Result<(Value, String), InvalidType> {
    let (mut schema, pointer) = match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            if schema.get("key").and_then(|key| key.get("name")).and_then(Value::as_str).is_none() {
                return Err(InvalidType::new("/schema", "an array of documents needs a key with a name"));
            }
            match schema.shift_remove("items") {
                Some(Value::Object(items)) => (items, "/schema/items"),
                _ => return Err(InvalidType::new("/schema", "an array of documents needs items")),
            }
        }
        Some("object") => (schema, "/schema"),
        _ => return Err(InvalidType::new("/schema", "the schema's type is \"array\" (of documents) or \"object\"")),
    };
    for firestone in ["key", "query_params", "descriptions", "methods"] {
        schema.shift_remove(firestone);
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return Err(InvalidType::new(pointer, "properties are missing"));
    };
    let id = properties.entry("id").or_insert_with(|| json!({"type": "string"}));
    if id.get("type") != Some(&json!("string")) {
        return Err(InvalidType::new(format!("{pointer}/properties/id"), "an id is a string"));
    }
    match schema.entry("required").or_insert_with(|| json!([])) {
        Value::Array(names) if names.contains(&json!("id")) => {}
        Value::Array(names) => names.insert(0, json!("id")),
        _ => return Err(InvalidType::new(format!("{pointer}/required"), "required is a list of field names")),
    }
    Ok((Value::Object(schema), pointer.to_owned()))
}

/// The singular and the plural of a kind. Firestone's kinds are plural, the plain form's are singular.
fn names(kind: &str, plural: Option<String>) -> Result<(String, String), InvalidType> {
    let rule = "a kind holds a-z, 0-9 and '_' and starts with a letter";
    if !is_name(kind, '_') {
        return Err(InvalidType::new("/kind", rule));
    }
    if let Some(plural) = plural {
        let singular = if plural == kind { singular(kind) } else { kind.to_owned() };
        return if is_name(&plural, '_') {
            Ok((singular, plural))
        } else {
            Err(InvalidType::new(child(FLUX, "plural"), rule))
        };
    }
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return Ok((singular(kind), kind.to_owned()));
    }
    let plural = match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["ss", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        _ => format!("{kind}s"),
    };
    Ok((kind.to_owned(), plural))
}

fn singular(plural: &str) -> String {
    if let Some(stem) = plural.strip_suffix("ies") {
        return format!("{stem}y");
    }
    match plural.strip_suffix("es") {
        Some(stem) if ["ss", "x", "ch", "sh"].iter().any(|end| stem.ends_with(end)) => stem.to_owned(),
        _ => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    }
}

fn is_name(text: &str, joint: char) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == joint)
}

/// Whether a text can be the name of objects on a cluster, and be used as an input name in templates.
fn is_object_name(text: &str) -> bool {
    is_name(text, '-') && text.len() <= 63 && !text.ends_with('-') && !text.contains("--")
}

fn nests(block: Map) -> Result<Vec<Nest>, InvalidType> {
    let nest = |(name, fields): (String, Value)| match serde_json::from_value(fields) {
        Ok(fields) => Ok(Nest { name, fields }),
        Err(_) => Err(InvalidType::new(child(&child(FLUX, "nest"), &name), "a nest is a list of field names")),
    };
    block.into_iter().map(nest).collect()
}

/// The defaults that a schema declares for its fields.
fn defaults(schema: &Value) -> Map {
    let properties = schema.get("properties").and_then(Value::as_object);
    let default = |(name, field): (&String, &Value)| Some((name.clone(), field.get("default")?.clone()));
    properties.into_iter().flatten().filter_map(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_singular_and_plural() {
        for (kind, singular, plural) in [
            ("clusters", "cluster", "clusters"),
            ("rolebindings", "rolebinding", "rolebindings"),
            ("network_policy", "network_policy", "network_policies"),
            ("network_policies", "network_policy", "network_policies"),
            ("ingress", "ingress", "ingresses"),
            ("ingresses", "ingress", "ingresses"),
            ("gateway", "gateway", "gateways"),
            ("switch", "switch", "switches"),
        ] {
            assert_eq!(names(kind, None).unwrap(), (singular.to_owned(), plural.to_owned()), "{kind}");
        }
        assert_eq!(names("dns", Some("dns_records".into())).unwrap(), ("dns".into(), "dns_records".into()));
    }
}
