//! What all databases do alike: reading the log, forgetting its beginning, and putting a whole one back.
//!
//! One text, compiled for each of them: `super` says what a connection, a row and a query are there.

use std::slice;

use jiff::Timestamp;
use model::{Change, Digest, Id, Kind, Op, Point, ResourceType, Revision, Write};
use tokio::task::spawn_blocking;

use super::{Connection, append, column, documents, query, rows};
use crate::{
    Changes, Ends, Entry, EntryQuery, Kinds, LISTED, Picture, RestoreError, StoreError, Tail, WriteAndBefore,
    pieces::{Collection, Pieces},
};

/// The one row that says where the log begins and ends.
pub(super) const LOG: &str = "SELECT * FROM fleet_log";

async fn log(connection: &mut Connection) -> Result<super::Row, StoreError> {
    let row = query(LOG).fetch_optional(connection).await?;
    row.ok_or_else(|| StoreError::Unavailable("its log has not been made yet".to_owned()))
}

pub(super) async fn ends(connection: &mut Connection) -> Result<Ends, StoreError> {
    rows::ends(&log(connection).await?)
}

/// Whether everything after a revision is still known.
fn keep(ends: &Ends, revision: Revision) -> Result<(), StoreError> {
    let horizon = ends.horizon.revision;
    if revision < horizon { Err(StoreError::Pruned { horizon }) } else { Ok(()) }
}

pub(super) async fn read(connection: &mut Connection, to: &Pieces) -> Result<Point, StoreError> {
    let log = log(connection).await?;
    let mut there = 0;
    for found in [
        query("SELECT * FROM fleet_documents WHERE kind <> $1"),
        query("SELECT * FROM fleet_documents WHERE kind = $1"),
    ] {
        there += documents::read(found.bind(ResourceType::CLUSTER), connection, to).await?;
    }
    let (there, written) = (rows::number(there as u64), column::<i64>(&log, "documents")?);
    if there != written {
        return Err(StoreError::Corrupt(format!("{there} documents are there, {written} were written")));
    }
    Ok(rows::ends(&log)?.head)
}

/// Reads many rows where nobody waits for it: polls are answered meanwhile.
async fn aside<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(read).await.map_err(|error| StoreError::Unavailable(error.to_string()))?
}

pub(super) async fn changes_after(
    connection: &mut Connection,
    after: Revision,
    limit: u32,
) -> Result<Tail, StoreError> {
    let ends = ends(connection).await?;
    let head = ends.head;
    if head.revision <= after {
        return Ok(Tail { head, changes: Vec::new() });
    }
    keep(&ends, after)?;
    let until = Revision(after.0.saturating_add(u64::from(limit))).min(head.revision);
    let of_range = |text| query(text).bind(rows::number(after.0)).bind(rows::number(until.0));
    let found = of_range("SELECT * FROM fleet_changes WHERE revision > $1 AND revision <= $2 ORDER BY revision")
        .fetch_all(&mut *connection)
        .await?;
    let changes = found.iter().map(rows::change).collect::<Result<Vec<_>, _>>()?;
    if !changes.iter().map(|change| change.revision.0).eq(after.0 + 1..=until.0) {
        return Err(StoreError::Corrupt(format!("the log has a gap after revision {after}")));
    }
    let text = "SELECT * FROM fleet_writes WHERE revision > $1 AND revision <= $2 ORDER BY revision, position";
    let found = of_range(text).fetch_all(connection).await?;
    let changes = aside(move || whole(changes, &found)).await?;
    Ok(Tail { head, changes })
}

