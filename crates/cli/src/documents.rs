//! Documents as rows: the columns that people look for in the types that are built in, and all fields of any other.

use api::TypeDescription;
use model::{Map, Value};

use crate::{output::Shown, table::Table};

/// How documents were asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    All,
    Some,
    ById,
}

/// Documents of one type as an answer; one that was asked for by itself is not in a list.
pub(crate) fn shown(ty: &TypeDescription, documents: Vec<Map>, asked: Asked) -> Shown {
    let names = documents.iter().map(|document| name(ty, document)).collect();
    let table = if documents.is_empty() {
        let none = if asked == Asked::Some { "No {} match." } else { "There are no {}." };
        Table::default().note(none.replace("{}", &ty.plural))
    } else {
        table(ty, &documents)
    };
    let mut values: Vec<_> = documents.into_iter().map(Value::Object).collect();
    let value = if asked == Asked::ById && values.len() == 1 { values.remove(0) } else { Value::Array(values) };
    Shown { value, names, table }
}

/// The beginning of a document.
pub(crate) fn with_id(id: &str) -> Map {
    Map::from_iter([("id".to_owned(), Value::from(id))])
}

/// `kind/id`
pub(crate) fn name(ty: &TypeDescription, document: &Map) -> String {
    ty.name(id(document))
}

/// A field that is a text; the empty one if it is not there.
pub(crate) fn text<'a>(document: &'a Map, field: &str) -> &'a str {
    document.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A document's id; every document that a server gives has one.
pub(crate) fn id(document: &Map) -> &str {
    document.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// Headings and fields that are worth a line of 80 columns.
fn chosen(kind: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match kind {
        "cluster" => &[
            ("ENV", "environment"),
            ("DNS", "cluster_dns"),
            ("COMP", "platform_components"),
            ("NS", "namespaces"),
            ("RB", "rolebindings"),
        ],
        "platform_component" => {
            &[("VERSION", "component_version"), ("TAG", "oci_tag"), ("PATH", "component_path"), ("URL", "oci_url")]
        }
        "rolebinding" => &[("ROLE", "role"), ("SUBJECTS", "subjects")],
        _ => return None,
    })
}

fn table(ty: &TypeDescription, documents: &[Map]) -> Table {
    let mut table = Table::default().key("ID", documents.iter().map(|document| id(document).to_owned()));
    let cells = |field: &str| documents.iter().map(|document| cell(ty, field, document.get(field))).collect::<Vec<_>>();
    let chosen = chosen(&ty.kind);
    for (heading, field) in chosen.into_iter().flatten() {
        table = table.column(heading, cells(field));
    }
    let is_chosen = |name: &str| chosen.into_iter().flatten().any(|(_, field)| *field == name);
    let fields = ty.properties().into_iter().flat_map(Map::keys);
    for field in fields.filter(|field| *field != "id" && !is_chosen(field)) {
        let heading = field.to_uppercase().replace('_', "-");
        table = match chosen {
            Some(_) => table.wide(&heading, cells(field)),
            None => table.column(&heading, cells(field)),
        };
    }
    table
}

/// A value in a few letters. Of a cluster's references, the number is what fits.
fn cell(ty: &TypeDescription, field: &str, value: Option<&Value>) -> String {
    match value {
        Some(Value::Array(items)) if ty.is_cluster() => items.len().to_string(),
        None if ty.is_cluster() && ty.field(field).is_some_and(|field| field["type"] == "array") => "0".to_owned(),
        Some(value) => brief(value),
        None => "-".to_owned(),
    }
}

/// A value on one line.
pub(crate) fn brief(value: &Value) -> String {
    let joined = |parts: Vec<String>| if parts.is_empty() { "-".to_owned() } else { parts.join(",") };
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => joined(items.iter().map(brief_item).collect()),
        Value::Object(fields) => {
            joined(fields.iter().map(|(name, value)| format!("{name}={}", brief(value))).collect())
        }
        other => other.to_string(),
    }
}

/// An item of a list: people know it by its name.
fn brief_item(item: &Value) -> String {
    let name = item.get("id").or_else(|| item.get("name")).and_then(Value::as_str);
    match (item.get("kind").and_then(Value::as_str), name) {
        (Some(kind), Some(name)) => format!("{kind}:{name}"),
        (None, Some(name)) => name.to_owned(),
        _ => brief(item),
    }
}
