//! All resource types of a server.
//!
//! The built-in types are compiled in; files of a directory add to them or, with the same kind, replace them. One invalid file
//! refuses the whole registry: a server without one of its types would serve incomplete answers.

mod names;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{
    Id, ResourceType, Value,
    resource_type::{Declaration, InvalidType, resolve_references},
    yaml::{self, Located},
};

const BUILT_IN: [(&str, &str); 4] = [
    ("resources/cluster.yaml", include_str!("../../../resources/cluster.yaml")),
    ("resources/platform_component.yaml", include_str!("../../../resources/platform_component.yaml")),
    ("resources/namespace.yaml", include_str!("../../../resources/namespace.yaml")),
    ("resources/rolebinding.yaml", include_str!("../../../resources/rolebinding.yaml")),
];

/// An error while loading a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A directory or a file that cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file that breaks a rule.
    #[error("{file}:{line}: {location}{rule}")]
    Broken {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: usize,
        /// The location in the file, as a prefix of the sentence.
        location: RuleLocation,
        /// The rule.
        rule: String,
    },
}

/// The path in a file where a rule is broken; prints as a prefix, or nothing for the whole file.
#[derive(Debug)]
pub struct RuleLocation(String);

impl fmt::Display for RuleLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// The resource types, the cluster first.
#[derive(Debug)]
pub struct Registry {
    types: Vec<ResourceType>,
}

/// A file and what it declares.
struct TypeFile {
    file: String,
    source: Located,
    declaration: Declaration,
}

impl TypeFile {
    fn read(file: String, text: &str) -> Result<Self, RegistryError> {
        let source = yaml::read(text).map_err(|error| RegistryError::Broken {
            file: file.clone(),
            line: error.line,
            location: RuleLocation(String::new()),
            rule: error.message,
        })?;
        match Declaration::read(&source) {
            Ok(declaration) => Ok(Self { file, source, declaration }),
            Err(refusal) => Err(broken(&file, &source, refusal)),
        }
    }

    fn refuse(&self, pointer: impl Into<String>, rule: impl Into<String>) -> RegistryError {
        broken(&self.file, &self.source, InvalidType::new(pointer, rule))
    }
}

fn broken(file: &str, source: &Located, refusal: InvalidType) -> RegistryError {
    RegistryError::Broken {
        file: file.to_owned(),
        line: source.line(&refusal.pointer),
        location: RuleLocation(refusal.pointer.trim_start_matches('/').replace('/', ".")),
        rule: refusal.rule,
    }
}

impl Registry {
    /// The built-in types alone.
    pub fn built_in() -> Result<Self, RegistryError> {
        Self::from_entries(built_in_entries()?)
    }

    /// The built-in types, with the types of a directory added; a type of the same kind replaces the built-in one.
    pub fn with_directory(directory: &Path) -> Result<Self, RegistryError> {
        let mut added: Vec<TypeFile> = Vec::new();
        for path in files(directory)? {
            let text =
                fs::read_to_string(&path).map_err(|source| RegistryError::Unreadable { path: path.clone(), source })?;
            let entry = TypeFile::read(path.display().to_string(), &text)?;
            if let Some(other) = added.iter().find(|other| other.declaration.kind == entry.declaration.kind) {
                let rule = format!("the kind \"{}\" is already declared in {}", entry.declaration.kind, other.file);
                return Err(entry.refuse("/kind", rule));
            }
            added.push(entry);
        }
        let mut entries = built_in_entries()?;
        for entry in added {
            match entries.iter_mut().find(|known| known.declaration.kind == entry.declaration.kind) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
        }
        Self::from_entries(entries)
    }

    fn from_entries(mut entries: Vec<TypeFile>) -> Result<Self, RegistryError> {
        for (at, entry) in entries.iter().enumerate() {
            names::refuse_used_names(entry, &entries[..at])?;
        }
        let references: Vec<(String, Value)> = entries
            .iter()
            .map(|entry| (format!("{}_ref", entry.declaration.kind), entry.declaration.reference.clone()))
            .collect();
        let lookup = |name: &str| references.iter().find(|(known, _)| known == name).map(|(_, schema)| schema.clone());
        for entry in &mut entries {
            let pointer = entry.declaration.schema_pointer.clone();
            resolve_references(&mut entry.declaration.schema, &pointer, &lookup)
                .map_err(|(pointer, target)| entry.refuse(pointer, format!("\"{target}\" names no known schema")))?;
        }
        let lists = list_references(&mut entries)?;
        let mut types = Vec::with_capacity(entries.len());
        for (position, (entry, reference)) in entries.into_iter().zip(lists).enumerate() {
            let TypeFile { file, source, declaration } = entry;
            types.push(declaration.build(position, &reference).map_err(|refusal| broken(&file, &source, refusal))?);
        }
        Ok(Self { types })
    }

