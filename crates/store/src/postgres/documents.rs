//! Reads the documents of a whole fleet: some are parsed while the next ones come over the network.

use futures_util::StreamExt as _;
use model::Document;

use super::{Connection, Query, Row, rows};
use crate::{
    StoreError,
    chunks::{DocumentSender, run_blocking},
};

/// How many rows are decoded at once.
const BATCH: usize = 64;

/// Sends the documents that a query finds, in no order; returns how many there are.
pub(super) async fn read(
    found: Query<'_>,
    connection: &mut Connection,
    to: &DocumentSender,
) -> Result<usize, StoreError> {
    let mut batches = found.fetch(connection).ready_chunks(BATCH);
    let mut count = 0;
    while let Some(batch) = batches.next().await {
        let documents = batch.into_iter().map(|row| document(&row?));
        count += run_blocking(|| to.send_all(documents))?;
    }
    Ok(count)
}

fn document(row: &Row) -> Result<Document, StoreError> {
    rows::document_of(&rows::write(row)?, rows::revision(row, "revision")?)
}
