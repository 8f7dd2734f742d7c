//! Rows to words and back. What does not read as what was written is damage.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{Body, Change, Digest, Document, Epoch, Id, Kind, Op, Point, Revision, Write};

use super::{Query, Row, column};
use crate::{Ends, StoreError, WriteAndBefore};

/// A write on its way into the database.
pub(super) struct WriteRow<'a> {
    pub(super) revision: i64,
    /// The place within the change.
    pub(super) position: i64,
    pub(super) kind: &'a str,
    pub(super) id: &'a str,
    pub(super) op: &'static str,
    pub(super) body: Option<Cow<'a, str>>,
    pub(super) checksum: i64,
}

impl<'a> WriteRow<'a> {
    /// The row of a write that stands at this revision and position.
    pub(super) fn of(write: &'a Write, revision: Revision, position: usize) -> Self {
        let body = write.op.body().map(Body::text);
        Self {
            revision: number(revision.0),
            position: number(position as u64),
            kind: write.kind.as_str(),
            id: write.id.as_str(),
            op: write.op.name(),
            checksum: checksum(&write.kind, &write.id, body.as_deref()),
            body,
        }
    }
}

/// Gives a query the columns of a change, without its revision, in the order of the table.
pub(super) fn bind_change<'q>(query: Query<'q>, change: &'q Change) -> Query<'q> {
    query
        .bind(number(change.epoch.0))
        .bind(change.overrules.as_ref().map(Digest::as_bytes))
        .bind(change.parent.as_bytes())
        .bind(change.digest.as_bytes())
        .bind(change.at.as_microsecond())
        .bind(&change.actor)
        .bind(&change.reason)
        .bind(&change.request_id)
}

/// Of a write, and of the document that it left behind.
fn checksum(kind: &Kind, id: &Id, body: Option<&str>) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [kind.as_str(), id.as_str(), body.unwrap_or_default()] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    i64::from(hasher.finalize())
}

/// The integers of databases are signed; a log of more than 2^63 changes will not be written.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(row: &Row, name: &str) -> Result<u64, StoreError> {
    let number: i64 = column(row, name)?;
    u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("{name}: {number} is below zero")))
}

pub(super) fn revision(row: &Row, name: &str) -> Result<Revision, StoreError> {
    count(row, name).map(Revision)
}

pub(super) fn digest(row: &Row, name: &str) -> Result<Digest, StoreError> {
    column::<&[u8]>(row, name)?.try_into().map_err(|error| StoreError::Corrupt(format!("{name}: {error}")))
}

/// Where the log begins and ends.
pub(super) fn ends(row: &Row) -> Result<Ends, StoreError> {
    Ok(Ends {
        horizon: point(row, ["horizon", "horizon_epoch", "horizon_digest"])?,
        head: point(row, ["head", "epoch", "digest"])?,
    })
}

/// A point of the log, from its columns.
fn point(row: &Row, [at, epoch, led]: [&str; 3]) -> Result<Point, StoreError> {
    let store: &str = column(row, "store")?;
    Ok(Point {
        store: store.parse().map_err(|error| StoreError::Corrupt(format!("\"{store}\": {error}")))?,
        epoch: Epoch(count(row, epoch)?),
        revision: revision(row, at)?,
        digest: digest(row, led)?,
    })
}

pub(super) fn write(row: &Row) -> Result<Write, StoreError> {
    let (kind, id): (&str, &str) = (column(row, "kind")?, column(row, "id")?);
    checked(Kind::from(kind), id, column(row, "op")?, column(row, "body")?, column(row, "checksum")?)
}

/// A write, and what the document was before it, in columns of other names.
pub(super) fn write_and_before(row: &Row) -> Result<WriteAndBefore, StoreError> {
    let write = write(row)?;
    let before = match column::<Option<&str>>(row, "before_op")? {
        None => None,
        Some(op) => {
            let (body, sum) = (column(row, "before_body")?, column(row, "before_checksum")?);
            Some(checked(write.kind.clone(), write.id.as_str(), op, body, sum)?.op).filter(|op| *op != Op::Remove)
        }
    };
    Ok(WriteAndBefore { write, before })
}

/// A write whose checksum agrees with it.
pub(super) fn checked(kind: Kind, id: &str, op: &str, body: Option<&str>, sum: i64) -> Result<Write, StoreError> {
    let id = parsed(&kind, id)?;
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

fn parsed(kind: &Kind, id: &str) -> Result<Id, StoreError> {
    Id::parse(id).map_err(|error| StoreError::Corrupt(format!("{kind} \"{id}\": {error}")))
}

/// What a write has left behind.
pub(super) fn left(write: &Write, revision: Revision) -> Result<Document, StoreError> {
    let removed = || StoreError::Corrupt(format!("{} \"{}\" is there and removed", write.kind, write.id));
    write.document(revision).ok_or_else(removed)
}

/// A change, without its writes.
pub(super) fn change(row: &Row) -> Result<Change, StoreError> {
    Ok(Change {
        revision: revision(row, "revision")?,
        epoch: Epoch(count(row, "epoch")?),
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

/// What the audit trail says of a write.
pub(super) fn touched(row: &Row) -> Result<(Kind, Id, String), StoreError> {
    let kind = Kind::from(column::<&str>(row, "kind")?);
    let id = parsed(&kind, column(row, "id")?)?;
    Ok((kind, id, column(row, "op")?))
}
