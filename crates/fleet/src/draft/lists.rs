//! A patch that does not define how it treats lists must not shorten one.
//!
//! Of one body, a merge patch leaves a cluster with the references in the body alone, and a strategic merge patch with all that
//! it had before too. `application/json` means neither, so a patch in that form that would remove references is refused.

use std::collections::BTreeSet;

use model::{Id, Map, Patch, ResourceType, Value};

use super::{Draft, EditError};

impl Draft<'_> {
    /// Refuses a patch after which a cluster refers to less than before.
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
            }
        }
        Ok(())
    }
}

/// What a list of a cluster refers to.
fn references<'a>(fields: &'a Map, list: &str) -> impl Iterator<Item = &'a str> {
    let items = fields.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item["id"].as_str())
}
