//! The differences between the types of a server's files and the records in the change log, and the records after an operator has
//! accepted them.
//!
//! The records, also those of removed types, tell what a path, a list or a kind meant before: a type that takes over a path of
//! another one answers clusters that still have the other one's inputs.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Digest, Kind, Registry, ResourceType, TypeRecord};

/// A type whose file and whose record differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TypeChange {
    /// The kind of the difference.
    pub change: TypeChangeKind,
    /// The record in the change log; absent for a type without a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<TypeRecord>,
    /// The type in this server's files; absent for a type that they do not declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<TypeRecord>,
}

/// How the file and the record of a type differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TypeChangeKind {
    /// New, or with an additional field: it is served, and recorded without an acceptance.
    Added,
    /// Polls would be answered from other documents than before: it is not served until an operator accepts it.
    Changed,
    /// Its file was removed: its path is unknown here, which deletes nothing.
    Removed,
}

impl TypeChange {
    /// Identifies these differences, so that an operator accepts the ones that were shown, and no others. Servers with other files
    /// have another digest.
    pub fn digest(changes: &[Self]) -> Result<Digest, serde_json::Error> {
        let digest: [u8; 32] = Sha256::digest(serde_json::to_vec(changes)?).into();
        Ok(Digest::from(digest))
    }
}

impl Registry {
    /// Where these types and the records of a change log differ.
    #[must_use]
    pub fn compare(&self, records: &[TypeRecord]) -> Vec<TypeChange> {
        let known = |kind: &Kind| records.iter().find(|record| record.kind == *kind);
        let mut changes = Vec::new();
        for declared in self.definitions().map(TypeRecord::declared) {
            let recorded = known(&declared.kind).cloned();
            let takes_over = |record: &TypeRecord| record.has_path(&declared.path) || record.has_list(&declared.list);
            let change = match &recorded {
                Some(recorded) if recorded.agrees_with(&declared) && recorded.covers(&declared) => continue,
                Some(recorded) if recorded.agrees_with(&declared) => TypeChangeKind::Added,
                Some(_) => TypeChangeKind::Changed,
                None if records.iter().any(takes_over) => TypeChangeKind::Changed,
                None => TypeChangeKind::Added,
            };
            changes.push(TypeChange { change, recorded, declared: Some(declared) });
        }
        // A retired type is expected to have no file.
        let is_removed = |record: &&TypeRecord| !record.retired && self.by_kind(record.kind.as_str()).is_none();
        for record in records.iter().filter(is_removed) {
            let recorded = Some(record.clone());
            changes.push(TypeChange { change: TypeChangeKind::Removed, recorded, declared: None });
        }
        changes
    }

    /// Where the cluster type and its record differ, by which the list of clusters is served. A change log of an older version has
    /// no such record.
    #[must_use]
    pub fn compare_cluster(&self, recorded: Option<&TypeRecord>) -> Option<TypeChange> {
        let declared = self.by_kind(ResourceType::CLUSTER).map(TypeRecord::declared)?;
        let change = match recorded {
            Some(recorded) if recorded.agrees_with(&declared) && recorded.covers(&declared) => return None,
            Some(recorded) if !recorded.agrees_with(&declared) => TypeChangeKind::Changed,
            _ => TypeChangeKind::Added,
        };
        Some(TypeChange { change, recorded: recorded.cloned(), declared: Some(declared) })
    }

    /// The records that are written when an operator accepts these types: those that change.
    #[must_use]
    pub fn accepted(&self, records: &[TypeRecord]) -> Vec<TypeRecord> {
        let known = |kind: &Kind| records.iter().find(|record| record.kind == *kind);
        let declared = self.definitions().map(TypeRecord::declared).map(|declared| match known(&declared.kind) {
            Some(earlier) => declared.in_place_of(earlier),
            None => declared,
        });
        let removed = records.iter().filter(|record| self.by_kind(record.kind.as_str()).is_none());
        let mut all: Vec<TypeRecord> = declared.chain(removed.cloned().map(TypeRecord::retire)).collect();
        // A path or list of a served type is no former one of another type.
        let paths: BTreeSet<_> = self.definitions().map(|ty| &ty.path).collect();
        let lists: BTreeSet<_> = self.definitions().map(|ty| &ty.list).collect();
        for record in &mut all {
            record.former_paths.retain(|path| !paths.contains(path));
            record.former_lists.retain(|list| !lists.contains(list));
        }
        all.retain(|record| !records.contains(record));
        all
    }

    /// The types as the change log records them, by which clusters were answered before: those whose files still exist, and those
    /// of which another type has taken over a path or a list.
    #[must_use]
    pub fn as_recorded(&self, records: &[TypeRecord]) -> Self {
        let mut types: Vec<ResourceType> = self.types().filter(|ty| ty.is_cluster()).cloned().collect();
        let (retired, live): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.retired);
        for record in live.into_iter().chain(retired) {
            let by_name = || self.definitions().find(|ty| record.has_path(&ty.path) || record.has_list(&ty.list));
            if let Some(ty) = self.by_kind(record.kind.as_str()).or_else(by_name) {
                let mut ty = ty.clone();
                ty.restore(record);
                types.push(ty);
            }
        }
        let is_new = |change: &TypeChange| change.change == TypeChangeKind::Added && change.recorded.is_none();
        let added = self.compare(records).into_iter().filter(is_new);
        let kinds: Vec<_> = added.filter_map(|change| Some(change.declared?.kind)).collect();
        types.extend(self.definitions().filter(|ty| kinds.contains(&ty.kind)).cloned());
        Self::from_types(types)
    }
}
