//! The documents of a whole fleet: some are understood while the next ones come over the network.

use futures_util::StreamExt as _;
use model::Document;

use super::{Connection, Query, Row, rows};
use crate::{
    StoreError,
    pieces::{Pieces, aside},
};

/// How many rows are understood at once.
const BATCH: usize = 64;

/// Hands over the documents that a query finds, in no order; says how many there are.
pub(super) async fn read(found: Query<'_>, connection: &mut Connection, to: &Pieces) -> Result<usize, StoreError> {
    let mut batches = found.fetch(connection).ready_chunks(BATCH);
    let mut count = 0;
    while let Some(batch) = batches.next().await {
        let documents = batch.into_iter().map(|row| document(&row?));
        count += aside(|| to.hand_over(documents))?;
    }
    Ok(count)
}

fn document(row: &Row) -> Result<Document, StoreError> {
    rows::left(&rows::write(row)?, rows::revision(row, "revision")?)
}
