//! Where each value of an input comes from.
//!
//! What is explained is what a poll is served, by the code that serves it. The merge keeps which source won; the sources that
//! lost are looked up here, so a poll never pays for them.

use model::{
    ExplainedField, Explanation, HiddenValue, Id, ResourceType, SourceDocument, SourceKind, Value, ValueSource, yaml,
};
use serde_json::value::RawValue;

use crate::{
    Cluster, Refusal, Snapshot, SnapshotError,
    inputs::Input,
    merge::{Field, Layout, Members, Merged, hidden, merge},
};

/// The kinds of the sources that are merged, the weakest first.
const MERGED: [SourceKind; 3] = [SourceKind::Default, SourceKind::Definition, SourceKind::Reference];

impl Snapshot {
    /// Where each value comes from that a cluster is served of a definition; none, if it is served no input of that id. Where the
    /// poll is refused, so is this.
    pub fn explain(&self, cluster: &Cluster, ty: &ResourceType, id: &Id) -> Result<Option<Explanation>, Refusal> {
        let mut found = None;
        self.each_input(cluster, ty, |served, mut input| {
            if served == id {
                found = Some(restated_defaults(cluster, ty, id).and_then(|fields| {
                    input.overrides.extend(fields);
                    input.explain()
                }));
            }
        })?;
        let fields = found.transpose();
        let fields = fields.map_err(|error| SnapshotError::unreadable(&cluster.document, error.to_string()))?;
        Ok(fields.map(|fields| Explanation {
            cluster: cluster.id().clone(),
            kind: ty.kind.clone(),
            id: id.clone(),
            revision: self.revision(),
            fields,
        }))
    }
}

/// The fields that a cluster's reference sets to the defaults of its type. A poll does not need them, so a cluster that was read has
/// them in its document only.
fn restated_defaults(cluster: &Cluster, ty: &ResourceType, id: &Id) -> serde_json::Result<Vec<Field<'static>>> {
    let document = cluster.document.body.fields()?;
    let list = document.get(&ty.list).and_then(Value::as_array).into_iter().flatten();
    let fields =
        list.filter(|item| item.get("id").is_some_and(|other| other == id.as_str())).filter_map(Value::as_object);
    let restated = fields.flatten().filter(|(name, value)| ty.is_default(name, value));
    Ok(restated.map(|(name, value)| Field { name: name.clone().into(), value: value.to_string().into() }).collect())
}

impl Input<'_> {
    fn explain(&self) -> serde_json::Result<Vec<ExplainedField>> {
        let mut fields =
            vec![self.unrivalled("/id".into(), &quoted(&self.definition.document.id), SourceKind::Definition)?];
        let sources = self.sources();
        let merged = merge(&sources);
        let layout = Layout::new(self.ty, &merged);
        for field in layout.outside() {
            fields.push(self.merged(&yaml::child("", field.name), field)?);
        }
        for nest in &self.ty.nests {
            let pointer = yaml::child("", &nest.name);
            let before = fields.len();
            for field in layout.inside(nest) {
                fields.push(self.merged(&yaml::child(&pointer, field.name), field)?);
            }
            if fields.len() == before {
                fields.push(self.unrivalled(pointer, "{}", SourceKind::Default)?);
            }
        }
        // What follows is written as text when documents are read, so it is read from that text.
        let additions = self.additions();
        let Members(additions) = serde_json::from_str(&additions)?;
        for (name, value) in additions {
            let pointer = yaml::child("", &name);
            match &*name {
                "patches" => self.each_member(&mut fields, &pointer, value, SourceKind::Patch)?,
                "cluster" => self.each_member(&mut fields, &pointer, value, SourceKind::Cluster)?,
                _ => fields.push(self.unrivalled(pointer, value.get(), SourceKind::Computed)?),
            }
        }
        Ok(fields)
    }

    /// One field for each member of an object.
    fn each_member(
        &self,
        fields: &mut Vec<ExplainedField>,
        pointer: &str,
        object: &RawValue,
        kind: SourceKind,
    ) -> serde_json::Result<()> {
        let Members(members) = serde_json::from_str(object.get())?;
        if members.is_empty() {
            fields.push(self.unrivalled(pointer.to_owned(), "{}", SourceKind::Default)?);
        }
        for (name, value) in members {
            fields.push(self.unrivalled(yaml::child(pointer, &name), value.get(), kind)?);
        }
        Ok(())
    }

    /// A field that the merge produced.
    fn merged(&self, pointer: &str, field: &Merged<'_>) -> serde_json::Result<ExplainedField> {
        let hidden = hidden(&self.sources(), field)
            .map(|(source, value)| Ok(HiddenValue { value: raw(value)?, source: self.source(MERGED[source]) }))
            .collect::<serde_json::Result<_>>()?;
        let source = self.source(MERGED[field.source]);
        Ok(ExplainedField { pointer: pointer.to_owned(), value: raw(field.value)?, source, hidden })
    }

    /// A field that only one source can set.
    fn unrivalled(&self, pointer: String, value: &str, kind: SourceKind) -> serde_json::Result<ExplainedField> {
        Ok(ExplainedField { pointer, value: raw(value)?, source: self.source(kind), hidden: Vec::new() })
    }

    fn source(&self, kind: SourceKind) -> ValueSource {
        let document = match kind {
            SourceKind::Default | SourceKind::Computed => None,
            SourceKind::Definition => Some(&self.definition.document),
            SourceKind::Reference | SourceKind::Patch | SourceKind::Cluster => Some(&self.cluster.document),
        };
        let document = document.map(|document| SourceDocument {
            kind: document.kind.clone(),
            id: document.id.clone(),
            revision: document.revision,
            at: None,
            actor: None,
            reason: None,
        });
        ValueSource { kind, document }
    }
}

fn raw(json: &str) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(json.to_owned())
}

fn quoted(id: &Id) -> String {
    model::Value::from(id.as_str()).to_string()
}