    /// These types, each at its position.
    pub(crate) fn from_types(mut types: Vec<ResourceType>) -> Self {
        for (position, ty) in types.iter_mut().enumerate() {
            ty.position = position;
        }
        Self { types }
    }

    /// All types, the cluster first.
    pub fn types(&self) -> impl Iterator<Item = &ResourceType> {
        self.types.iter()
    }

    /// The types that clusters refer to: all but the cluster.
    pub fn definitions(&self) -> impl Iterator<Item = &ResourceType> {
        self.types.iter().filter(|ty| !ty.is_cluster())
    }

    /// The type of a kind.
    #[must_use]
    pub fn by_kind(&self, kind: &str) -> Option<&ResourceType> {
        self.types.iter().find(|ty| ty.kind.as_str() == kind)
    }

    /// The type of a Flux endpoint.
    #[must_use]
    pub fn by_path(&self, path: &str) -> Option<&ResourceType> {
        self.definitions().find(|ty| ty.path == path)
    }

    /// The type with this kind, plural or path.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&ResourceType> {
        self.types.iter().find(|ty| ty.kind.as_str() == name || ty.plural == name || ty.path == name)
    }
}

fn built_in_entries() -> Result<Vec<TypeFile>, RegistryError> {
    BUILT_IN.iter().map(|(file, text)| TypeFile::read((*file).to_owned(), text)).collect()
}

