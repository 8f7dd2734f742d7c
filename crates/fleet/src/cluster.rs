//! A cluster, read from its document: who it is, what it refers to, what it patches.

use model::{ClusterDns, Document, Id, Map, Registry, State, Value, prune_nulls};

use crate::snapshot::SnapshotError;

/// A cluster of the fleet, live or decommissioned.
#[derive(Debug)]
pub struct Cluster {
    /// Its document.
    pub document: Document,
    /// The name under which it polls, in its one spelling.
    pub dns: ClusterDns,
    /// What every input says about the cluster: `{name, dns, environment}`.
    pub identity: Map,
    /// The references to each type, by the type's position in the registry.
    references: Box<[Box<[Reference]>]>,
    /// The patches, by the id of what they patch.
    pub(crate) patches: Map,
    /// Lists of references that no resource type reads.
    pub(crate) unread_lists: Box<[Box<str>]>,
}

/// One entry of a cluster's list for a type.
#[derive(Debug)]
pub struct Reference {
    /// The definition that it names.
    pub id: Id,
    /// What it says beside the id; null says nothing.
    pub(crate) fields: Map,
}

impl Reference {
    /// Whether the cluster wants what it refers to.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.fields.get("enabled") != Some(&Value::Bool(false))
    }
}

impl Cluster {
    pub(crate) fn read(document: Document, registry: &Registry) -> Result<Self, SnapshotError> {
        let unreadable = |what: String| SnapshotError::unreadable(&document, what);
        let mut fields = document.body.fields().map_err(|error| unreadable(error.to_string()))?;
        let mut text = |field: &str| match fields.shift_remove(field) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(unreadable(format!("{field} is not a string"))),
        };
        let (name, dns, environment) = (text("cluster_name")?, text("cluster_dns")?, text("environment")?);
        let patches = match fields.shift_remove("patches") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(mut patches)) => {
                prune_nulls(&mut patches);
                patches
            }
            Some(_) => return Err(unreadable("patches are not an object".to_owned())),
        };
        let mut list = |field: &str| match fields.shift_remove(field) {
            None | Some(Value::Null) => Ok(Box::default()),
            Some(Value::Array(entries)) => entries.into_iter().map(reference).collect(),
            Some(_) => Err(format!("{field} is not a list")),
        };
        let references = registry
            .types()
            .map(|ty| if ty.is_cluster() { Ok(Box::default()) } else { list(&ty.list) })
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        // The lists that types read are taken out above.
        let unread = fields.iter().filter(|(_, value)| is_list_of_references(value));
        let unread_lists = unread.map(|(name, _)| name.as_str().into()).collect();
        let dns_key = ClusterDns::normalise(&dns);
        let identity = [("name", name), ("dns", dns), ("environment", environment)];
        let identity = identity.into_iter().map(|(field, text)| (field.to_owned(), Value::String(text))).collect();
        Ok(Self { dns: dns_key, identity, references, patches, unread_lists, document })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.document.id
    }

    /// Whether it is in force; else it is decommissioned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.document.state == State::Live
    }

    /// Its references to the type at a position of the registry, in their order.
    #[must_use]
    pub fn references(&self, position: usize) -> &[Reference] {
        self.references.get(position).map_or(&[], |references| references)
    }
}

fn is_list_of_references(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.get("id").is_some()))
}

fn reference(entry: Value) -> Result<Reference, String> {
    let Value::Object(mut fields) = entry else { return Err("a reference is not an object".to_owned()) };
    prune_nulls(&mut fields);
    match fields.shift_remove("id") {
        Some(Value::String(id)) => {
            Ok(Reference { id: Id::parse(&id).map_err(|error| format!("a reference to \"{id}\": {error}"))?, fields })
        }
        _ => Err("a reference has no id".to_owned()),
    }
}
