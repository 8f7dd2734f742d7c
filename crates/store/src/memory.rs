//! A change log that lives as long as the process, for tests and experiments.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Document, Id, Kind, Op, Point, ResourceType, Revision};

use crate::{
    AppendError, ChangeBatch, ChangeLogEntry, ChangeLogQuery, DocumentSender, KindFilter, LISTED_WRITES, LogBounds,
    RestoreChanges, RestoreError, Store, StoreError, StoredFleet, WAKE_INTERVAL, WriteAndBefore, chunks::run_blocking,
};

/// The change log in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    log: Mutex<MemoryLog>,
}

type Documents = BTreeMap<(Kind, Id), Document>;

#[derive(Debug)]
struct MemoryLog {
    /// The last change that was pruned, and the documents at it.
    horizon: Point,
    base: Documents,
    /// The digests of the pruned changes, and what those changes overruled.
    past: BTreeMap<Revision, Digest>,
    past_overruled: Vec<Digest>,
    /// The changes after the horizon.
    changes: Vec<Change>,
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self {
            horizon: Point::beginning(crate::new_store_id()),
            base: Documents::new(),
            past: BTreeMap::new(),
            past_overruled: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl MemoryLog {
    fn head(&self) -> Point {
        self.changes.last().map_or(self.horizon, |change| self.horizon.after(change))
    }

    /// The changes after a revision.
    fn after(&self, revision: Revision) -> Result<&[Change], StoreError> {
        // Revisions count without a gap, so a distance is also a position.
        let horizon = self.horizon.revision;
        match revision.0.checked_sub(horizon.0) {
            None => Err(StoreError::Pruned { horizon }),
            Some(distance) => {
                Ok(&self.changes[usize::try_from(distance).unwrap_or(usize::MAX).min(self.changes.len())..])
            }
        }
    }

    /// The changes up to a revision.
    fn until(&self, revision: Revision) -> Result<&[Change], StoreError> {
        let rest = self.after(revision)?.len();
        Ok(&self.changes[..self.changes.len() - rest])
    }

    fn point(&self, revision: Revision) -> Result<Point, StoreError> {
        Ok(self.until(revision)?.last().map_or(self.horizon, |change| self.horizon.after(change)))
    }

    fn documents(&self, revision: Revision) -> Result<Documents, StoreError> {
        let mut documents = self.base.clone();
        for change in self.until(revision)? {
            for write in &change.writes {
                let key = (write.kind.clone(), write.id.clone());
                match write.document(change.revision) {
                    Some(document) => documents.insert(key, document),
                    None => documents.remove(&key),
                };
            }
        }
        Ok(documents)
    }

    /// The last write to a document at or before a revision.
    fn document(&self, kind: &Kind, id: &Id, revision: Revision) -> Result<Option<(Revision, Op)>, StoreError> {
        for change in self.until(revision)?.iter().rev() {
            if let Some(write) = change.writes.iter().find(|write| write.kind == *kind && write.id == *id) {
                return Ok(Some((change.revision, write.op.clone())));
            }
        }
        let base = self.base.get(&(kind.clone(), id.clone()));
        Ok(base.map(|document| (document.revision, document.op())))
    }

    fn fleet(&self, revision: Revision) -> Result<StoredFleet, StoreError> {
        Ok(StoredFleet { point: self.point(revision)?, documents: self.documents(revision)?.into_values().collect() })
    }
}

impl MemoryStore {
    fn log(&self) -> MutexGuard<'_, MemoryLog> {
        // No code panics while the log is half changed.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn read_documents(&self, to: DocumentSender) -> Result<Point, StoreError> {
        let StoredFleet { point, documents } = {
            let log = self.log();
            log.fleet(log.head().revision)?
        };
        let (clusters, others): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|document| document.kind.as_str() == ResourceType::CLUSTER);
        run_blocking(|| to.send_all(others.into_iter().chain(clusters).map(Ok)))?;
        Ok(point)
    }

