//! A log that lives as long as the process, for tests and tries.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use jiff::Timestamp;
use model::{Change, Digest, Document, Id, Kind, Op, Point, ResourceType, Revision};

use crate::{
    AppendError, Changes, Ends, Entry, EntryQuery, Kinds, LISTED, PATIENCE, Picture, Pieces, RestoreError, Store,
    StoreError, Tail, WriteAndBefore, pieces::aside,
};

/// The log in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    log: Mutex<Log>,
}

type Documents = BTreeMap<(Kind, Id), Document>;

#[derive(Debug)]
struct Log {
    /// The last change that was pruned, and the picture at it.
    horizon: Point,
    base: Documents,
    /// The digests of what is forgotten, and what it overruled.
    past: BTreeMap<Revision, Digest>,
    words: Vec<Digest>,
    /// What came after the horizon.
    changes: Vec<Change>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            horizon: Point::beginning(crate::name()),
            base: Documents::new(),
            past: BTreeMap::new(),
            words: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl Log {
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

    fn picture(&self, revision: Revision) -> Result<Picture, StoreError> {
        Ok(Picture { point: self.point(revision)?, documents: self.documents(revision)?.into_values().collect() })
    }
}

impl MemoryStore {
    fn log(&self) -> MutexGuard<'_, Log> {
        // Nothing panics between two states of the log.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn read(&self, to: Pieces) -> Result<Point, StoreError> {
        let Picture { point, documents } = {
            let log = self.log();
            log.picture(log.head().revision)?
        };
        let (clusters, others): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|document| document.kind.as_str() == ResourceType::CLUSTER);
        aside(|| to.hand_over(others.into_iter().chain(clusters).map(Ok)))?;
        Ok(point)
    }

    async fn ends(&self) -> Result<Ends, StoreError> {
        let log = self.log();
        Ok(Ends { horizon: log.horizon, head: log.head() })
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

    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<Tail, StoreError> {
        let log = self.log();
        if log.head().revision <= revision {
            return Ok(Tail { head: log.head(), changes: Vec::new() });
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Tail { head: log.head(), changes: log.after(revision)?.iter().take(limit).cloned().collect() })
    }

    async fn documents_at(&self, revision: Revision, kinds: Kinds) -> Result<Picture, StoreError> {
        let Picture { point, mut documents } = self.log().picture(revision)?;
        documents.retain(|document| kinds.contain(&document.kind));
        Ok(Picture { point, documents })
    }

    async fn writes_of(
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

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
        let log = self.log();
        let asked = |change: &&Change| {
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
        Ok(log.changes.iter().rev().filter(asked).take(limit).map(entry).collect())
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        let log = self.log();
        let known = log.changes.iter().find(|change| change.revision == revision).map(|change| change.digest);
        Ok(known.or_else(|| log.past.get(&revision).copied()))
    }

    async fn overrules(&self, point: &Digest) -> Result<bool, StoreError> {
        let log = self.log();
        let words = log.changes.iter().filter_map(|change| change.overrules).chain(log.words.iter().copied());
        Ok(words.into_iter().any(|overruled| overruled == *point))
    }

    async fn first_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        Ok(self.log().changes.iter().find(|change| change.at >= time).map(|change| change.revision))
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut log = self.log();
        let horizon = horizon.min(Revision(log.head().revision.0.saturating_sub(1)));
        if horizon <= log.horizon.revision {
            return Ok(None);
        }
        let base = log.documents(horizon)?;
        let kept = log.after(horizon)?.to_vec();
        let mut past = log.past.clone();
        past.extend(log.until(horizon)?.iter().map(|change| (change.revision, change.digest)));
        let mut words = log.words.clone();
        words.extend(log.until(horizon)?.iter().filter_map(|change| change.overrules));
        *log = Log { horizon: log.point(horizon)?, base, past, words, changes: kept };
        Ok(Some(horizon))
    }

    async fn restore(&self, base: Picture, changes: &mut Changes<'_>, replace: bool) -> Result<Point, RestoreError> {
        let mut log = self.log();
        if log.head().revision > Revision::ZERO && !replace {
            return Err(RestoreError::NotEmpty { head: log.head() });
        }
        let documents = base.documents.into_iter().map(|it| ((it.kind.clone(), it.id.clone()), it)).collect();
        let mut restored =
            Log { horizon: base.point, base: documents, past: BTreeMap::new(), words: Vec::new(), changes: Vec::new() };
        for change in changes {
            let (change, head) = (change?, restored.head());
            if (change.revision, change.parent) != (head.revision.next(), head.digest) {
                return Err(RestoreError::Archive(format!("change {} does not follow on {head}", change.revision)));
            }
            restored.changes.push(change);
        }
        *log = restored;
        Ok(log.head())
    }

    async fn wake(&self) {
        // Nobody else can write.
        tokio::time::sleep(PATIENCE).await;
    }
}

fn entry(change: &Change) -> Entry {
    let writes = change.writes.iter().map(|write| (write.kind.clone(), write.id.clone(), write.op.name().to_owned()));
    let writes = writes.take(LISTED).collect();
    Entry { writes, total: change.writes.len(), change: Change { writes: Vec::new(), ..change.clone() } }
}
