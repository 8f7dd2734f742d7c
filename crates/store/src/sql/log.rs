//! The statements that all databases share: reading the change log, pruning its beginning, and restoring a whole one.
//!
//! This file is compiled once for each database: `super` defines what a connection, a row and a query are there. A trait
//! over the two drivers would need as many lines again for their parameters and rows.

use std::slice;

use jiff::Timestamp;
use model::{Change, Digest, Id, Kind, Op, Point, ResourceType, Revision, Write};
use tokio::task::spawn_blocking;

use super::{Connection, append, column, documents, query, rows};
use crate::{
    ChangeBatch, ChangeLogEntry, ChangeLogQuery, KindFilter, LISTED_WRITES, LogBounds, RestoreChanges, RestoreError,
    StoreError, StoredFleet, WriteAndBefore,
    chunks::{DocumentCollector, DocumentSender},
};

/// The one row with the bounds of the log.
pub(super) const SELECT_LOG: &str = "SELECT * FROM fleet_log";

async fn log_row(connection: &mut Connection) -> Result<super::Row, StoreError> {
    let row = query(SELECT_LOG).fetch_optional(connection).await?;
    row.ok_or_else(|| StoreError::Unavailable("its change log has not been created yet".to_owned()))
}

pub(super) async fn bounds(connection: &mut Connection) -> Result<LogBounds, StoreError> {
    rows::bounds(&log_row(connection).await?)
}

/// Fails if changes after a revision were pruned.
fn ensure_retained(bounds: &LogBounds, revision: Revision) -> Result<(), StoreError> {
    let horizon = bounds.horizon.revision;
    if revision < horizon { Err(StoreError::Pruned { horizon }) } else { Ok(()) }
}

pub(super) async fn read_documents(connection: &mut Connection, to: &DocumentSender) -> Result<Point, StoreError> {
    let log = log_row(connection).await?;
    let mut found = 0;
    for select in [
        query("SELECT * FROM fleet_documents WHERE kind <> $1"),
        query("SELECT * FROM fleet_documents WHERE kind = $1"),
    ] {
        found += documents::read(select.bind(ResourceType::CLUSTER), connection, to).await?;
    }
    let (found, recorded) = (rows::to_i64(found as u64), column::<i64>(&log, "documents")?);
    if found != recorded {
        return Err(StoreError::Corrupt(format!("it has {found} documents, but its last change recorded {recorded}")));
    }
    Ok(rows::bounds(&log)?.head)
}

/// Decodes many rows on a blocking thread, so that they do not delay polls.
async fn decode_on_blocking_thread<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(read).await.map_err(|error| StoreError::Unavailable(error.to_string()))?
}

pub(super) async fn changes_after(
    connection: &mut Connection,
    after: Revision,
    limit: u32,
) -> Result<ChangeBatch, StoreError> {
    let bounds = bounds(connection).await?;
    let head = bounds.head;
    if head.revision <= after {
        return Ok(ChangeBatch { head, changes: Vec::new() });
    }
    ensure_retained(&bounds, after)?;
    let until = Revision(after.0.saturating_add(u64::from(limit))).min(head.revision);
    let in_range = |text| query(text).bind(rows::to_i64(after.0)).bind(rows::to_i64(until.0));
    let found = in_range("SELECT * FROM fleet_changes WHERE revision > $1 AND revision <= $2 ORDER BY revision")
        .fetch_all(&mut *connection)
        .await?;
    let changes = found.iter().map(rows::change).collect::<Result<Vec<_>, _>>()?;
    if !changes.iter().map(|change| change.revision.0).eq(after.0 + 1..=until.0) {
        return Err(StoreError::Corrupt(format!("the log has a gap after revision {after}")));
    }
    let text = "SELECT * FROM fleet_writes WHERE revision > $1 AND revision <= $2 ORDER BY revision, position";
    let found = in_range(text).fetch_all(connection).await?;
    let changes = decode_on_blocking_thread(move || with_writes(changes, &found)).await?;
    Ok(ChangeBatch { head, changes })
}

/// Adds their writes to changes, and checks each against its digest.
fn with_writes(mut changes: Vec<Change>, writes: &[super::Row]) -> Result<Vec<Change>, StoreError> {
    let mut writes = writes.iter().peekable();
    for change in &mut changes {
        let number = rows::to_i64(change.revision.0);
        while let Some(row) =
            writes.next_if(|row| column(row, "revision").is_ok_and(|revision: i64| revision == number))
        {
            change.writes.push(rows::write(row)?);
        }
        if !change.is_whole() {
            let at = change.revision;
            return Err(StoreError::Corrupt(format!("change {at}: its digest does not agree with its content")));
        }
    }
    match writes.next() {
        Some(_) => Err(StoreError::Corrupt("a write belongs to no change".to_owned())),
        None => Ok(changes),
    }
}

