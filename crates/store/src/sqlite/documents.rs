//! The documents of a whole fleet, as they are found. A start waits for these, so they are read where SQLite has them.

use std::iter;

use model::{Document, Kind, Revision};
use rusqlite::{Row, types::FromSqlError};

use super::{Connection, Query, rows};
use crate::{
    StoreError,
    pieces::{Pieces, aside},
};

/// Hands over the documents that a query finds, in no order; says how many there are.
pub(super) async fn read(found: Query<'_>, connection: &mut Connection, to: &Pieces) -> Result<usize, StoreError> {
    let connection = &*connection;
    aside(|| {
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
        to.hand_over(iter::from_fn(|| match found.next() {
            Ok(row) => row.map(|row| columns.document(row, &mut kind)),
            Err(error) => Some(Err(error.into())),
        }))
    })
}

/// Where the columns of a row are.
struct Columns {
    kind: usize,
    id: usize,
    revision: usize,
    op: usize,
    body: usize,
    checksum: usize,
}

impl Columns {
    /// The document of a row; most are of the same kind as the one before.
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
        let below = |_| StoreError::Corrupt(format!("revision: {revision} is below zero"));
        let write = rows::checked(last.clone(), id, op, body, checksum)?;
        rows::left(&write, Revision(u64::try_from(revision).map_err(below)?))
    }
}
