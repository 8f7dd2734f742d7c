//! A cluster, read from its document: who it is, what it refers to, what it patches.
//!
//! A fleet has many, so a cluster keeps text that is served as it is and shares the ids of what it refers to.

use std::collections::BTreeMap;

use model::{
    ClusterDns, Document, Id, Map, Registry, ResourceType, State, Value,
    helm::{self, PatchError},
    prune_nulls,
};
use serde_json::json;

use crate::snapshot::SnapshotError;

/// A cluster of the fleet, live or decommissioned.
#[derive(Debug)]
pub struct Cluster {
    /// Its document.
    pub document: Document,
    /// The name under which it polls, in its one spelling.
    pub dns: ClusterDns,
    /// Its tier.
    pub environment: Box<str>,
    /// What every input says about the cluster, as JSON: `{name, dns, environment}`.
    pub(crate) identity: Box<str>,
    /// The lists of references, by the type's position in the registry.
    lists: Box<[List]>,
    /// The patches, by the id of what they patch.
    pub(crate) patches: BTreeMap<Box<str>, Patches>,
    /// Lists of references that no resource type reads.
    pub(crate) unread_lists: Box<[Box<str>]>,
}

/// The references to one type.
#[derive(Debug, Default)]
struct List {
    references: Box<[Reference]>,
    /// An id that is there twice.
    twice: Option<Id>,
}

/// One entry of a cluster's list for a type.
#[derive(Debug)]
pub struct Reference {
    /// The definition that it names.
    pub id: Id,
    /// What it says beside the id, if that makes a difference; null says nothing.
    pub(crate) fields: Option<Box<Map>>,
}

impl Reference {
    /// Whether the cluster wants what it refers to.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.fields.as_ref().is_none_or(|fields| fields.get("enabled") != Some(&Value::Bool(false)))
    }
}

/// The patches of one component.
#[derive(Debug)]
pub(crate) struct Patches {
    /// The flat patches and the typed values that they describe, as members of a JSON object.
    pub(crate) members: Result<Box<str>, PatchError>,
    /// The keys that are not free names of variables, which patches of an OCI artifact must be.
    pub(crate) no_variables: Box<[Box<str>]>,
}

impl Patches {
    fn read(patches: Map) -> Self {
        let taken = |key: &str| {
            let plain = key.strip_suffix(QUOTED);
            IDENTITY.contains(&plain.unwrap_or(key)) || plain.is_some_and(|plain| patches.contains_key(plain))
        };
        let no_variables = patches.keys().filter(|key| !is_variable(key) || taken(key));
        let no_variables = no_variables.map(|key| key.as_str().into()).collect();
        let members = helm::expand(&patches).map(|values| {
            format!("\"patches\":{},\"values\":{}", Value::Object(patches), Value::Object(values)).into()
        });
        Self { members, no_variables }
    }
}

/// Variables that every artifact is given; and what is behind the name of each that is given in quotes too.
const IDENTITY: [&str; 3] = ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT"];
const QUOTED: &str = "_STR";

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Cluster {
    /// Reads a document. `known` finds an id of a type that is in memory already.
    pub(crate) fn read(
        document: Document,
        registry: &Registry,
        known: impl Fn(&ResourceType, &str) -> Option<Id>,
    ) -> Result<Self, SnapshotError> {
        let unreadable = |what: String| SnapshotError::unreadable(&document, what);
        let mut fields = document.body.fields().map_err(|error| unreadable(error.to_string()))?;
        let mut text = |field: &str| match fields.shift_remove(field) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(unreadable(format!("{field} is not a string"))),
        };
        let (name, dns, environment) = (text("cluster_name")?, text("cluster_dns")?, text("environment")?);
        let mut patches = BTreeMap::new();
        match fields.shift_remove("patches") {
            None | Some(Value::Null) => {}
            Some(Value::Object(mut all)) => {
                prune_nulls(&mut all);
                for (id, one) in all {
                    let Value::Object(one) = one else { return Err(unreadable("patches are not objects".to_owned())) };
                    patches.insert(id.into(), Patches::read(one));
                }
            }
            Some(_) => return Err(unreadable("patches are not an object".to_owned())),
        }
        let mut list = |ty: &ResourceType| match fields.shift_remove(&ty.list) {
            None | Some(Value::Null) => Ok(List::default()),
            Some(Value::Array(entries)) => List::read(entries, ty, &known),
            Some(_) => Err(format!("{} is not a list", ty.list)),
        };
        let lists = registry
            .types()
            .map(|ty| if ty.is_cluster() { Ok(List::default()) } else { list(ty) })
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        // The lists that types read are taken out above.
        let unread = fields.iter().filter(|(_, value)| is_list_of_references(value));
        let unread_lists = unread.map(|(name, _)| name.as_str().into()).collect();
        let identity = json!({"name": name, "dns": dns, "environment": environment}).to_string();
        Ok(Self {
            dns: ClusterDns::normalise(&dns),
            environment: environment.into(),
            identity: identity.into(),
            lists,
            patches,
            unread_lists,
            document,
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.document.id
    }

    /// What every input says about it, as JSON: `{name, dns, environment}`.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether it is in force; else it is decommissioned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.document.state == State::Live
    }

    /// Its references to the type at a position of the registry, in their order.
    #[must_use]
    pub fn references(&self, position: usize) -> &[Reference] {
        self.lists.get(position).map_or(&[], |list| &list.references)
    }

    /// An id that it refers to twice.
    pub(crate) fn twice(&self, position: usize) -> Option<&Id> {
        self.lists.get(position)?.twice.as_ref()
    }
}

impl List {
    fn read(
        entries: Vec<Value>,
        ty: &ResourceType,
        known: &impl Fn(&ResourceType, &str) -> Option<Id>,
    ) -> Result<Self, String> {
        let references = entries.into_iter().map(|entry| Reference::read(entry, ty, known));
        let references = references.collect::<Result<Box<[_]>, _>>()?;
        let mut ids: Vec<_> = references.iter().map(|reference| &reference.id).collect();
        ids.sort_unstable();
        let twice = ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        Ok(Self { references, twice })
    }
}

impl Reference {
    fn read(
        entry: Value,
        ty: &ResourceType,
        known: &impl Fn(&ResourceType, &str) -> Option<Id>,
    ) -> Result<Self, String> {
        let Value::Object(mut fields) = entry else { return Err("a reference is not an object".to_owned()) };
        prune_nulls(&mut fields);
        let Some(Value::String(id)) = fields.shift_remove("id") else { return Err("a reference has no id".to_owned()) };
        let id = match known(ty, &id) {
            Some(id) => id,
            None => Id::parse(&id).map_err(|error| format!("a reference to \"{id}\": {error}"))?,
        };
        // To say the default is to say nothing, unless the definition could say something else.
        let defined = |name: &str| ty.properties().is_some_and(|properties| properties.contains_key(name));
        fields.retain(|name, value| defined(name) || ty.defaults.get(name) != Some(value));
        Ok(Self { id, fields: (!fields.is_empty()).then(|| Box::new(fields)) })
    }
}

fn is_list_of_references(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item.get("id").is_some()))
}