/// The point of a revision between the horizon and the head.
async fn point_at(connection: &mut Connection, bounds: &LogBounds, revision: Revision) -> Result<Point, StoreError> {
    ensure_retained(bounds, revision)?;
    if revision == bounds.horizon.revision {
        return Ok(bounds.horizon);
    }
    let found = query("SELECT * FROM fleet_changes WHERE revision = $1")
        .bind(rows::to_i64(revision.0))
        .fetch_optional(connection)
        .await?;
    let change: Change = match &found {
        Some(row) => rows::change(row)?,
        None => return Err(StoreError::Corrupt(format!("the log has no revision {revision}"))),
    };
    Ok(bounds.head.after(&change))
}

pub(super) async fn documents_at(
    connection: &mut Connection,
    revision: Revision,
    kinds: &KindFilter,
) -> Result<StoredFleet, StoreError> {
    let bounds = bounds(connection).await?;
    let point = point_at(connection, &bounds, revision).await?;
    // Each statement finds the last writes in the index, and reads only their bodies.
    let (text, kind) = match kinds {
        KindFilter::All => (
            "SELECT w.* FROM fleet_writes w JOIN (SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            None,
        ),
        KindFilter::Only(kind) => (
            "SELECT w.* FROM fleet_writes w JOIN (SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind = $2 AND revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            Some(kind),
        ),
        // Two ranges of the index, one before the kind and one after it.
        KindFilter::Except(kind) => (
            "SELECT w.* FROM fleet_writes w JOIN (
             SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind < $2 AND revision <= $1 GROUP BY kind, id UNION ALL
             SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind > $2 AND revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            Some(kind),
        ),
    };
    let found = query(text).bind(rows::to_i64(revision.0));
    let found = match kind {
        Some(kind) => found.bind(kind.as_str()),
        None => found,
    };
    let (to, collector) = DocumentCollector::start_packed();
    documents::read(found, connection, &to).await?;
    drop(to);
    collector.finish(point).await
}

pub(super) async fn writes_of_change(
    connection: &mut Connection,
    revision: Revision,
    from: usize,
    limit: usize,
) -> Result<Vec<WriteAndBefore>, StoreError> {
    let Some(earlier) = revision.0.checked_sub(1).map(Revision) else { return Ok(Vec::new()) };
    ensure_retained(&bounds(connection).await?, earlier)?;
    let found = query(
        "SELECT w.*, b.op AS before_op, b.body AS before_body, b.checksum AS before_checksum
         FROM fleet_writes w LEFT JOIN fleet_writes b ON b.kind = w.kind AND b.id = w.id AND b.revision =
         (SELECT max(e.revision) FROM fleet_writes e WHERE e.kind = w.kind AND e.id = w.id AND e.revision < w.revision)
         WHERE w.revision = $1 AND w.position >= $2 AND w.position < $3 ORDER BY w.position",
    )
    .bind(rows::to_i64(revision.0))
    .bind(rows::to_i64(from as u64))
    .bind(rows::to_i64(from.saturating_add(limit) as u64))
    .fetch_all(connection)
    .await?;
    decode_on_blocking_thread(move || found.iter().map(rows::write_and_before).collect()).await
}

pub(super) async fn document_at(
    connection: &mut Connection,
    kind: &Kind,
    id: &Id,
    revision: Revision,
) -> Result<Option<(Revision, Op)>, StoreError> {
    ensure_retained(&bounds(connection).await?, revision)?;
    let row = query(
        "SELECT * FROM fleet_writes WHERE kind = $1 AND id = $2 AND revision <= $3 ORDER BY revision DESC LIMIT 1",
    )
    .bind(kind.as_str())
    .bind(id.as_str())
    .bind(rows::to_i64(revision.0))
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok((rows::revision(&row, "revision")?, rows::write(&row)?.op))).transpose()
}

