//! The documents of a whole fleet: some are understood while the next ones come over the network.

use futures_util::TryStreamExt as _;
use model::Document;
use tokio::task::{JoinError, spawn_blocking};

use super::{Connection, Query, rows};
use crate::StoreError;

/// How many rows are understood at once.
const BATCH: usize = 64;

/// Reads the documents that a query finds, in no order. The rows of a whole fleet would take more memory than the fleet.
pub(super) async fn read(found: Query<'_>, connection: &mut Connection) -> Result<Vec<Document>, StoreError> {
    let mut found = found.fetch(connection);
    let mut documents = Vec::new();
    let mut last = None;
    while let Some(first) = found.try_next().await? {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Some(row) = found.try_next().await?
        {
            batch.push(row);
        }
        let next = spawn_blocking(move || batch.iter().map(rows::document).collect::<Result<Vec<_>, _>>());
        if let Some(last) = last.replace(next) {
            documents.extend(done(last.await)??);
        }
    }
    if let Some(last) = last {
        documents.extend(done(last.await)??);
    }
    Ok(documents)
}

fn done<T>(task: Result<T, JoinError>) -> Result<T, StoreError> {
    task.map_err(|error| StoreError::Unavailable(error.to_string()))
}
