//! The documents of a whole fleet, piece by piece: whoever reads them goes on while somebody else understands what was read.
//! All of them at once would take more memory than the fleet.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use model::{Document, Point};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinHandle, block_in_place, spawn_blocking},
};

use crate::{Picture, StoreError};

/// How many documents a piece has.
const PIECE: usize = 64;

/// How many pieces somebody may be ahead.
const AHEAD: usize = 8;

/// Where documents are handed over.
#[derive(Clone, Debug)]
pub struct Pieces(SyncSender<Vec<Document>>);

/// Where documents are handed over, and where they come out. What comes out ends when all of the first are gone.
#[must_use]
pub fn pieces() -> (Pieces, Receiver<Vec<Document>>) {
    let (to, from) = sync_channel(AHEAD);
    (Pieces(to), from)
}

impl Pieces {
    /// Hands documents over as they come, on this thread; says how many there were.
    pub(crate) fn hand_over(
        &self,
        documents: impl Iterator<Item = Result<Document, StoreError>>,
    ) -> Result<usize, StoreError> {
        let (mut count, mut piece) = (0, Vec::with_capacity(PIECE));
        for document in documents {
            piece.push(document?);
            if piece.len() == PIECE {
                count += self.send(std::mem::replace(&mut piece, Vec::with_capacity(PIECE)))?;
            }
        }
        Ok(count + self.send(piece)?)
    }

    fn send(&self, piece: Vec<Document>) -> Result<usize, StoreError> {
        let count = piece.len();
        self.0.send(piece).map_err(|_| StoreError::Unavailable("nobody takes what was read".to_owned()))?;
        Ok(count)
    }
}

/// Does what may wait for a disk, or for somebody who understands what is read, where it is in nobody's way: whatever else
/// this thread would do, another one does meanwhile.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        _ => work(),
    }
}

/// Puts pieces together.
pub(crate) struct Collection(JoinHandle<Vec<Document>>);

impl Collection {
    pub(crate) fn begin() -> (Pieces, Self) {
        let (to, from) = pieces();
        (to, Self(spawn_blocking(move || from.into_iter().flatten().collect())))
    }

    /// The same of documents that are kept for a while: they are packed as they come.
    pub(crate) fn begin_packed() -> (Pieces, Self) {
        let (to, from) = pieces();
        let packed = move || from.into_iter().flatten().map(|document| document.packed()).collect();
        (to, Self(spawn_blocking(packed)))
    }

    /// What there is when everything was handed over.
    pub(crate) async fn picture(self, point: Point) -> Result<Picture, StoreError> {
        let mut documents = self.0.await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        // Here and not in the database, whose idea of order depends on its settings.
        documents.sort_unstable_by(|one, other| (&one.kind, &one.id).cmp(&(&other.kind, &other.id)));
        Ok(Picture { point, documents })
    }
}
