//! The resource types that the change log records, compared with this server's files.
//!
//! A type whose file moved its kind, list, path or key is not served: its answers would be another type's or none. An operator
//! sees what clusters would lose by the move, and accepts it; the acceptance is a change like any other.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use model::{
    Document, FieldError, Id, InputPlan, Kind, Plan, Registry, ResourceType, TypeChange, TypeChangeKind, TypeRecord,
    Write,
};

use crate::{
    Problem, ProtectedRemovals, Rule, Snapshot, SnapshotError,
    draft::{Draft, EditError},
    plan::{add_cluster, document_plans, held_on_path, input_plan},
};

/// The records of a change log, and which of the types of this server differ from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    documents: BTreeMap<Id, Arc<(Document, TypeRecord)>>,
    /// The record of the cluster type, by which the list of clusters is served. It has no list and no path of its own to lose.
    cluster: Option<Arc<(Document, TypeRecord)>>,
    /// Worked out when a record changes: polls ask for it.
    unserved: BTreeSet<usize>,
    /// The recorded types that this server's files do not declare. Worked out with them: every change asks.
    undeclared: Vec<Kind>,
}

impl Types {
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Document> {
        self.documents.values().chain(&self.cluster).map(|entry| &entry.0)
    }

    pub(crate) fn document(&self, id: &Id) -> Option<&Document> {
        let entry = if id.as_str() == ResourceType::CLUSTER { self.cluster.as_ref() } else { self.documents.get(id) };
        entry.map(|entry| &entry.0)
    }

    /// Whether the type at a position of the registry is served.
    pub(crate) fn serves(&self, position: usize) -> bool {
        !self.unserved.contains(&position)
    }

    /// The recorded types that this server's files do not declare.
    pub(crate) fn undeclared(&self) -> &[Kind] {
        &self.undeclared
    }

    /// Whether a type that is in force is recorded to read a list.
    pub(crate) fn are_read_from(&self, list: &str) -> bool {
        self.records_in_force().any(|record| record.list == list)
    }

    /// The record of the type that is, or was the last to be, served from a list.
    pub(crate) fn record_of_list(&self, list: &str) -> Option<&TypeRecord> {
        self.documents.values().map(|entry| &entry.1).find(|record| record.has_list(list))
    }

    /// The paths at which a kind was the last to be served, and is no more.
    pub(crate) fn former_paths(&self, kind: &Kind) -> impl Iterator<Item = &str> {
        let record = self.documents.values().map(|entry| &entry.1).find(|record| record.kind == *kind);
        record.into_iter().flat_map(|record| record.former_paths.iter().map(String::as_str))
    }

    /// The kind that is, or was the last to be, served under a path.
    fn kind_at(&self, path: &str) -> Option<&Kind> {
        self.record_at(path).map(|record| &record.kind)
    }

    /// The record of the type that is, or was the last to be, served under a path.
    pub(crate) fn record_at(&self, path: &str) -> Option<&TypeRecord> {
        self.documents.values().map(|entry| &entry.1).find(|record| record.has_path(path))
    }

    /// The paths under which a recorded type is, or was, served.
    pub(crate) fn known_paths(&self) -> impl Iterator<Item = &String> {
        let records = self.documents.values().map(|entry| &entry.1);
        records.flat_map(|record| iter::once(&record.path).chain(&record.former_paths))
    }

    /// Serves what the registry declares, whatever is recorded.
    pub(crate) fn serve_all(&mut self) {
        self.unserved.clear();
    }

    /// Adds or removes a record.
    pub(crate) fn put(
        &mut self,
        id: &Id,
        document: Option<Document>,
        registry: &Registry,
    ) -> Result<(), SnapshotError> {
        let read = |document: Document| match TypeRecord::read(&document.body) {
            Ok(record) => Ok(Arc::new((document, record))),
            Err(error) => Err(SnapshotError::unreadable(&document, error.to_string())),
        };
        let entry = document.map(read).transpose()?;
        match entry {
            entry if id.as_str() == ResourceType::CLUSTER => self.cluster = entry,
            Some(entry) => drop(self.documents.insert(id.clone(), entry)),
            None => drop(self.documents.remove(id)),
        }
        let (changed, others): (Vec<_>, Vec<_>) =
            self.changes(registry).into_iter().partition(|it| it.change == TypeChangeKind::Changed);
        let position = |it: TypeChange| registry.by_kind(it.declared?.kind.as_str()).map(|ty| ty.position);
        self.unserved = changed.into_iter().filter_map(position).collect();
        let removed = others.into_iter().filter(|it| it.change == TypeChangeKind::Removed);
        self.undeclared = removed.filter_map(|it| Some(it.recorded?.kind)).collect();
        Ok(())
    }

