//! Schemas of bodies in the words of OpenAPI 3.0, derived from the types.

use model::{Map, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::json;

/// Collects the schemas that an OpenAPI document refers to.
#[derive(Debug)]
pub struct Schemas {
    answers: SchemaGenerator,
    requests: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let mut settings = SchemaSettings::openapi3();
        // First, while the words are still those of JSON Schema.
        settings.transforms.insert(0, Box::new(RecursiveTransform(simplify)));
        // A default is for what a request leaves out.
        let without_defaults = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            answers: settings.for_serialize().with_transform(without_defaults).into_generator(),
        }
    }
}

impl Schemas {
    /// The schema of a response body: a reference to a component, or a list of them.
    pub fn answer<T: JsonSchema>(&mut self) -> Value {
        transformed(&mut self.answers, SchemaGenerator::subschema_for::<T>)
    }

    /// The schema of a request body.
    pub fn request<T: JsonSchema>(&mut self) -> Value {
        transformed(&mut self.requests, SchemaGenerator::subschema_for::<T>)
    }

    /// The components that the schemas refer to.
    #[must_use]
    pub fn into_components(mut self) -> Map {
        let answers = self.answers.take_definitions(true);
        answers.into_iter().chain(self.requests.take_definitions(true)).collect()
    }
}

fn transformed(generator: &mut SchemaGenerator, schema: impl Fn(&mut SchemaGenerator) -> Schema) -> Value {
    let mut schema = schema(generator);
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    schema.to_value()
}

/// Removes from a schema what is only about Rust: how wide a number is, that an optional field can be null (in JSON it is left out),
/// and the line breaks of a comment.
fn simplify(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if schema.get("type").is_some_and(|name| name == "integer" || name == "number") {
        schema.shift_remove("format");
    }
    if let Some(words) = words(schema) {
        schema.shift_remove("oneOf");
        schema.extend([("type".to_owned(), json!("string")), ("enum".to_owned(), words)]);
    }
    let required = schema.get("required").cloned().unwrap_or_default();
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let is_required = required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
        simplify_null(field, is_required);
    }
}

/// The words of an enum without data, whose variants are described one by one.
fn words(schema: &Map) -> Option<Value> {
    let variants = schema.get("oneOf")?.as_array()?;
    variants.iter().map(|variant| variant.get("const").filter(|word| word.is_string()).cloned()).collect()
}

/// Writes with one word that a required field may be null. One that is not required is never null.
fn simplify_null(field: &mut Value, is_required: bool) {
    let null = json!({"type": "null"});
    let Value::Object(field) = field else { return };
    if let Some(Value::Array(types)) = field.get_mut("type").filter(|_| !is_required) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            field.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(schemas)) = field.get("anyOf")
        && schemas.contains(&null)
    {
        let others = schemas.iter().filter(|schema| **schema != null).cloned().collect();
        field.shift_remove("anyOf");
        field.insert("allOf".to_owned(), Value::Array(others));
        if is_required {
            field.insert("nullable".to_owned(), Value::Bool(true));
        }
    }
}