pub(super) async fn change_log_entries(
    connection: &mut Connection,
    filter: &ChangeLogQuery,
) -> Result<Vec<ChangeLogEntry>, StoreError> {
    // PostgreSQL stores no text with a NUL, and refuses to compare with one.
    if filter.actor.as_ref().is_some_and(|actor| actor.contains('\0')) {
        return Ok(Vec::new());
    }
    let found = query(
        "SELECT c.* FROM fleet_changes c
         WHERE ($1 IS NULL OR c.revision < $1) AND ($8 IS NULL OR c.revision > $8) AND ($2 IS NULL OR c.actor = $2)
           AND ($3 IS NULL OR c.at >= $3) AND ($4 IS NULL OR c.at < $4)
           AND (($5 IS NULL AND $6 IS NULL) OR EXISTS (SELECT 1 FROM fleet_writes w WHERE w.revision = c.revision
                AND ($5 IS NULL OR w.kind = $5) AND ($6 IS NULL OR w.id = $6)))
         ORDER BY c.revision DESC LIMIT $7",
    )
    .bind(filter.before.map(|before| rows::to_i64(before.0)))
    .bind(&filter.actor)
    .bind(filter.since.map(Timestamp::as_microsecond))
    .bind(filter.until.map(Timestamp::as_microsecond))
    .bind(filter.kind.as_ref().map(Kind::as_str))
    .bind(filter.id.as_ref().map(Id::as_str))
    .bind(i64::from(filter.limit))
    .bind(filter.after.map(|after| rows::to_i64(after.0)))
    .fetch_all(&mut *connection)
    .await?;
    let mut entries = Vec::with_capacity(found.len());
    for row in &found {
        let change = rows::change(row)?;
        let writes = query("SELECT kind, id, op FROM fleet_writes WHERE revision = $1 ORDER BY position LIMIT $2")
            .bind(rows::to_i64(change.revision.0))
            .bind(rows::to_i64(LISTED_WRITES as u64))
            .fetch_all(&mut *connection)
            .await?;
        let writes = writes.iter().map(rows::listed_write).collect::<Result<Vec<_>, _>>()?;
        let total =
            if writes.len() < LISTED_WRITES { writes.len() } else { count_writes(connection, change.revision).await? };
        entries.push(ChangeLogEntry { change, writes, total });
    }
    Ok(entries)
}

/// How many documents a change wrote.
async fn count_writes(connection: &mut Connection, revision: Revision) -> Result<usize, StoreError> {
    let row = query("SELECT count(*) AS writes FROM fleet_writes WHERE revision = $1")
        .bind(rows::to_i64(revision.0))
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(column::<i64>(&row, "writes")?).unwrap_or_default())
}

/// Digests of so many pruned changes are kept, so that a replica that was away can still find its own history.
const RETAINED_DIGESTS: u64 = 100_000;

pub(super) async fn digest_at(connection: &mut Connection, revision: Revision) -> Result<Option<Digest>, StoreError> {
    let row = query(
        "SELECT digest FROM fleet_changes WHERE revision = $1 UNION ALL
         SELECT digest FROM fleet_past WHERE revision = $1",
    )
    .bind(rows::to_i64(revision.0))
    .fetch_optional(connection)
    .await?;
    row.map(|row| rows::digest(&row, "digest")).transpose()
}