    /// The records of types that are served, whether or not this server has their files.
    fn records_in_force(&self) -> impl Iterator<Item = &TypeRecord> {
        self.documents.values().map(|entry| &entry.1).filter(|record| !record.retired)
    }

    fn records(&self) -> Vec<TypeRecord> {
        self.documents.values().map(|entry| entry.1.clone()).collect()
    }

    fn changes(&self, registry: &Registry) -> Vec<TypeChange> {
        let mut changes = registry.compare(&self.records());
        changes.extend(registry.compare_cluster(self.cluster_record()));
        changes
    }

    /// How the list of clusters is recorded to be served.
    pub(crate) fn cluster_record(&self) -> Option<&TypeRecord> {
        self.cluster.as_ref().map(|entry| &entry.1)
    }
}

impl Snapshot {
    /// Where the files of this server and the records of the change log differ.
    #[must_use]
    pub fn type_changes(&self) -> Vec<TypeChange> {
        self.types().changes(self.registry())
    }

    /// Whether clusters get something else once this server's files are accepted: a type was served in another way, or is retired.
    pub(crate) fn has_moved_types(&self) -> bool {
        self.type_changes().iter().any(|it| it.change != TypeChangeKind::Added)
    }

    /// The paths of the types that are not served, because their files and the change log differ.
    pub fn unserved_paths(&self) -> impl Iterator<Item = &str> {
        let unserved = self.registry().types().filter(|ty| !self.types().serves(ty.position));
        unserved.map(|ty| ty.path.as_str())
    }

    /// The paths of recorded types of which this server has no file, or another path in it.
    pub fn undeclared_paths(&self) -> impl Iterator<Item = &str> {
        let live = self.types().records_in_force().map(|record| record.path.as_str());
        live.filter(|path| self.registry().by_path(path).is_none())
    }

    /// The types that are not served, as problems.
    #[must_use]
    pub fn type_problems(&self) -> Vec<Problem> {
        let problem = |change: TypeChange| {
            let (kind, message) = match (change.change, change.declared, change.recorded) {
                (TypeChangeKind::Changed, Some(declared), _) => {
                    let message = format!(
                        "the file of this type declares another kind, list, path, key, field, nest or default than the change log \
                         records, or one that another type had, so /{} is not served; GET /types/changes shows what clusters would lose, and \
                         POST /types/accept accepts it",
                        declared.path
                    );
                    (declared.kind, message)
                }
                (TypeChangeKind::Removed, _, Some(recorded)) => {
                    let message = format!(
                        "the change log has this type and this server has no file of it, so /{} is not served and no change is \
                         made here; put the file back, or accept that the type is gone: GET /types/changes shows it",
                        recorded.path
                    );
                    (recorded.kind, message)
                }
                _ => return None,
            };
            let id = Id::parse(kind.as_str()).ok()?;
            let kind = Kind::from(TypeRecord::KIND);
            Some(Problem { kind, id, pointer: String::new(), rule: Rule::TypesChanged, message })
        };
        self.type_changes().into_iter().filter_map(problem).collect()
    }

    /// The writes that record the types that this server adds.
    #[must_use]
    pub fn unrecorded_types(&self) -> Vec<Write> {
        let added = self.type_changes().into_iter().filter(|it| it.change == TypeChangeKind::Added);
        // Kinds are ids: their grammar is narrower.
        let write = |it: TypeChange| {
            let declared = it.declared?;
            let record = it.recorded.iter().fold(declared, TypeRecord::in_place_of);
            record.write().ok()
        };
        added.filter_map(write).collect()
    }

    /// What clusters would get differently if the types were served as this server's files declare them, not as they are recorded;
    /// and whether that takes more from protected clusters than is allowed.
    pub fn types_plan(&self, next: &Self, writes: &[Write], allowed: usize) -> Result<Plan, SnapshotError> {
        let plan = self.plan_of_types(next, writes)?;
        Ok(Plan { refused: ProtectedRemovals::of_plan(self, &plan).refused(allowed), ..plan })
    }

