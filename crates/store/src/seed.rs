//! The seed file: the documents with which a log begins.
//!
//! One object with a list of documents for each type, under the type's plural name (`clusters`, `platform_components`).
//! A document has its id in `id` or `_id`; a cluster without one gets its `cluster_name`. Every rule of the types is
//! checked, and all violations are reported at once.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use model::{
    Body, Excerpt, Id, ListEvent, Op, Registry, ResourceType, Value, Write,
    limits::{Size, check_document},
    read_lists, yaml,
};

/// A seed that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// The text is not JSON (or YAML).
    #[error("{0}")]
    Syntax(String),
    /// Documents that break rules.
    #[error("{0}")]
    Invalid(String),
}

/// Reads a seed file into the writes of one change.
pub fn read(path: &Path, registry: &Registry) -> Result<Vec<Write>, SeedError> {
    let text = std::fs::read_to_string(path)?;
    let mut seed = Seed { registry, list: None, writes: Vec::new(), errors: String::new() };
    let is_object = if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
        let read = yaml::read(&text);
        seed.read_value(read.map_err(|error| SeedError::Syntax(format!("line {}: {error}", error.line)))?.value)
    } else {
        // The parsed documents of a large fleet would take far more memory than its snapshot.
        read_lists(text.as_bytes(), |event| seed.handle(event)).map_err(|error| SeedError::Syntax(error.to_string()))?
    };
    if !is_object {
        return Err(SeedError::Syntax("a seed is an object with a list for each type".to_owned()));
    }
    if seed.errors.is_empty() { Ok(seed.writes) } else { Err(SeedError::Invalid(seed.errors)) }
}

/// The most bytes of errors that are reported, since they become one line of the server's log.
const MAX_ERROR_BYTES: usize = 16 * 1024;

fn report(errors: &mut String, subject: &str, what: impl std::fmt::Display) {
    if errors.len() > MAX_ERROR_BYTES {
        if !errors.ends_with('…') {
            errors.push_str("; …");
        }
        return;
    }
    let separator = if errors.is_empty() { "" } else { "; " };
    // Writing to a string cannot fail.
    let _ = write!(errors, "{separator}{}: {what}", Excerpt(subject));
}

/// A seed that is being read.
struct Seed<'a> {
    registry: &'a Registry,
    /// The list that is being read, if it belongs to a type.
    list: Option<SeedList<'a>>,
    writes: Vec<Write>,
    errors: String,
}

/// The documents of a type.
struct SeedList<'a> {
    ty: &'a ResourceType,
    /// Its name in the seed.
    name: String,
    /// How many documents of it have been read.
    length: usize,
    ids: BTreeSet<Id>,
}

impl Seed<'_> {
    /// Handles a seed that is parsed already; returns whether it is an object.
    fn read_value(&mut self, value: Value) -> bool {
        let Value::Object(lists) = value else { return false };
        for (name, list) in lists {
            self.handle(ListEvent::Member(&name));
            match list {
                Value::Array(documents) => {
                    for document in documents {
                        self.handle(ListEvent::Item(document));
                    }
                }
                _ => self.handle(ListEvent::NotAList),
            }
        }
        true
    }

    fn handle(&mut self, event: ListEvent<'_>) {
        let Self { registry, list, writes, errors } = self;
        match (event, list) {
            (ListEvent::Member(name), list) => {
                let start_list = |ty| SeedList { ty, name: name.to_owned(), length: 0, ids: BTreeSet::new() };
                *list = registry.by_name(name).map(start_list);
                if list.is_none() {
                    let known: Vec<_> = registry.types().map(|ty| ty.plural.as_str()).collect();
                    report(errors, name, format!("there is no such type; the types are {}", known.join(", ")));
                }
            }
            (ListEvent::Item(document), Some(list)) => writes.extend(list.read(document, errors)),
            (ListEvent::NotAList, Some(list)) => report(errors, &list.name, "a list of documents is expected"),
            (ListEvent::Item(_) | ListEvent::NotAList, None) => {}
        }
    }
}

