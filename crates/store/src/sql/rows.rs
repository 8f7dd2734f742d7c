//! Converts rows to the model's types and back. A row that cannot be decoded, or whose checksum differs, is damage.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{Body, Change, Digest, Document, Epoch, Id, Kind, Op, Point, Revision, Write};

use super::{Query, Row, column};
use crate::{LogBounds, StoreError, WriteAndBefore};

/// A write on its way into the database.
pub(super) struct WriteRow<'a> {
    pub(super) revision: i64,
    /// The position within the change.
    pub(super) position: i64,
    pub(super) kind: &'a str,
    pub(super) id: &'a str,
    pub(super) op: &'static str,
    pub(super) body: Option<Cow<'a, str>>,
    pub(super) checksum: i64,
}

impl<'a> WriteRow<'a> {
    /// The row of a write at this revision and position.
    pub(super) fn new(write: &'a Write, revision: Revision, position: usize) -> Self {
        let body = write.op.body().map(Body::text);
        Self {
            revision: to_i64(revision.0),
            position: to_i64(position as u64),
            kind: write.kind.as_str(),
            id: write.id.as_str(),
            op: write.op.name(),
            checksum: checksum(&write.kind, &write.id, body.as_deref()),
            body,
        }
    }
}

/// Binds the columns of a change, without its revision, in the order of the table.
pub(super) fn bind_change<'q>(query: Query<'q>, change: &'q Change) -> Query<'q> {
    query
        .bind(to_i64(change.epoch.0))
        .bind(change.overrules.as_ref().map(Digest::as_bytes))
        .bind(change.parent.as_bytes())
        .bind(change.digest.as_bytes())
        .bind(change.at.as_microsecond())
        .bind(&change.actor)
        .bind(&change.reason)
        .bind(&change.request_id)
}

/// The checksum of a write, which is also that of the document it leaves.
fn checksum(kind: &Kind, id: &Id, body: Option<&str>) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [kind.as_str(), id.as_str(), body.unwrap_or_default()] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    i64::from(hasher.finalize())
}

/// Databases have signed integers; no log reaches 2^63 changes.
pub(super) fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, name: &str) -> Result<u64, StoreError> {
    let number: i64 = column(row, name)?;
    u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("{name}: {number} is below zero")))
}

pub(super) fn revision(row: &Row, name: &str) -> Result<Revision, StoreError> {
    unsigned(row, name).map(Revision)
}

pub(super) fn digest(row: &Row, name: &str) -> Result<Digest, StoreError> {
    column::<&[u8]>(row, name)?.try_into().map_err(|error| StoreError::Corrupt(format!("{name}: {error}")))
}

/// The bounds of the log.
pub(super) fn bounds(row: &Row) -> Result<LogBounds, StoreError> {
    Ok(LogBounds {
        horizon: point(row, ["horizon", "horizon_epoch", "horizon_digest"])?,
        head: point(row, ["head", "epoch", "digest"])?,
    })
}

/// A point of the log, from the columns of its revision, epoch and digest.
fn point(row: &Row, [at, epoch, digest_column]: [&str; 3]) -> Result<Point, StoreError> {
    let store: &str = column(row, "store")?;
    Ok(Point {
        store: store.parse().map_err(|error| StoreError::Corrupt(format!("\"{store}\": {error}")))?,
        epoch: Epoch(unsigned(row, epoch)?),
        revision: revision(row, at)?,
        digest: digest(row, digest_column)?,
    })
}

pub(super) fn write(row: &Row) -> Result<Write, StoreError> {
    let (kind, id): (&str, &str) = (column(row, "kind")?, column(row, "id")?);
    verified_write(Kind::from(kind), id, column(row, "op")?, column(row, "body")?, column(row, "checksum")?)
}

/// A write and the document before it, from the columns `before_…`.
pub(super) fn write_and_before(row: &Row) -> Result<WriteAndBefore, StoreError> {
    let write = write(row)?;
    let before = match column::<Option<&str>>(row, "before_op")? {
        None => None,
        Some(op) => {
            let (body, sum) = (column(row, "before_body")?, column(row, "before_checksum")?);
            Some(verified_write(write.kind.clone(), write.id.as_str(), op, body, sum)?.op)
                .filter(|op| *op != Op::Remove)
        }
    };
    Ok(WriteAndBefore { write, before })
}

/// A write, if its checksum is that of its content.
pub(super) fn verified_write(
    kind: Kind,
    id: &str,
    op: &str,
    body: Option<&str>,
    sum: i64,
) -> Result<Write, StoreError> {
    let id = parse_id(&kind, id)?;
    if checksum(&kind, &id, body) != sum {
        return Err(StoreError::Corrupt(format!("{kind} \"{id}\": its checksum does not agree with its content")));
    }
    let op = match (op, body.map(Body::plain)) {
        ("put", Some(body)) => Op::Put(body),
        ("retire", Some(body)) => Op::Retire(body),
        ("remove", None) => Op::Remove,
        (other, _) => return Err(StoreError::Corrupt(format!("\"{other}\" is not a write of {kind} \"{id}\""))),
    };
    Ok(Write { kind, id, op })
}

fn parse_id(kind: &Kind, id: &str) -> Result<Id, StoreError> {
    Id::parse(id).map_err(|error| StoreError::Corrupt(format!("{kind} \"{id}\": {error}")))
}

/// The document that a write leaves.
pub(super) fn document_of(write: &Write, revision: Revision) -> Result<Document, StoreError> {
    let removed = || StoreError::Corrupt(format!("{} \"{}\" is listed, but was removed", write.kind, write.id));
    write.document(revision).ok_or_else(removed)
}

/// A change, without its writes.
pub(super) fn change(row: &Row) -> Result<Change, StoreError> {
    Ok(Change {
        revision: revision(row, "revision")?,
        epoch: Epoch(unsigned(row, "epoch")?),
        overrules: match column::<Option<&[u8]>>(row, "overrules")? {
            Some(_) => Some(digest(row, "overrules")?),
            None => None,
        },
        parent: digest(row, "parent")?,
        digest: digest(row, "digest")?,
        at: Timestamp::from_microsecond(column(row, "at")?).map_err(|error| StoreError::Corrupt(error.to_string()))?,
        actor: column(row, "actor")?,
        reason: column(row, "reason")?,
        request_id: column(row, "request_id")?,
        writes: Vec::new(),
    })
}

/// A write as the audit trail lists it.
pub(super) fn listed_write(row: &Row) -> Result<(Kind, Id, String), StoreError> {
    let kind = Kind::from(column::<&str>(row, "kind")?);
    let id = parse_id(&kind, column(row, "id")?)?;
    Ok((kind, id, column(row, "op")?))
}