    /// The same documents, read and served by the types that are recorded.
    pub(crate) fn as_recorded(&self) -> Result<Self, SnapshotError> {
        let recorded = Arc::new(self.registry().as_recorded(&self.types().records()));
        Ok(Self::load(recorded, *self.point(), self.all_documents().cloned())?.serving_all())
    }

    pub(crate) fn plan_of_types(&self, next: &Self, writes: &[Write]) -> Result<Plan, SnapshotError> {
        let before = self.as_recorded()?;
        let mut plan = Plan::new(self.point(), document_plans(self, writes));
        let ids: Vec<Id> = before.clusters().filter(|cluster| cluster.is_live()).map(|it| it.id().clone()).collect();
        let declared = next.registry().definitions().map(|ty| &ty.path);
        let paths: BTreeSet<&str> = declared.chain(self.types().known_paths()).map(String::as_str).collect();
        let on_path = |id: &Id, path: &str| {
            path_plan((&before, last_type(&before, path)), (next, next.registry().by_path(path)), id, path)
        };
        let cluster = next.registry().by_kind(ResourceType::CLUSTER);
        let lists_clusters_anew = cluster.filter(|ty| !self.types().serves(ty.position));
        for id in ids {
            let inputs = paths.iter().filter_map(|path| Some(((*path).to_owned(), on_path(&id, path)?)));
            let mut inputs: BTreeMap<_, _> = inputs.collect();
            inputs.extend(lists_clusters_anew.map(|ty| (ty.path.clone(), listed_anew(next, &id))));
            add_cluster(&mut plan, &before, next, &id, inputs);
        }
        Ok(plan)
    }
}

impl Draft<'_> {
    /// Records the types as this server's files declare them: those that changed, those that are new, and those without a file,
    /// which are recorded as retired.
    pub fn accept_types(&mut self) -> Result<(), EditError> {
        let (registry, types) = (self.fleet().registry(), self.fleet().types());
        let cluster = registry.compare_cluster(types.cluster_record()).and_then(|change| change.declared);
        for record in registry.accepted(&types.records()).into_iter().chain(cluster) {
            let write = record.write().map_err(|error| FieldError::new("/kind", "id", error.to_string()))?;
            self.write_record(write);
        }
        Ok(())
    }
}

/// What becomes of a cluster's entry in the list of clusters when that is served in another way. What a template makes of it is
/// not known.
pub(crate) fn listed_anew(next: &Snapshot, id: &Id) -> InputPlan {
    let added = next.cluster(id).filter(|cluster| cluster.is_live()).map(|_| id.clone());
    InputPlan { added: added.into_iter().collect(), removed: vec![id.clone()], ..InputPlan::default() }
}

/// What one cluster would get differently on one path; none if nothing.
pub(crate) fn path_plan(
    (before, was): (&Snapshot, Option<&ResourceType>),
    (next, is): (&Snapshot, Option<&ResourceType>),
    id: &Id,
    path: &str,
) -> Option<InputPlan> {
    let answers =
        |fleet: &Snapshot, ty: &ResourceType| fleet.cluster(id).is_some_and(|it| fleet.input_texts(it, ty).is_ok());
    if let (Some(was), Some(is)) = (was, is.filter(|is| answers(next, is))) {
        return input_plan((before, was), (next, is), id);
    }
    // An error status deletes nothing, but the next answer on this path does, and by then the lists, kinds and definitions that
    // made the last one may be another type's. So all of it is counted now, once.
    let mut removed = held_on_path(before, was, id, path);
    if !was.is_some_and(|was| answers(before, was)) {
        let known_later = held_on_path(next, last_type(next, path), id, path);
        removed.retain(|id| !known_later.contains(id));
    }
    let removed: Vec<_> = removed.into_iter().collect();
    (!removed.is_empty()).then(|| InputPlan { removed, ..InputPlan::default() })
}

/// The type that was the last to answer under a path. It may have moved since.
pub(crate) fn last_type<'a>(before: &'a Snapshot, path: &str) -> Option<&'a ResourceType> {
    let registry = before.registry();
    match before.types().kind_at(path) {
        Some(kind) => registry.by_kind(kind.as_str()),
        None => registry.by_path(path),
    }
}
