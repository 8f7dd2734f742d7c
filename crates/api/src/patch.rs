//! The schema of a JSON Patch (RFC 6902). Its operations are read by a library; merge patches are any object.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A list of operations of RFC 6902.
#[derive(Debug)]
pub enum JsonPatch {}

impl JsonSchema for JsonPatch {
    fn schema_name() -> Cow<'static, str> {
        "JsonPatch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pointer = json!({"type": "string", "pattern": "^(/([^/~]|~[01])*)*$"});
        let operation = |ops: &[&str], more: Option<(&str, Value)>| {
            let mut schema = json!({
                "type": "object", "required": ["op", "path"],
                "properties": {"op": {"type": "string", "enum": ops}, "path": pointer}
            });
            if let Some((name, value)) = more {
                schema["required"] = json!(["op", "path", name]);
                schema["properties"][name] = value;
            }
            schema
        };
        json_schema!({"type": "array", "items": {
            "oneOf": [
                operation(&["add", "replace", "test"], Some(("value", json!({})))),
                operation(&["move", "copy"], Some(("from", pointer.clone()))),
                operation(&["remove"], None)
            ],
            "example": {"op": "replace", "path": "/environment", "value": "qa"}
        }})
    }
}
