//! What operators do most: assign a definition to a cluster, unassign it, patch it, restore it. Each touches its own part
//! of the cluster's document, so that two tools never rewrite one list.

use model::{Body, FieldError, Id, Kind, Map, Op, Patch, ResourceType, Value, limits::Size};
use serde_json::json;

use super::{Draft, EditError, open::Cost};
use crate::Cluster;

impl<'a> Draft<'a> {
    pub(super) fn clusters(&self) -> Result<&'a ResourceType, EditError> {
        let clusters = self.fleet.registry().by_kind(ResourceType::CLUSTER);
        clusters.ok_or_else(|| FieldError::new("", "type", "there is no cluster type").into())
    }

    /// Changes the fields of a cluster; the change returns whether what it is about was there.
    fn edit_cluster(
        &mut self,
        cluster: &Id,
        about: (&Kind, &Id),
        growth: usize,
        change: impl FnOnce(&mut Map) -> bool,
    ) -> Result<(), EditError> {
        let clusters = self.clusters()?;
        let missing = || EditError::NotFound { kind: about.0.clone(), id: about.1.clone() };
        self.edit_open(
            clusters,
            cluster,
            (Cost::Items, growth),
            |fields| {
                if change(fields) { Ok(()) } else { Err(missing()) }
            },
        )
    }

    /// Adds a cluster's reference to a definition, or replaces it.
    pub fn assign(&mut self, cluster: &Id, ty: &ResourceType, id: &Id, mut reference: Map) -> Result<(), EditError> {
        if reference.shift_remove("id").is_some_and(|given| given != id.as_str()) {
            return Err(FieldError::new("/id", "id", "the reference's id is not the path's").into());
        }
        let mut item = Map::new();
        item.insert("id".to_owned(), json!(id));
        item.extend(reference);
        let growth = written_size(&item);
        self.edit_cluster(cluster, (&ty.kind, id), growth, |fields| {
            let Value::Array(items) = fields.entry(ty.list.clone()).or_insert_with(|| json!([])) else { return false };
            match items.iter_mut().find(|known| known["id"] == id.as_str()) {
                Some(known) => *known = Value::Object(item),
                None => items.push(Value::Object(item)),
            }
            true
        })
    }

    /// Ends a cluster's reference to a definition. Its patches stay, for the day it comes back.
    pub fn unassign(&mut self, cluster: &Id, ty: &ResourceType, id: &Id) -> Result<(), EditError> {
        self.edit_cluster(cluster, (&ty.kind, id), 0, |fields| {
            let Some(Value::Array(items)) = fields.get_mut(&ty.list) else { return false };
            let before = items.len();
            items.retain(|item| item["id"] != id.as_str());
            items.len() < before
        })
    }

    /// Makes these the patches of a component on a cluster.
    pub fn set_patches(&mut self, cluster: &Id, component: &Id, patches: Map) -> Result<(), EditError> {
        let growth = written_size(&patches);
        self.edit_cluster(cluster, (&Kind::from("patch"), component), growth, |fields| {
            let Value::Object(all) = fields.entry("patches").or_insert_with(|| json!({})) else { return false };
            all.insert(component.to_string(), Value::Object(patches));
            true
        })
    }

    /// Changes the patches of a component on a cluster: null takes one away.
    pub fn merge_patches(&mut self, cluster: &Id, component: &Id, patch: Map) -> Result<(), EditError> {
        let patch = json!({"patches": {component.as_str(): patch}});
        self.patch(self.clusters()?, cluster, &Patch::Merge(patch))
    }

    /// Takes all patches of a component on a cluster away.
    pub fn remove_patches(&mut self, cluster: &Id, component: &Id) -> Result<(), EditError> {
        self.edit_cluster(cluster, (&Kind::from("patch"), component), 0, |fields| {
            let all = fields.get_mut("patches").and_then(Value::as_object_mut);
            all.is_some_and(|all| all.shift_remove(component.as_str()).is_some())
        })
    }

    /// Puts a decommissioned cluster in force again, as it was.
    pub fn restore(&mut self, cluster: &Id) -> Result<(), EditError> {
        let body = self.tombstone(cluster)?;
        self.write(self.clusters()?, cluster, Op::Put(body));
        Ok(())
    }

    /// Forgets a decommissioned cluster: its name is unknown again. A cluster that was in force before this draft is not
    /// forgotten with it: one change would take its names away and no plan would show it.
    pub fn purge(&mut self, cluster: &Id) -> Result<(), EditError> {
        self.tombstone(cluster)?;
        if self.fleet.cluster(cluster).is_some_and(Cluster::is_live) {
            return Err(EditError::NotDecommissioned(cluster.clone()));
        }
        self.write(self.clusters()?, cluster, Op::Remove);
        Ok(())
    }

    fn tombstone(&self, cluster: &Id) -> Result<Body, EditError> {
        let clusters = self.clusters()?;
        match self.op(clusters, cluster) {
            Some(Op::Retire(body)) => Ok(body),
            Some(Op::Put(_)) => Err(EditError::NotDecommissioned(cluster.clone())),
            Some(Op::Remove) | None => Err(EditError::NotFound { kind: clusters.kind.clone(), id: cluster.clone() }),
        }
    }
}

/// About the bytes of fields that are written into a document.
fn written_size(fields: &Map) -> usize {
    fields.iter().map(|(name, value)| name.len() + 4 + Size::of_value(value).bytes).sum()
}
