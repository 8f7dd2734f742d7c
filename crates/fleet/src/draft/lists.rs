//! A patch that does not say how it treats lists must not shorten one, nor drop what a reference overrides.
//!
//! Of one body, a merge patch leaves a cluster with the references in the body alone, and a strategic merge patch with all that
//! it had before too. `application/json` means neither, so what would take references away in that form is refused, and so is a body
//! by which the two would leave other overrides behind.

use std::collections::{BTreeMap, BTreeSet};

use model::{Id, Map, Patch, ResourceType, Value};

use super::{Draft, EditError};

impl Draft<'_> {
    /// Refuses a patch after which a cluster refers to less than before, or would have fewer overrides of its references than the same
    /// body means as a strategic merge patch.
    pub fn refuse_shorter_lists(&mut self, ty: &ResourceType, ids: &[Id], patch: &Patch) -> Result<(), EditError> {
        self.close_all()?;
        let (Patch::Merge(fields) | Patch::Strategic(fields)) = patch else { return Ok(()) };
        let registry = self.fleet.registry();
        let lists: Vec<_> = registry.definitions().map(|it| &*it.list).filter(|it| fields.get(it).is_some()).collect();
        // Most patches are about something else, and the documents need not be read.
        let ids = if ty.is_cluster() && !lists.is_empty() { ids } else { &[] };
        // The review reports the rules that a document breaks by itself.
        let is_broken = |id: &Id| {
            let edit = self.edits.get(&(ty.kind.clone(), id.clone()));
            edit.and_then(|edit| edit.broken.as_ref()).is_some_and(|broken| !broken.is_empty())
        };
        for id in ids.iter().filter(|id| !is_broken(id)) {
            let before = self.fleet.document(ty, id).and_then(|document| document.body.fields().ok());
            let (Some(before), Ok(after)) = (before, self.fields(ty, id)) else { continue };
            for &list in &lists {
                let kept: BTreeSet<_> = references(&after, list).collect();
                let gone = references(&before, list).filter(|reference| !kept.contains(reference));
                let gone: Vec<_> = gone.map(ToOwned::to_owned).collect();
                if !gone.is_empty() {
                    let is_strategic = matches!(patch, Patch::Strategic(_));
                    return Err(EditError::AmbiguousPatch {
                        id: id.clone(),
                        list: list.to_owned(),
                        gone,
                        is_strategic,
                    });
                }
                let Patch::Merge(Value::Object(changes)) = patch else { continue };
                let read_by = registry.definitions().find(|it| it.list == list);
                let ids = read_by.map(|it| differing(it, &before, &after, changes)).unwrap_or_default();
                if !ids.is_empty() {
                    return Err(EditError::AmbiguousReferences { id: id.clone(), list: list.to_owned(), ids });
                }
            }
        }
        Ok(())
    }
}

/// The references of a type that would say something else if a merge patch were a strategic merge patch.
fn differing(ty: &ResourceType, before: &Map, merged: &Map, changes: &Map) -> Vec<String> {
    let list = ty.list.as_str();
    let only_list =
        |fields: &Map| -> Map { fields.get(list).map(|value| (list.to_owned(), value.clone())).into_iter().collect() };
    let strategic = Patch::Strategic(Value::Object(only_list(changes))).apply(only_list(before));
    // A body that is no strategic merge patch has one meaning alone.
    let Ok(strategic) = strategic else { return Vec::new() };
    let (merged, strategic) = (overrides(ty, merged), overrides(ty, &strategic));
    let ids: BTreeSet<_> = merged.keys().chain(strategic.keys()).copied().collect();
    ids.into_iter().filter(|id| merged.get(id) != strategic.get(id)).map(ToOwned::to_owned).collect()
}

/// What each reference of a type overrides, without what is the same as to say nothing.
fn overrides<'a>(ty: &ResourceType, fields: &'a Map) -> BTreeMap<&'a str, BTreeMap<&'a str, &'a Value>> {
    let items = fields.get(&ty.list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let overrides = |item: &'a Map| {
        let fields = item.iter().filter(|(name, value)| !value.is_null() && !ty.is_default(name, value));
        fields.map(|(name, value)| (name.as_str(), value)).collect()
    };
    items.filter_map(|item| Some((item.get("id")?.as_str()?, overrides(item)))).collect()
}

/// What a list of a cluster refers to.
fn references<'a>(fields: &'a Map, list: &str) -> impl Iterator<Item = &'a str> {
    let items = fields.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item["id"].as_str())
}