/// The resource files of a directory in the order of their names. Hidden entries are skipped: a mounted `ConfigMap` has its
/// versions in them.
fn files(directory: &Path) -> Result<Vec<PathBuf>, RegistryError> {
    let unreadable = |source| RegistryError::Unreadable { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let known = path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if known && !hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The fields of a cluster that the server writes. They are not declared in a file, so that no file can remove them.
const SERVER_OWNED: [(&str, &str); 2] = [
    (
        "former_dns",
        "DNS names that the cluster had before and under which it can still poll. The server maintains this list; DELETE /clusters/{id}/former_dns/{name} releases a name.",
    ),
    (
        "released_dns",
        "Former DNS names that an operator has released, each with the inputs that a cluster polling under it had then. The server maintains this list.",
    ),
];

/// Adds a list of references for every type to the cluster's schema, and returns the schema of each type's references, in the
/// order of the entries.
fn list_references(entries: &mut [TypeFile]) -> Result<Vec<Value>, RegistryError> {
    let declared: Vec<(bool, String, Value)> = entries
        .iter()
        .map(|TypeFile { declaration, .. }| {
            let cluster = declaration.kind.as_str() == ResourceType::CLUSTER;
            (cluster, declaration.list.clone(), declaration.reference.clone())
        })
        .collect();
    // The cluster type is built in; a file can replace it, but not remove it.
    let Some(cluster) = entries.iter_mut().find(|entry| entry.declaration.kind.as_str() == ResourceType::CLUSTER)
    else {
        return Ok(Vec::new());
    };
    let pointer = format!("{}/properties", cluster.declaration.schema_pointer);
    for name in ["cluster_name", "cluster_dns", "environment"] {
        if cluster.declaration.schema["properties"][name]["type"] != json!("string") {
            return Err(cluster.refuse(&pointer, format!("a cluster has the field \"{name}\", a string")));
        }
    }
    let mut dns = cluster.declaration.schema["properties"]["cluster_dns"].clone();
    if let Value::Object(dns) = &mut dns {
        dns.retain(|keyword, _| ["type", "maxLength", "pattern"].contains(&keyword.as_str()));
    }
    let inputs_of_path = json!({
        "type": "object",
        "propertyNames": {"maxLength": Id::MAX_LEN},
        "additionalProperties": {"type": "string"}
    });
    let released = json!({
        "type": "object",
        "required": ["name", "inputs"],
        "properties": {
            "name": &dns,
            "inputs": {
                "type": "object",
                "description": "The inputs of a cluster polling under the name when it was released: by path and id, the objects that Flux created; \
                                \"unknown\" if the cluster got no answer then.",
                "additionalProperties": inputs_of_path
            },
            "protected": {"type": "boolean", "description": "Whether the cluster had deletion_protection then."}
        },
        "additionalProperties": false
    });
    // In documents of older versions a released name is only a string.
    let released = json!({"anyOf": [&dns, released]});
    for ((name, description), items) in SERVER_OWNED.into_iter().zip([dns, released]) {
        cluster.declaration.schema["properties"][name] =
            json!({"type": "array", "readOnly": true, "description": description, "items": items});
    }
    let mut references = Vec::with_capacity(declared.len());
    for (is_cluster, list, reference) in declared {
        if is_cluster {
            references.push(Value::Null);
            continue;
        }
        let field = &mut cluster.declaration.schema["properties"][&list];
        if field.is_null() {
            *field = json!({"type": "array", "items": reference});
        }
        if field["items"]["properties"]["id"]["type"] != json!("string") {
            return Err(cluster.refuse(yaml::child(&pointer, &list), "the list is an array of objects with an id"));
        }
        references.push(field["items"].clone());
    }
    Ok(references)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const NETWORK_POLICY: &str = "\
kind: network_policy
apiVersion: v1
schema:
  type: object
  required: [id, target_namespace]
  properties:
    id: {type: string}
    target_namespace: {type: string}
";

    fn with_files(files: &[(&str, &str)]) -> Result<Registry, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let hide = format!("{}/", directory.path().display());
        Registry::with_directory(directory.path()).map_err(|error| error.to_string().replace(&hide, ""))
    }

    #[test]
    fn the_built_in_types_are_known_by_every_name() {
        let registry = Registry::built_in().unwrap();
        let kinds: Vec<_> = registry.types().map(|ty| ty.kind.as_str()).collect();
        assert_eq!(kinds, ["cluster", "platform_component", "namespace", "rolebinding"]);
        for name in ["platform_component", "platform_components", "platform-components"] {
            assert_eq!(registry.by_name(name).unwrap().kind.as_str(), "platform_component");
        }
        assert!(registry.by_path("clusters").is_none(), "a cluster has no inputs of type cluster");
    }

    #[test]
    fn a_file_adds_a_type_with_the_obvious_defaults() {
        let registry =
            with_files(&[("np.yaml", NETWORK_POLICY), ("README.md", "not a type"), (".hidden.yaml", "[")]).unwrap();
        let ty = registry.by_path("network-policies").unwrap();
        assert_eq!((ty.kind.as_str(), ty.list.as_str()), ("network_policy", "network_policies"));
        let clusters = registry.by_kind("cluster").unwrap();
        let fields = json!({
            "id": "a", "cluster_name": "a", "cluster_dns": "a.example", "environment": "dev",
            "network_policies": [{"id": "x", "enabled": true}]
        });
        let errors = clusters.check(fields.as_object().unwrap().clone());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].pointer, "/network_policies/0");
    }

    #[test]
    fn a_file_of_a_known_kind_replaces_the_type() {
        let text = "kind: namespace\napiVersion: v1\nschema: {type: object, properties: {team: {type: string}}}\n";
        let registry = with_files(&[("namespace.yaml", text)]).unwrap();
        assert_eq!(registry.types().count(), 4);
        let properties = registry.by_kind("namespace").unwrap().properties().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["team", "id"]);
    }

    #[test]
    fn the_cluster_may_point_to_a_reference_by_its_schema_name() {
        let cluster = include_str!("../../../resources/cluster.yaml").replace(
            "      patches:\n",
            "      network_policies:\n        type: array\n        items:\n          $ref: \"#/components/schemas/network_policy_ref\"\n      patches:\n",
        );
        let registry = with_files(&[("cluster.yaml", &cluster), ("np.yaml", NETWORK_POLICY)]).unwrap();
        let cluster = registry.by_kind("cluster").unwrap();
        assert_eq!(cluster.schema["properties"]["network_policies"]["items"]["required"], json!(["id"]));
    }

    /// The fields of references may be declared in the file of the cluster, and must fit the type all the same.
    #[test]
    fn a_reference_that_the_cluster_declares_has_no_field_that_inputs_need() {
        let with_reference = |field: &str| {
            let list = format!(
                "      network_policies:\n        type: array\n        items:\n          type: object\n          \
                 required: [id]\n          properties: {{id: {{type: string}}, {field}}}\n      patches:\n"
            );
            let cluster = include_str!("../../../resources/cluster.yaml").replace("      patches:\n", &list);
            let nest = NETWORK_POLICY.replace("schema:\n", "schema:\n  x-flux: {nest: {tier: [target_namespace]}}\n");
            with_files(&[("cluster.yaml", &cluster), ("np.yaml", &nest)])
        };
        with_reference("note: {type: string}").unwrap();
        for (field, rule) in [
            ("none: {type: boolean, default: true}", "inputs use that name themselves"),
            ("provider: {type: string}", "inputs use that name themselves"),
            ("tier: {type: string}", "gives that name to an object"),
            ("enabled: {type: integer}", "is a boolean"),
            (
                "note: {type: string}}\n          additionalProperties: true\n          x-note: {",
                "name all their fields",
            ),
            ("enabled: {type: boolean, nullable: true, default: null}", "null is no default"),
        ] {
            let error = with_reference(field).unwrap_err();
            assert!(error.contains(rule) && error.contains("network_policies"), "{field}: {error}");
        }
    }

    #[test]
    fn a_broken_file_is_refused_with_file_line_and_rule() {
        let flux = |block: &str| NETWORK_POLICY.replace("schema:\n", &format!("schema:\n  x-flux: {block}\n"));
        let cases = [
            ("bad yaml", "kind: [".to_owned()),
            ("unknown key", format!("{NETWORK_POLICY}colour: red\n")),
            ("missing schema", "kind: a\napiVersion: v1\n".to_owned()),
            ("bad kind", NETWORK_POLICY.replace("network_policy", "Network-Policy")),
            ("schema of a scalar", "kind: a\napiVersion: v1\nschema:\n  type: string\n".to_owned()),
            (
                "array without key",
                "kind: a\napiVersion: v1\nschema:\n  type: array\n  items: {properties: {}}\n".to_owned(),
            ),
            ("no properties", "kind: a\napiVersion: v1\nschema:\n  type: object\n".to_owned()),
            (
                "unnamed fields",
                NETWORK_POLICY.replace("  required: [id", "  additionalProperties: true\n  required: [id"),
            ),
            (
                "fields by pattern",
                NETWORK_POLICY
                    .replace("  required: [id", "  patternProperties: {\"^n\": {type: boolean}}\n  required: [id"),
            ),
            ("id with a default", NETWORK_POLICY.replace("id: {type: string}", "id: {type: string, default: x}")),
            (
                "null by default",
                NETWORK_POLICY.replace("target_namespace: {type: string}", "note: {type: string, default: null}"),
            ),
            (
                "enabled by a number",
                NETWORK_POLICY.replace("target_namespace: {type: string}", "enabled: {type: integer, default: 0}"),
            ),
            (
                "enabled by a text",
                NETWORK_POLICY.replace("target_namespace: {type: string}", "enabled: {type: boolean, default: \"\"}"),
            ),
            (
                "nest of a reference's name",
                flux("{nest: {enabled: [target_namespace]}, reference: {enabled: {type: boolean}}}"),
            ),
            ("reference with a default id", flux("{reference: {id: {type: string, default: x}}}")),
            ("number as id", NETWORK_POLICY.replace("id: {type: string}", "id: {type: integer}")),
            (
                "not a JSON schema",
                NETWORK_POLICY.replace("target_namespace: {type: string}", "target_namespace: {type: text}"),
            ),
            (
                "unknown reference",
                NETWORK_POLICY.replace("target_namespace: {type: string}", "target_namespace: {$ref: \"#/x\"}"),
            ),
            ("reserved field", NETWORK_POLICY.replace("target_namespace: {type", "provider: {type")),
            ("unknown flux key", flux("{colour: red}")),
            ("wrong flux type", flux("{patchable: maybe}")),
            ("unknown nest field", flux("{nest: {source: [oci_url]}}")),
            ("reserved nest", flux("{nest: {cluster: [target_namespace]}}")),
            ("reserved reference", flux("{reference: {provider: {type: string}}}")),
            ("held back and needed", flux("{fields: [id], ordered_by: target_namespace}")),
            ("star inside", flux("{reserved: [\"a*b\"]}")),
            (
                "misspelt extension",
                NETWORK_POLICY
                    .replace("target_namespace: {type: string}", "labels: {type: object, x-kubernetes: lables}"),
            ),
            ("taken path", flux("{path: namespaces}")),
            ("path that no object can have", flux("{path: a--b}")),
            ("path that ends oddly", flux("{path: a-}")),
            ("path of Flux' own", flux("{path: id}")),
            ("empty template", flux("{template: \" \"}")),
            ("no definition's name", flux("{requires: [\"\"]}")),
            ("unknown fixed field", flux("{fixed: {role: target_namespace}}")),
            ("fixed unless a text", flux("{fixed: {id: target_namespace}}")),
            ("name of the API", NETWORK_POLICY.replace("network_policy", "change")),
            ("taken list", flux("{list: namespaces}")),
        ];
        let mut errors = String::new();
        for (case, text) in cases {
            let error = with_files(&[("np.yaml", &text)]).unwrap_err();
            writeln!(errors, "{case}: {error}").unwrap();
        }
        insta::assert_snapshot!(errors);
        let twice = with_files(&[("a.yaml", NETWORK_POLICY), ("b.yaml", NETWORK_POLICY)]).unwrap_err();
        assert!(twice.starts_with("b.yaml:1: kind: the kind \"network_policy\" is already declared in "), "{twice}");
    }
}
