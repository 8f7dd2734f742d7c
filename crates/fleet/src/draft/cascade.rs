//! Who refers to a definition, at a point of a draft, and how they let go of it.

use std::collections::BTreeSet;

use model::{Id, Map, ResourceType, Value, limits::COUNTED_ERRORS};

use super::{Draft, EditError};

impl Draft<'_> {
    /// Makes sure that nobody refers to a definition any more: takes the references away, or refuses.
    pub(super) fn release(&mut self, ty: &ResourceType, id: &Id, cascade: bool) -> Result<(), EditError> {
        let Some(clusters) = self.fleet.registry().by_kind(ResourceType::CLUSTER) else { return Ok(()) };
        let mut by = Vec::new();
        let mut known: BTreeSet<Id> = self.fleet.referrers(ty, id).cloned().collect();
        if ty.patchable {
            known.extend(self.fleet.patching(id.as_str()).map(|cluster| cluster.id().clone()));
        }
        for cluster in self.candidates(clusters, known) {
            // Whom an answer does not name is not looked for.
            if by.len() > COUNTED_ERRORS && !cascade {
                break;
            }
            let Some(mut fields) = self.fields_if_there(clusters, &cluster)? else { continue };
            let referred = drop_item(&mut fields, &ty.list, |item| item["id"] == id.as_str());
            let patches = fields.get_mut("patches").filter(|_| ty.patchable).and_then(Value::as_object_mut);
            let patched = patches.is_some_and(|patches| patches.shift_remove(id.as_str()).is_some());
            if referred || patched {
                by.push(format!("{}/{cluster}", clusters.kind));
                if cascade {
                    self.put(clusters, &cluster, fields)?;
                }
            }
        }
        if let Some(field) = &ty.ordered_by {
            let all = self.fleet.documents(ty).map(|document| document.id.clone()).collect();
            for dependant in self.candidates(ty, all) {
                let Some(mut fields) = self.fields_if_there(ty, &dependant)? else { continue };
                if dependant != *id && drop_item(&mut fields, field, |item| item == id.as_str()) {
                    by.push(format!("{}/{dependant}", ty.kind));
                    if cascade {
                        self.put(ty, &dependant, fields)?;
                    }
                }
            }
        }
        if by.is_empty() || cascade {
            Ok(())
        } else {
            Err(EditError::Referenced { kind: ty.kind.clone(), id: id.clone(), by })
        }
    }

    /// The fields of a document, if it is in force. One that cannot be read may refer to anything: that is an error.
    fn fields_if_there(&mut self, ty: &ResourceType, id: &Id) -> Result<Option<Map>, EditError> {
        // Every delete of a batch looks at what the batch has edited before.
        let bytes = self.op(ty, id).and_then(|op| op.body().map(|body| body.text().len())).unwrap_or_default();
        self.charge(ty, id, bytes)?;
        match self.fields(ty, id) {
            Err(EditError::NotFound { .. } | EditError::Decommissioned(_)) => Ok(None),
            fields => fields.map(Some),
        }
    }

    /// Documents of the snapshot, and those that this draft writes.
    fn candidates(&self, ty: &ResourceType, mut known: BTreeSet<Id>) -> BTreeSet<Id> {
        known.extend(
            self.edits.keys().chain(self.open.keys()).filter(|(kind, _)| *kind == ty.kind).map(|(_, id)| id.clone()),
        );
        known
    }
}

/// Takes items out of a list; whether there were any.
fn drop_item(fields: &mut Map, list: &str, is: impl Fn(&Value) -> bool) -> bool {
    let Some(Value::Array(items)) = fields.get_mut(list) else { return false };
    let before = items.len();
    items.retain(|item| !is(item));
    items.len() < before
}