    async fn bounds(&self) -> Result<LogBounds, StoreError> {
        let log = self.log();
        Ok(LogBounds { horizon: log.horizon, head: log.head() })
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut log = self.log();
        let head = log.head();
        let mut end = head;
        for change in changes {
            if (change.revision, change.parent) != (end.revision.next(), end.digest) {
                return Err(AppendError::Conflict { head });
            }
            end = end.after(change);
        }
        log.changes.extend_from_slice(changes);
        drop(log);
        Ok(())
    }

    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<ChangeBatch, StoreError> {
        let log = self.log();
        if log.head().revision <= revision {
            return Ok(ChangeBatch { head: log.head(), changes: Vec::new() });
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(ChangeBatch { head: log.head(), changes: log.after(revision)?.iter().take(limit).cloned().collect() })
    }

    async fn documents_at(&self, revision: Revision, kinds: KindFilter) -> Result<StoredFleet, StoreError> {
        let StoredFleet { point, mut documents } = self.log().fleet(revision)?;
        documents.retain(|document| kinds.matches(&document.kind));
        Ok(StoredFleet { point, documents })
    }

    async fn writes_of_change(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError> {
        let log = self.log();
        let earlier = Revision(revision.0.saturating_sub(1));
        let change = log.after(earlier)?.first().filter(|change| change.revision == revision);
        let writes = change.into_iter().flat_map(|change| change.writes.iter().skip(from).take(limit));
        writes
            .map(|write| {
                let before = log.document(&write.kind, &write.id, earlier)?.map(|(_, op)| op);
                Ok(WriteAndBefore { write: write.clone(), before: before.filter(|op| *op != Op::Remove) })
            })
            .collect()
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        self.log().document(kind, id, revision)
    }

    async fn change_log_entries(&self, query: &ChangeLogQuery) -> Result<Vec<ChangeLogEntry>, StoreError> {
        let log = self.log();
        let selected = |change: &&Change| {
            let wrote = |write: &model::Write| {
                query.kind.as_ref().is_none_or(|kind| write.kind == *kind)
                    && query.id.as_ref().is_none_or(|id| write.id == *id)
            };
            query.before.is_none_or(|before| change.revision < before)
                && query.after.is_none_or(|after| change.revision > after)
                && query.actor.as_ref().is_none_or(|actor| change.actor == *actor)
                && query.since.is_none_or(|since| change.at >= since)
                && query.until.is_none_or(|until| change.at < until)
                && ((query.kind.is_none() && query.id.is_none()) || change.writes.iter().any(wrote))
        };
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        Ok(log.changes.iter().rev().filter(selected).take(limit).map(entry).collect())
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        let log = self.log();
        let known = log.changes.iter().find(|change| change.revision == revision).map(|change| change.digest);
        Ok(known.or_else(|| log.past.get(&revision).copied()))
    }

    async fn is_overruled(&self, digest: &Digest) -> Result<bool, StoreError> {
        let log = self.log();
        let retained = log.changes.iter().filter_map(|change| change.overrules);
        Ok(retained.chain(log.past_overruled.iter().copied()).any(|overruled| overruled == *digest))
    }

    async fn first_revision_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        Ok(self.log().changes.iter().find(|change| change.at >= time).map(|change| change.revision))
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut log = self.log();
        let horizon = horizon.min(Revision(log.head().revision.0.saturating_sub(1)));
        if horizon <= log.horizon.revision {
            return Ok(None);
        }
        let base = log.documents(horizon)?;
        let changes = log.after(horizon)?.to_vec();
        let mut past = log.past.clone();
        past.extend(log.until(horizon)?.iter().map(|change| (change.revision, change.digest)));
        let mut past_overruled = log.past_overruled.clone();
        past_overruled.extend(log.until(horizon)?.iter().filter_map(|change| change.overrules));
        *log = MemoryLog { horizon: log.point(horizon)?, base, past, past_overruled, changes };
        Ok(Some(horizon))
    }

    async fn restore(
        &self,
        base: StoredFleet,
        changes: &mut RestoreChanges<'_>,
        replace: bool,
    ) -> Result<Point, RestoreError> {
        let mut log = self.log();
        if log.head().revision > Revision::ZERO && !replace {
            return Err(RestoreError::NotEmpty { head: log.head() });
        }
        let documents = base.documents.into_iter().map(|it| ((it.kind.clone(), it.id.clone()), it)).collect();
        let mut restored = MemoryLog { horizon: base.point, base: documents, ..MemoryLog::default() };
        for change in changes {
            let (change, head) = (change?, restored.head());
            if (change.revision, change.parent) != (head.revision.next(), head.digest) {
                return Err(RestoreError::Archive(format!("change {} does not follow {head}", change.revision)));
            }
            restored.changes.push(change);
        }
        *log = restored;
        Ok(log.head())
    }

    async fn wait_for_append(&self) {
        // No other process can write.
        tokio::time::sleep(WAKE_INTERVAL).await;
    }
}

fn entry(change: &Change) -> ChangeLogEntry {
    let writes = change.writes.iter().map(|write| (write.kind.clone(), write.id.clone(), write.op.name().to_owned()));
    let writes = writes.take(LISTED_WRITES).collect();
    ChangeLogEntry { writes, total: change.writes.len(), change: Change { writes: Vec::new(), ..change.clone() } }
}
