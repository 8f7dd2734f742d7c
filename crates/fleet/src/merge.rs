//! The one rule by which a definition and a reference become an input.
//!
//! Sources are laid over one another, the weakest first; a field of a stronger one hides the same field of a weaker
//! one. Today there are three: the type's defaults, the definition, the reference. Nothing here knows a type by name.

use model::{Id, Map, ResourceType, Value};

/// Lays sources over one another and nests what the type nests.
pub(crate) fn merge(ty: &ResourceType, id: &Id, sources: &[&Map]) -> Map {
    let mut input = Map::new();
    input.insert("id".to_owned(), Value::String(id.to_string()));
    for (name, value) in sources.iter().copied().flatten() {
        input.insert(name.clone(), value.clone());
    }
    for nest in &ty.nests {
        let inner: Map = nest.fields.iter().filter_map(|field| input.shift_remove_entry(field)).collect();
        input.insert(nest.name.clone(), Value::Object(inner));
    }
    input
}

/// The members of an object as JSON text, without the braces: a part of a larger object.
pub(crate) fn members(map: Map) -> String {
    let mut text = Value::Object(map).to_string();
    text.pop();
    text.remove(0);
    text
}
