//! Reads the documents of a whole fleet. A start waits for them, so columns are read in place, without a copy of each row.

use std::iter;

use model::{Document, Kind, Revision};
use rusqlite::{Row, types::FromSqlError};

use super::{Connection, Query, rows};
use crate::{
    StoreError,
    chunks::{DocumentSender, run_blocking},
};

/// Sends the documents that a query finds, in no order; returns how many there are.
pub(super) async fn read(
    found: Query<'_>,
    connection: &mut Connection,
    to: &DocumentSender,
) -> Result<usize, StoreError> {
    let connection = &*connection;
    run_blocking(|| {
        let mut statement = found.prepared(connection)?;
        let columns = Columns {
            kind: statement.column_index("kind")?,
            id: statement.column_index("id")?,
            revision: statement.column_index("revision")?,
            op: statement.column_index("op")?,
            body: statement.column_index("body")?,
            checksum: statement.column_index("checksum")?,
        };
        let mut found = statement.raw_query();
        let mut kind = Kind::from("");
        to.send_all(iter::from_fn(|| match found.next() {
            Ok(row) => row.map(|row| columns.document(row, &mut kind)),
            Err(error) => Some(Err(error.into())),
        }))
    })
}

/// The indexes of the columns.
struct Columns {
    kind: usize,
    id: usize,
    revision: usize,
    op: usize,
    body: usize,
    checksum: usize,
}

impl Columns {
    /// The document of a row. Most are of the same kind as the row before, so that kind is shared.
    fn document(&self, row: &Row<'_>, last: &mut Kind) -> Result<Document, StoreError> {
        let wrong = |error: FromSqlError| StoreError::Corrupt(error.to_string());
        let kind = row.get_ref(self.kind)?.as_str().map_err(wrong)?;
        if last.as_str() != kind {
            *last = Kind::from(kind);
        }
        let id = row.get_ref(self.id)?.as_str().map_err(wrong)?;
        let op = row.get_ref(self.op)?.as_str().map_err(wrong)?;
        let body = row.get_ref(self.body)?.as_str_or_null().map_err(wrong)?;
        let checksum = row.get_ref(self.checksum)?.as_i64().map_err(wrong)?;
        let revision = row.get_ref(self.revision)?.as_i64().map_err(wrong)?;
        let negative = |_| StoreError::Corrupt(format!("revision: {revision} is below zero"));
        let write = rows::verified_write(last.clone(), id, op, body, checksum)?;
        rows::document_of(&write, Revision(u64::try_from(revision).map_err(negative)?))
    }
}
