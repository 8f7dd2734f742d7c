//! The referrers of a definition, at a point of a draft, and the removal of their references.
//!
//! A batch may delete a whole catalogue. So the dependants in the snapshot are found once for all deletes, and what each delete
//! searches in the documents that the draft writes counts as work.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use model::{FieldError, Id, Map, Op, ResourceType, Value, limits::COUNTED_ERRORS};

use super::{Draft, EditError};
use crate::catalogue::Catalogue;

/// By an id, the definitions that depend on it.
pub(super) type Dependants<'a> = HashMap<&'a str, Vec<&'a Id>, RandomState>;

impl Draft<'_> {
    /// Makes sure that no document refers to a definition any more: removes the references, or refuses.
    pub(super) fn release(&mut self, ty: &ResourceType, id: &Id, cascade: bool) -> Result<(), EditError> {
        let Some(clusters) = self.fleet.registry().by_kind(ResourceType::CLUSTER) else { return Ok(()) };
        self.close_all()?;
        let mut by = Vec::new();
        let mut known: BTreeSet<Id> = self.fleet.referrers(ty, id).cloned().collect();
        if ty.patchable {
            known.extend(self.fleet.patching(id.as_str()).map(|cluster| cluster.id().clone()));
        }
        for cluster in self.candidates(clusters, known, id)? {
            // The error names only the first of them.
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
            let known = self.dependants(ty, id);
            for dependant in self.candidates(ty, known, id)? {
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
    fn fields_if_there(&self, ty: &ResourceType, id: &Id) -> Result<Option<Map>, EditError> {
        match self.fields(ty, id) {
            Err(EditError::NotFound { .. } | EditError::Decommissioned(_)) => Ok(None),
            fields => fields.map(Some),
        }
    }

    /// The definitions of the snapshot that depend on an id.
    fn dependants(&mut self, ty: &ResourceType, id: &Id) -> BTreeSet<Id> {
        let fleet = self.fleet;
        let dependants = self.dependants.entry(ty.position).or_insert_with(|| {
            let mut dependants = Dependants::default();
            for definition in fleet.catalogue(ty).into_iter().flat_map(Catalogue::definitions) {
                for on in &definition.depends_on {
                    dependants.entry(&*on.id).or_default().push(&definition.document.id);
                }
            }
            dependants
        });
        dependants.get(id.as_str()).into_iter().flatten().copied().cloned().collect()
    }

    /// Documents of the snapshot that name an id, and those that this draft writes and that may name it.
    fn candidates(
        &mut self,
        ty: &ResourceType,
        mut known: BTreeSet<Id>,
        named: &Id,
    ) -> Result<BTreeSet<Id>, FieldError> {
        // To search a text is less work than to read it.
        const SEARCHED: usize = 8;
        let mut work = 0;
        for ((_, id), edit) in self.edits.iter().filter(|((kind, _), _)| *kind == ty.kind) {
            if let Op::Put(body) = &edit.op {
                let text = body.text();
                work += text.len() / SEARCHED;
                // A name may be escaped.
                if text.contains(named.as_str()) || text.contains('\\') {
                    work += text.len();
                    known.insert(id.clone());
                }
            }
        }
        self.charge(ty, named, work)?;
        Ok(known)
    }
}

/// Takes items out of a list; whether there were any.
fn drop_item(fields: &mut Map, list: &str, is: impl Fn(&Value) -> bool) -> bool {
    let Some(Value::Array(items)) = fields.get_mut(list) else { return false };
    let before = items.len();
    items.retain(|item| !is(item));
    items.len() < before
}
