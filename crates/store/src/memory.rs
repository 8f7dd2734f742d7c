//! A log that lives as long as the process, for tests and tries.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use model::{Change, Document, Id, Kind, Op, Revision, State};
use tokio::sync::Notify;

use crate::{AppendError, PATIENCE, Picture, Store, StoreError, Tail};

/// The log in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    log: Mutex<Log>,
    appended: Notify,
}

#[derive(Debug, Default)]
struct Log {
    changes: Vec<Change>,
    documents: BTreeMap<(Kind, Id), Document>,
}

impl Log {
    fn head(&self) -> Revision {
        self.changes.last().map_or(Revision::ZERO, |change| change.revision)
    }

    fn apply(&mut self, change: &Change) {
        for write in &change.writes {
            let key = (write.kind.clone(), write.id.clone());
            match &write.op {
                Op::Put(body) => {
                    let document = Document {
                        kind: write.kind.clone(),
                        id: write.id.clone(),
                        revision: change.revision,
                        state: State::Live,
                        body: body.clone(),
                    };
                    self.documents.insert(key, document);
                }
                Op::Retire => {
                    if let Some(document) = self.documents.get_mut(&key) {
                        document.state = State::Retired;
                        document.revision = change.revision;
                    }
                }
                Op::Remove => {
                    self.documents.remove(&key);
                }
            }
        }
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
    async fn load(&self) -> Result<Picture, StoreError> {
        let log = self.log();
        Ok(Picture { revision: log.head(), documents: log.documents.values().cloned().collect() })
    }

    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        let mut log = self.log();
        let head = log.head();
        if change.revision != head.next() {
            return Err(AppendError::Conflict { head });
        }
        log.apply(change);
        log.changes.push(change.clone());
        drop(log);
        self.appended.notify_one();
        Ok(())
    }

    async fn changes_after(&self, revision: Revision, limit: u32) -> Result<Tail, StoreError> {
        let log = self.log();
        // Revisions count from one without a gap, so a revision is also a position.
        let from = usize::try_from(revision.0).unwrap_or(usize::MAX).min(log.changes.len());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Tail { head: log.head(), changes: log.changes[from..].iter().take(limit).cloned().collect() })
    }

    async fn wake(&self) {
        // Running out of patience is one of the ways to return.
        let _ = tokio::time::timeout(PATIENCE, self.appended.notified()).await;
    }
}
