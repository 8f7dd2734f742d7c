//! Converts the schema of a file to the strict JSON Schema of its documents.
//!
//! They differ in three ways. Files use `nullable`, which OpenAPI 3.0 and Firestone have and JSON Schema does not. An object that
//! lists its fields has no others, so that a typo is an error and not an unused field. And a list of references may be written
//! as a `$ref` to the type that it refers to.

use serde_json::json;

use crate::{Map, Value};

/// The strict JSON Schema for a declared one.
pub(crate) fn strict(declared: &Value) -> Value {
    let Value::Object(declared) = declared else { return declared.clone() };
    let mut schema = Map::new();
    for (keyword, value) in declared {
        let value = match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), strict(field))).collect()
            }
            ("items" | "additionalProperties" | "not", field) => strict(field),
            // Parts of a combination (`allOf`) describe the same object, so they stay open.
            ("nullable" | "example" | "expose" | "description" | "x-rules", _) => continue,
            (_, value) => value.clone(),
        };
        schema.insert(keyword.clone(), value);
    }
    if schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    // Conditions, which OpenAPI 3.0 does not have.
    if let Some(Value::Array(rules)) = declared.get("x-rules")
        && let Value::Array(all) = schema.entry("allOf").or_insert_with(|| json!([]))
    {
        all.extend(rules.iter().cloned());
    }
    if declared.get("nullable") == Some(&json!(true)) {
        if let Some(Value::String(name)) = schema.get("type").cloned() {
            schema.insert("type".to_owned(), json!([name, "null"]));
        }
        if let Some(Value::Array(options)) = schema.get_mut("enum") {
            options.push(Value::Null);
        }
    }
    Value::Object(schema)
}

/// The schema of a reference: an id, and the fields that the type lets a cluster override.
pub(crate) fn reference(extra: &Map) -> Value {
    let mut properties = Map::new();
    properties.insert("id".to_owned(), json!({"type": "string"}));
    properties.extend(extra.clone());
    json!({"type": "object", "required": ["id"], "properties": properties})
}

/// Replaces each `$ref: "#/components/schemas/{name}"` by the schema that `lookup` has for it; fails with the first pointer and
/// name that it does not have.
pub(crate) fn resolve_references(
    schema: &mut Value,
    pointer: &str,
    lookup: &dyn Fn(&str) -> Option<Value>,
) -> Result<(), (String, String)> {
    let target = schema.get("$ref").and_then(Value::as_str).map(str::to_owned);
    if let Some(target) = target {
        let name = target.strip_prefix("#/components/schemas/").unwrap_or(&target);
        *schema = lookup(name).ok_or((crate::yaml::child(pointer, "$ref"), target.clone()))?;
        return Ok(());
    }
    match schema {
        Value::Object(map) => map
            .iter_mut()
            .try_for_each(|(key, value)| resolve_references(value, &crate::yaml::child(pointer, key), lookup)),
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(at, value)| resolve_references(value, &format!("{pointer}/{at}"), lookup)),
        _ => Ok(()),
    }
}