/// Changes with their writes, as they were made.
fn whole(mut changes: Vec<Change>, writes: &[super::Row]) -> Result<Vec<Change>, StoreError> {
    let mut writes = writes.iter().peekable();
    for change in &mut changes {
        let number = rows::number(change.revision.0);
        while let Some(row) = writes.next_if(|row| column(row, "revision").is_ok_and(|of: i64| of == number)) {
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

/// The point of a revision that is neither forgotten nor to come.
async fn point_at(connection: &mut Connection, ends: &Ends, revision: Revision) -> Result<Point, StoreError> {
    keep(ends, revision)?;
    if revision == ends.horizon.revision {
        return Ok(ends.horizon);
    }
    let found = query("SELECT * FROM fleet_changes WHERE revision = $1")
        .bind(rows::number(revision.0))
        .fetch_optional(connection)
        .await?;
    let change: Change = match &found {
        Some(row) => rows::change(row)?,
        None => return Err(StoreError::Corrupt(format!("the log has no revision {revision}"))),
    };
    Ok(ends.head.after(&change))
}

pub(super) async fn documents_at(
    connection: &mut Connection,
    revision: Revision,
    kinds: &Kinds,
) -> Result<Picture, StoreError> {
    let ends = ends(connection).await?;
    let point = point_at(connection, &ends, revision).await?;
    // Each finds the last writes in the index, and reads the bodies of no others.
    let (text, kind) = match kinds {
        Kinds::All => (
            "SELECT w.* FROM fleet_writes w JOIN (SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            None,
        ),
        Kinds::Only(kind) => (
            "SELECT w.* FROM fleet_writes w JOIN (SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind = $2 AND revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            Some(kind),
        ),
        // Two ranges of the index, one before the kind and one after it.
        Kinds::Except(kind) => (
            "SELECT w.* FROM fleet_writes w JOIN (
             SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind < $2 AND revision <= $1 GROUP BY kind, id UNION ALL
             SELECT kind, id, max(revision) AS revision FROM fleet_writes
             WHERE kind > $2 AND revision <= $1 GROUP BY kind, id) last
             ON w.kind = last.kind AND w.id = last.id AND w.revision = last.revision WHERE w.op <> 'remove'",
            Some(kind),
        ),
    };
    let found = query(text).bind(rows::number(revision.0));
    let found = match kind {
        Some(kind) => found.bind(kind.as_str()),
        None => found,
    };
    let (to, collection) = Collection::begin_packed();
    documents::read(found, connection, &to).await?;
    drop(to);
    collection.picture(point).await
}

pub(super) async fn writes_of(
    connection: &mut Connection,
    revision: Revision,
    from: usize,
    limit: usize,
) -> Result<Vec<WriteAndBefore>, StoreError> {
    let Some(earlier) = revision.0.checked_sub(1).map(Revision) else { return Ok(Vec::new()) };
    keep(&ends(connection).await?, earlier)?;
    let found = query(
        "SELECT w.*, b.op AS before_op, b.body AS before_body, b.checksum AS before_checksum
         FROM fleet_writes w LEFT JOIN fleet_writes b ON b.kind = w.kind AND b.id = w.id AND b.revision =
         (SELECT max(e.revision) FROM fleet_writes e WHERE e.kind = w.kind AND e.id = w.id AND e.revision < w.revision)
         WHERE w.revision = $1 AND w.position >= $2 AND w.position < $3 ORDER BY w.position",
    )
    .bind(rows::number(revision.0))
    .bind(rows::number(from as u64))
    .bind(rows::number(from.saturating_add(limit) as u64))
    .fetch_all(connection)
    .await?;
    aside(move || found.iter().map(rows::write_and_before).collect()).await
}

pub(super) async fn document_at(
    connection: &mut Connection,
    kind: &Kind,
    id: &Id,
    revision: Revision,
) -> Result<Option<(Revision, Op)>, StoreError> {
    keep(&ends(connection).await?, revision)?;
    let row = query(
        "SELECT * FROM fleet_writes WHERE kind = $1 AND id = $2 AND revision <= $3 ORDER BY revision DESC LIMIT 1",
    )
    .bind(kind.as_str())
    .bind(id.as_str())
    .bind(rows::number(revision.0))
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok((rows::revision(&row, "revision")?, rows::write(&row)?.op))).transpose()
}

pub(super) async fn entries(connection: &mut Connection, asked: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
    // No text in PostgreSQL has a NUL, and it refuses to compare with one.
    if asked.actor.as_ref().is_some_and(|actor| actor.contains('\0')) {
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
    .bind(asked.before.map(|before| rows::number(before.0)))
    .bind(&asked.actor)
    .bind(asked.since.map(Timestamp::as_microsecond))
    .bind(asked.until.map(Timestamp::as_microsecond))
    .bind(asked.kind.as_ref().map(Kind::as_str))
    .bind(asked.id.as_ref().map(Id::as_str))
    .bind(i64::from(asked.limit))
    .bind(asked.after.map(|after| rows::number(after.0)))
    .fetch_all(&mut *connection)
    .await?;
    let mut entries = Vec::with_capacity(found.len());
    for row in &found {
        let change = rows::change(row)?;
        let writes = query("SELECT kind, id, op FROM fleet_writes WHERE revision = $1 ORDER BY position LIMIT $2")
            .bind(rows::number(change.revision.0))
            .bind(rows::number(LISTED as u64))
            .fetch_all(&mut *connection)
            .await?;
        let writes = writes.iter().map(rows::touched).collect::<Result<Vec<_>, _>>()?;
        let total = if writes.len() < LISTED { writes.len() } else { count(connection, change.revision).await? };
        entries.push(Entry { change, writes, total });
    }
    Ok(entries)
}

/// How many documents a change wrote.
async fn count(connection: &mut Connection, revision: Revision) -> Result<usize, StoreError> {
    let row = query("SELECT count(*) AS writes FROM fleet_writes WHERE revision = $1")
        .bind(rows::number(revision.0))
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(column::<i64>(&row, "writes")?).unwrap_or_default())
}

/// Of so many changes the digest is kept when the rest is forgotten.
const REMEMBERED: u64 = 100_000;

pub(super) async fn digest_at(connection: &mut Connection, revision: Revision) -> Result<Option<Digest>, StoreError> {
    let row = query(
        "SELECT digest FROM fleet_changes WHERE revision = $1 UNION ALL
         SELECT digest FROM fleet_past WHERE revision = $1",
    )
    .bind(rows::number(revision.0))
    .fetch_optional(connection)
    .await?;
    row.map(|row| rows::digest(&row, "digest")).transpose()
}

pub(super) async fn overrules(connection: &mut Connection, point: &Digest) -> Result<bool, StoreError> {
    let row = query(
        "SELECT revision FROM fleet_changes WHERE overrules = $1 UNION ALL
         SELECT revision FROM fleet_past WHERE overrules = $1",
    )
    .bind(point.as_bytes())
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

pub(super) async fn first_since(connection: &mut Connection, time: Timestamp) -> Result<Option<Revision>, StoreError> {
    let row = query("SELECT min(revision) AS revision FROM fleet_changes WHERE at >= $1")
        .bind(time.as_microsecond())
        .fetch_one(connection)
        .await?;
    let first: Option<i64> = column(&row, "revision")?;
    Ok(first.and_then(|first| u64::try_from(first).ok()).map(Revision))
}

pub(super) async fn prune(connection: &mut Connection, horizon: Revision) -> Result<Option<Revision>, StoreError> {
    let ends = ends(connection).await?;
    let horizon = horizon.min(Revision(ends.head.revision.0.saturating_sub(1)));
    if horizon <= ends.horizon.revision {
        return Ok(None);
    }
    let point = point_at(connection, &ends, horizon).await?;
    // First, and only from where this one saw it: of two that forget at the same time one does, and none forgets of a log
    // that has taken the place of this one.
    let moved = query(
        "UPDATE fleet_log SET horizon = $1, horizon_epoch = $2, horizon_digest = $3
         WHERE store = $4 AND horizon_digest = $5 AND head > $1",
    )
    .bind(rows::number(horizon.0))
    .bind(rows::number(point.epoch.0))
    .bind(point.digest.as_bytes())
    .bind(point.store.to_string())
    .bind(ends.horizon.digest.as_bytes())
    .execute(&mut *connection)
    .await?;
    if moved.rows_affected() == 0 {
        return Ok(None);
    }
    // Now that nobody else can write: it is still the log that was looked at.
    if digest_at(connection, horizon).await? != Some(point.digest) {
        return Err(StoreError::Unavailable("the log was replaced meanwhile".to_owned()));
    }
    query("DELETE FROM fleet_past WHERE revision <= $1")
        .bind(rows::number(horizon.0.saturating_sub(REMEMBERED)))
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
        query(statement).bind(rows::number(horizon.0)).execute(&mut *connection).await?;
    }
    Ok(Some(horizon))
}

/// Gives a log that has just been made its name, unless another process was first.
pub(super) async fn begin(connection: &mut Connection) -> Result<(), StoreError> {
    let Point { store, digest, .. } = Point::beginning(crate::name());
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

/// How many documents are taken out of their bodies at once.
const CHUNK: usize = 1_000;

pub(super) async fn restore(
    connection: &mut Connection,
    base: Picture,
    changes: &mut Changes<'_>,
    replace: bool,
) -> Result<Point, RestoreError> {
    let ends = ends(connection).await?;
    if ends.head.revision > Revision::ZERO && !replace {
        return Err(RestoreError::NotEmpty { head: ends.head });
    }
    let Point { store, epoch, revision, digest } = base.point;
    let begun = query(
        "UPDATE fleet_log SET store = $1, head = $2, epoch = $3, digest = $4, documents = $5,
         horizon = $2, horizon_epoch = $3, horizon_digest = $4 WHERE digest = $6",
    )
    .bind(store.to_string())
    .bind(rows::number(revision.0))
    .bind(rows::number(epoch.0))
    .bind(digest.as_bytes())
    .bind(rows::number(base.documents.len() as u64))
    .bind(ends.head.digest.as_bytes())
    .execute(&mut *connection)
    .await?;
    if begun.rows_affected() == 0 {
        return Err(StoreError::Unavailable("somebody else has just written to it".to_owned()).into());
    }
    for statement in append::CLEAR.iter().copied() {
        query(statement).execute(&mut *connection).await?;
    }
    for (at, documents) in base.documents.chunks(CHUNK).enumerate() {
        let writes = documents.iter().map(|it| Write { kind: it.kind.clone(), id: it.id.clone(), op: it.op() });
        let writes: Vec<_> = writes.collect();
        let places = (at * CHUNK..).zip(documents).map(|(position, document)| (document.revision, position));
        let rows = writes.iter().zip(places).map(|(write, (revision, at))| rows::WriteRow::of(write, revision, at));
        append::insert_writes(connection, rows.collect()).await?;
    }
    query(append::PICTURE).execute(&mut *connection).await?;
    let mut head = base.point;
    for change in changes {
        let change = change?;
        if !append::write(connection, slice::from_ref(&change)).await? {
            return Err(RestoreError::Archive(format!("change {} does not follow on {head}", change.revision)));
        }
        head = head.after(&change);
    }
    Ok(head)
}
