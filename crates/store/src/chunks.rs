//! Hands the documents of a whole fleet from the thread that reads them to the one that parses them, in chunks.
//! All of them at once would take more memory than the fleet.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use model::{Document, Point};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinHandle, block_in_place, spawn_blocking},
};

use crate::{StoreError, StoredFleet};

/// How many documents a chunk has.
const CHUNK_LEN: usize = 64;

/// How many chunks the channel holds before the sender waits for the receiver.
const CAPACITY: usize = 8;

/// The sending half of a channel of documents.
#[derive(Clone, Debug)]
pub struct DocumentSender(SyncSender<Vec<Document>>);

/// A channel of document chunks. The receiver ends when all senders are dropped.
#[must_use]
pub fn document_channel() -> (DocumentSender, Receiver<Vec<Document>>) {
    let (sender, receiver) = sync_channel(CAPACITY);
    (DocumentSender(sender), receiver)
}

impl DocumentSender {
    /// Sends documents as they are read, on this thread; returns how many there were.
    pub(crate) fn send_all(
        &self,
        documents: impl Iterator<Item = Result<Document, StoreError>>,
    ) -> Result<usize, StoreError> {
        let (mut count, mut chunk) = (0, Vec::with_capacity(CHUNK_LEN));
        for document in documents {
            chunk.push(document?);
            if chunk.len() == CHUNK_LEN {
                count += self.send(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK_LEN)))?;
            }
        }
        Ok(count + self.send(chunk)?)
    }

    fn send(&self, chunk: Vec<Document>) -> Result<usize, StoreError> {
        let count = chunk.len();
        let closed = |_| StoreError::Unavailable("the receiver of the documents has stopped".to_owned());
        self.0.send(chunk).map_err(closed)?;
        Ok(count)
    }
}

/// Runs work that may wait for a disk or for the receiver of a channel. On a multi-threaded runtime, the other tasks of this
/// thread move to another thread meanwhile.
pub(crate) fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// Collects the chunks of a channel on a thread of its own.
pub(crate) struct DocumentCollector(JoinHandle<Vec<Document>>);

impl DocumentCollector {
    pub(crate) fn start() -> (DocumentSender, Self) {
        let (sender, receiver) = document_channel();
        (sender, Self(spawn_blocking(move || receiver.into_iter().flatten().collect())))
    }

    /// The same for documents that stay in memory for a while: they are compressed as they come.
    pub(crate) fn start_packed() -> (DocumentSender, Self) {
        let (sender, receiver) = document_channel();
        let packed = move || receiver.into_iter().flatten().map(|document| document.packed()).collect();
        (sender, Self(spawn_blocking(packed)))
    }

    /// Waits until all senders are dropped, and returns the fleet at this point.
    pub(crate) async fn finish(self, point: Point) -> Result<StoredFleet, StoreError> {
        let mut documents = self.0.await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        // Here and not in the database, whose collation depends on its settings.
        documents.sort_unstable_by(|one, other| (&one.kind, &one.id).cmp(&(&other.kind, &other.id)));
        Ok(StoredFleet { point, documents })
    }
}
