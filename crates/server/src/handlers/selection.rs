//! Which documents are meant: filters on fields and labels.

use std::thread;

use model::{Document, Excerpt, FieldError, Map, ResourceType, State, Value};

use crate::{failure::Failure, query::Params};

/// A filter for documents of a type.
#[derive(Clone)]
pub(crate) struct Selection {
    fields: Vec<(String, String)>,
    labels: Vec<(String, String)>,
    references: Vec<(String, String)>,
    state: State,
}

impl Selection {
    /// Takes the filters of a query: any scalar field of the type, labels as `label=key=value` and, for clusters, any
    /// list of references as `list=id`. Parameters of another meaning are left.
    pub(crate) fn take(params: &mut Params, ty: &ResourceType, others: &[&str]) -> Result<Self, Failure> {
        let labels = labels(params)?;
        let state = if ty.is_cluster() && params.flag("decommissioned")? { State::Retired } else { State::Live };
        let taken = params.rest(|name| filters(ty).any(|filter| filter == name), others)?;
        let (references, fields) = taken.into_iter().partition(|(name, _)| is_list_of_references(ty, name));
        Ok(Self { fields, labels, references, state })
    }

    /// Whether it takes everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.labels.is_empty() && self.references.is_empty()
    }

    /// The documents that it takes, in their order. One that cannot be read may be one of them or not: that is an error, for a
    /// list without it would look complete. Before every document that it reads, it yields to other threads that wait for this core.
    pub(crate) fn documents<'a>(
        &self,
        documents: impl Iterator<Item = &'a Document>,
    ) -> Result<Vec<&'a Document>, Failure> {
        let taken = documents.map(|document| self.takes(document).map(|takes| takes.then_some(document)));
        taken.filter_map(Result::transpose).collect()
    }

    fn takes(&self, document: &Document) -> Result<bool, Failure> {
        if document.state != self.state || self.is_empty() {
            return Ok(document.state == self.state);
        }
        thread::yield_now();
        let fields = document.body.fields();
        let fields = fields.map_err(|error| Failure::unreadable_document(&document.kind, &document.id, error))?;
        let labels = fields.get("labels").and_then(Value::as_object);
        Ok(self.fields.iter().all(|(name, value)| is(&fields, name, value))
            && self.labels.iter().all(|(key, value)| labels.is_some_and(|labels| is(labels, key, value)))
            && self.references.iter().all(|(list, id)| refers(&fields, list, id)))
    }
}

/// Takes the labels of a query, as `label=key=value`.
pub(super) fn labels(params: &mut Params) -> Result<Vec<(String, String)>, Failure> {
    let label = |text: String| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| {
            let message = format!("\"{}\" is not a label, which is key=value", Excerpt(&text));
            Failure::invalid_query(FieldError::new("/label", "query", message))
        })
    };
    params.all("label").into_iter().map(label).collect()
}

/// What has a meaning of its own where documents are listed or patched. A field of such a name cannot be a filter.
const PARAMETERS: [&str; 10] = [
    "all",
    "allow_removals",
    "decommissioned",
    "dry_run",
    "expected_epoch",
    "expected_revision",
    "label",
    "limit",
    "offset",
    "revision",
];

/// The fields by which documents of a type can be filtered: those with one value and, of clusters, lists of references.
pub(crate) fn filters(ty: &ResourceType) -> impl Iterator<Item = &str> {
    let has_one_value = |field: &Value| !matches!(field["type"].as_str(), Some("array" | "object"));
    let fields = ty.properties().into_iter().flatten();
    let fields = fields.filter(move |(name, field)| has_one_value(field) || is_list_of_references(ty, name));
    fields.map(|(name, _)| name.as_str()).filter(|name| !PARAMETERS.contains(name))
}

/// Whether a field of a type is a list in which clusters refer to definitions.
pub(crate) fn is_list_of_references(ty: &ResourceType, name: &str) -> bool {
    let items = ty.properties().and_then(|properties| properties.get(name)).map(|field| &field["items"]);
    ty.is_cluster() && items.is_some_and(|items| items["properties"]["id"].is_object())
}

/// Whether a list refers to a definition.
fn refers(fields: &Map, list: &str, id: &str) -> bool {
    let list = fields.get(list).and_then(Value::as_array);
    list.into_iter().flatten().any(|reference| reference["id"].as_str() == Some(id))
}

/// Whether a field has a value, as text.
fn is(fields: &Map, name: &str, text: &str) -> bool {
    match fields.get(name) {
        Some(Value::String(value)) => value == text,
        Some(value) => text == format!("{value}"),
        None => false,
    }
}
