//! The documents of a whole fleet, as a start reads them: one thread goes through the rows, and all cores understand them.
//! The rows of a whole fleet would take more memory than the fleet, so they are let go as they are understood.

use std::{
    mem,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use model::Document;

use super::{Connection, Query, Row, aside, rows};
use crate::StoreError;

/// How many rows are handed over at once, and how often somebody may be ahead.
const BATCH: usize = 64;
const AHEAD: usize = 4;

/// Reads the documents that a query finds, in no order.
pub(super) async fn read(found: Query<'_>, connection: &mut Connection) -> Result<Vec<Document>, StoreError> {
    let connection = &*connection;
    aside(|| {
        let (send, batches) = sync_channel(AHEAD);
        let batches = Mutex::new(batches);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..cores).map(|_| scope.spawn(|| understand(&batches))).collect();
            let rows = hand_over(found, connection, send);
            let mut documents = Vec::new();
            for reader in readers {
                match reader.join() {
                    Ok(read) => documents.extend(read?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            rows.map(|()| documents)
        })
    })
}

/// Goes through the rows.
fn hand_over(found: Query<'_>, connection: &Connection, to: SyncSender<Vec<Row>>) -> Result<(), StoreError> {
    let gone = || StoreError::Unavailable("nobody reads its rows any more".to_owned());
    let mut batch = Vec::with_capacity(BATCH);
    found.each(connection, |row| {
        batch.push(row);
        if batch.len() < BATCH {
            return Ok(());
        }
        to.send(mem::replace(&mut batch, Vec::with_capacity(BATCH))).map_err(|_| gone())
    })?;
    to.send(batch).map_err(|_| gone())
}

/// What is damaged is told when all rows have come by, so that nobody is left waiting to hand some over.
fn understand(batches: &Mutex<Receiver<Vec<Row>>>) -> Result<Vec<Document>, StoreError> {
    let mut read = Ok(Vec::new());
    let next = || batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(batch) = next() {
        read = read.and_then(|mut documents: Vec<_>| {
            for row in &batch {
                documents.push(rows::document(row)?);
            }
            Ok(documents)
        });
    }
    read
}