impl SeedList<'_> {
    /// Checks the next document.
    fn read(&mut self, document: Value, errors: &mut String) -> Option<Write> {
        let ty = self.ty;
        let mut subject = format!("{}[{}]", ty.plural, self.length);
        self.length += 1;
        let Value::Object(fields) = document else {
            report(errors, &subject, "a document is an object");
            return None;
        };
        let fields = match ty.normalise(fields) {
            Ok(fields) => fields,
            Err(error) => {
                report(errors, &subject, error);
                return None;
            }
        };
        let body = Body::from_fields(&fields);
        // Without a valid id, the check below reports an error.
        let id = fields.get("id").and_then(Value::as_str).and_then(|id| Id::parse(id).ok());
        let mut broken = check_document(&fields, body.text().len(), Size::default);
        if broken.is_empty() {
            broken = ty.check(fields);
        }
        if let Some(id) = &id {
            subject = format!("{}/{id}", ty.plural);
            if !self.ids.insert(id.clone()) {
                report(errors, &subject, "this id appears twice");
            }
        }
        for error in &broken {
            report(errors, &subject, error);
        }
        // Compressed, because all writes of a large seed are in memory until they are appended.
        let write = |id| Write { kind: ty.kind.clone(), id, op: Op::Put(body.packed()) };
        id.filter(|_| broken.is_empty()).map(write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Vec<Write>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path, &Registry::built_in().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn ids_are_found_under_either_name_and_clusters_by_theirs() {
        let writes = read_text(
            "seed.json",
            r#"{"namespaces": [{"labels": {}, "_id": "a"}, {"id": "b"}],
                "clusters": [{"cluster_name": "c", "cluster_dns": "c.example", "environment": "dev"}]}"#,
        )
        .unwrap();
        let ids: Vec<_> = writes.iter().map(|write| (write.kind.as_str(), write.id.as_str())).collect();
        assert_eq!(ids, [("namespace", "a"), ("namespace", "b"), ("cluster", "c")]);
        assert_eq!(writes[0].op, Op::Put(Body::from_text(r#"{"id":"a","labels":{}}"#)));
    }

    #[test]
    fn yaml_is_read_too() {
        assert_eq!(read_text("seed.yaml", "namespaces:\n  - id: a\n").unwrap().len(), 1);
    }

    #[test]
    fn every_broken_rule_is_reported_with_its_document() {
        let message = read_text(
            "seed.json",
            r#"{"namespaces": [{"_id": "A"}, {"_id": "b"}, {"_id": "b"}, {"labels": {"n": 1}}, 7, {"id": "x", "_id": "y"}],
                "platform_components": [{"_id": "c", "component_path": "c", "oci_url": "ftp://x", "colour": "red"}],
                "gateways": [], "rolebindings": {}}"#,
        )
        .unwrap_err();
        for part in [
            "namespaces/A: /id:",
            "namespaces/b: this id appears twice",
            "namespaces[3]: /: \"id\" is a required property (required)",
            "/labels/n: 1 is not of type \"string\" (type)",
            "namespaces[4]: a document is an object",
            "namespaces[5]: /_id: \"id\" and \"_id\" differ",
            "platform_components/c: /:",
            "'colour' was unexpected",
            "platform_components/c: /oci_url:",
            "gateways: there is no such type; the types are clusters, platform_components, namespaces, rolebindings",
            "rolebindings: a list of documents is expected",
        ] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }

    #[test]
    fn a_document_that_is_too_large_or_too_deep_is_refused_and_named() {
        let deep = format!("{}1{}", "{\"a\":".repeat(61), "}".repeat(61));
        let cluster = |patches: &str| {
            let names = r#""cluster_name": "c", "cluster_dns": "c.example", "environment": "dev""#;
            read_text("seed.json", &format!("{{\"clusters\": [{{{names}, \"patches\": {{\"p\": {patches}}}}}]}}"))
        };
        assert!(cluster(&deep).is_ok());
        let message = cluster(&format!("{{\"a\":{{\"a\":{deep}}}}}")).unwrap_err();
        assert!(message.starts_with("clusters/c: /patches/p/a/") && message.ends_with("(depth)"), "{message}");
        let message = cluster(&format!("{{\"a\": \"{}\"}}", "x".repeat(1024 * 1024))).unwrap_err();
        assert!(message.starts_with("clusters/c: /: ") && message.ends_with("(document-bytes)"), "{message}");
        let many: Vec<_> = (0..5_000).map(|at| format!("{{\"id\": \"n{at}\", \"x\": 1}}")).collect();
        let message = read_text("seed.json", &format!("{{\"namespaces\": [{}]}}", many.join(","))).unwrap_err();
        assert!(message.len() < 20_000 && message.ends_with("; …"), "{} bytes", message.len());
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let message = read_text("seed.json", "{\n\"namespaces\": [,]}").unwrap_err();
        assert!(message.contains("line 2"), "{message}");
    }
}