pub(super) async fn is_overruled(connection: &mut Connection, digest: &Digest) -> Result<bool, StoreError> {
    let row = query(
        "SELECT revision FROM fleet_changes WHERE overrules = $1 UNION ALL
         SELECT revision FROM fleet_past WHERE overrules = $1",
    )
    .bind(digest.as_bytes())
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

pub(super) async fn first_revision_since(
    connection: &mut Connection,
    time: Timestamp,
) -> Result<Option<Revision>, StoreError> {
    let row = query("SELECT min(revision) AS revision FROM fleet_changes WHERE at >= $1")
        .bind(time.as_microsecond())
        .fetch_one(connection)
        .await?;
    let first: Option<i64> = column(&row, "revision")?;
    Ok(first.and_then(|first| u64::try_from(first).ok()).map(Revision))
}

pub(super) async fn prune(connection: &mut Connection, horizon: Revision) -> Result<Option<Revision>, StoreError> {
    let bounds = bounds(connection).await?;
    let horizon = horizon.min(Revision(bounds.head.revision.0.saturating_sub(1)));
    if horizon <= bounds.horizon.revision {
        return Ok(None);
    }
    let point = point_at(connection, &bounds, horizon).await?;
    // The horizon moves first, and only if it is still where this transaction read it: of two processes that prune at the
    // same time, one does, and neither prunes a log that has replaced the one it read.
    let updated = query(
        "UPDATE fleet_log SET horizon = $1, horizon_epoch = $2, horizon_digest = $3
         WHERE store = $4 AND horizon_digest = $5 AND head > $1",
    )
    .bind(rows::to_i64(horizon.0))
    .bind(rows::to_i64(point.epoch.0))
    .bind(point.digest.as_bytes())
    .bind(point.store.to_string())
    .bind(bounds.horizon.digest.as_bytes())
    .execute(&mut *connection)
    .await?;
    if updated.rows_affected() == 0 {
        return Ok(None);
    }
    // This transaction now holds the row, so the log cannot change any more. Check that it is still the one that was read.
    if digest_at(connection, horizon).await? != Some(point.digest) {
        return Err(StoreError::Unavailable("the log was replaced while it was being pruned; retry".to_owned()));
    }
    query("DELETE FROM fleet_past WHERE revision <= $1")
        .bind(rows::to_i64(horizon.0.saturating_sub(RETAINED_DIGESTS)))
        .execute(&mut *connection)
        .await?;
    for statement in [
        "DELETE FROM fleet_writes WHERE revision <= $1 AND (op = 'remove' OR EXISTS (SELECT 1 FROM fleet_writes later
         WHERE later.kind = fleet_writes.kind AND later.id = fleet_writes.id AND later.revision > fleet_writes.revision
         AND later.revision <= $1))",
        "INSERT INTO fleet_past (revision, digest, overrules)
         SELECT revision, digest, overrules FROM fleet_changes WHERE revision <= $1",
        "DELETE FROM fleet_changes WHERE revision <= $1",
    ] {
        query(statement).bind(rows::to_i64(horizon.0)).execute(&mut *connection).await?;
    }
    Ok(Some(horizon))
}

/// Creates the row of a new log, with its name, unless another process has done so.
pub(super) async fn create_log(connection: &mut Connection) -> Result<(), StoreError> {
    let Point { store, digest, .. } = Point::beginning(crate::new_store_id());
    query(
        "INSERT INTO fleet_log (one, store, head, epoch, digest, documents, horizon, horizon_epoch, horizon_digest)
         VALUES (1, $1, 0, 0, $2, 0, 0, 0, $2) ON CONFLICT (one) DO NOTHING",
    )
    .bind(store.to_string())
    .bind(digest.as_bytes())
    .execute(connection)
    .await?;
    Ok(())
}

/// How many documents are decompressed at once.
const RESTORE_CHUNK: usize = 1_000;

pub(super) async fn restore(
    connection: &mut Connection,
    base: StoredFleet,
    changes: &mut RestoreChanges<'_>,
    replace: bool,
) -> Result<Point, RestoreError> {
    let bounds = bounds(connection).await?;
    if bounds.head.revision > Revision::ZERO && !replace {
        return Err(RestoreError::NotEmpty { head: bounds.head });
    }
    let Point { store, epoch, revision, digest } = base.point;
    let updated = query(
        "UPDATE fleet_log SET store = $1, head = $2, epoch = $3, digest = $4, documents = $5,
         horizon = $2, horizon_epoch = $3, horizon_digest = $4 WHERE digest = $6",
    )
    .bind(store.to_string())
    .bind(rows::to_i64(revision.0))
    .bind(rows::to_i64(epoch.0))
    .bind(digest.as_bytes())
    .bind(rows::to_i64(base.documents.len() as u64))
    .bind(bounds.head.digest.as_bytes())
    .execute(&mut *connection)
    .await?;
    if updated.rows_affected() == 0 {
        return Err(StoreError::Unavailable("another process has just written to it; retry".to_owned()).into());
    }
    for statement in append::DELETE_ALL.iter().copied() {
        query(statement).execute(&mut *connection).await?;
    }
    for (at, documents) in base.documents.chunks(RESTORE_CHUNK).enumerate() {
        let writes = documents.iter().map(|it| Write { kind: it.kind.clone(), id: it.id.clone(), op: it.op() });
        let writes: Vec<_> = writes.collect();
        let positions = (at * RESTORE_CHUNK..).zip(documents).map(|(position, document)| (document.revision, position));
        let rows = writes.iter().zip(positions).map(|(write, (revision, at))| rows::WriteRow::new(write, revision, at));
        append::insert_writes(connection, rows.collect()).await?;
    }
    query(append::INSERT_CURRENT).execute(&mut *connection).await?;
    let mut head = base.point;
    for change in changes {
        let change = change?;
        if !append::append_all(connection, slice::from_ref(&change)).await? {
            return Err(RestoreError::Archive(format!("change {} does not follow {head}", change.revision)));
        }
        head = head.after(&change);
    }
    Ok(head)
}
