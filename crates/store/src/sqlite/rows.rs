//! Rows to words and back. What does not read as what was written is damage.

use jiff::Timestamp;
use model::{Body, Change, Document, Id, Kind, Op, Revision, Write};
use sqlx::{Row as _, Sqlite, sqlite::SqliteRow};

use crate::StoreError;

pub(super) fn checksum(kind: &Kind, id: &Id, body: Option<&str>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [kind.as_str(), id.as_str(), body.unwrap_or_default()] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

/// SQLite's integers are signed; a log of more than 2^63 changes will not be written.
pub(super) fn number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

pub(super) fn column<'r, T>(row: &'r SqliteRow, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
{
    row.try_get(name).map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn revision(row: &SqliteRow, name: &str) -> Result<Revision, StoreError> {
    let number: i64 = column(row, name)?;
    u64::try_from(number).map(Revision).map_err(|_| StoreError::Corrupt(format!("{number} is not a revision")))
}

/// The kind and the id of a row.
fn key(row: &SqliteRow) -> Result<(Kind, Id), StoreError> {
    let (kind, id): (&str, &str) = (column(row, "kind")?, column(row, "id")?);
    let id = Id::parse(id).map_err(|error| StoreError::Corrupt(format!("{kind} \"{id}\": {error}")))?;
    Ok((Kind::from(kind), id))
}

/// A write whose checksum agrees with it.
pub(super) fn write(row: &SqliteRow) -> Result<Write, StoreError> {
    let (kind, id) = key(row)?;
    let body: Option<&str> = column(row, "body")?;
    if checksum(&kind, &id, body) != column::<u32>(row, "checksum")? {
        return Err(StoreError::Corrupt(format!("{kind} \"{id}\": its checksum does not agree with its content")));
    }
    let op = match (column::<&str>(row, "op")?, body.map(Body::from_text)) {
        ("put", Some(body)) => Op::Put(body),
        ("retire", Some(body)) => Op::Retire(body),
        ("remove", None) => Op::Remove,
        (other, _) => return Err(StoreError::Corrupt(format!("\"{other}\" is not a write of {kind} \"{id}\""))),
    };
    Ok(Write { kind, id, op })
}

pub(super) fn document(row: &SqliteRow) -> Result<Document, StoreError> {
    let write = write(row)?;
    let removed = || StoreError::Corrupt(format!("{} \"{}\" is there and removed", write.kind, write.id));
    write.document(revision(row, "revision")?).ok_or_else(removed)
}

/// A change, without its writes.
pub(super) fn change(row: &SqliteRow) -> Result<Change, StoreError> {
    Ok(Change {
        revision: revision(row, "revision")?,
        at: Timestamp::from_microsecond(column(row, "at")?).map_err(|error| StoreError::Corrupt(error.to_string()))?,
        actor: column(row, "actor")?,
        reason: column(row, "reason")?,
        request_id: column(row, "request_id")?,
        writes: Vec::new(),
    })
}

/// What the audit trail says of a write.
pub(super) fn touched(row: &SqliteRow) -> Result<(Kind, Id, String), StoreError> {
    let (kind, id) = key(row)?;
    Ok((kind, id, column(row, "op")?))
}
