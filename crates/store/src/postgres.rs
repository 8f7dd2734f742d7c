//! The log in PostgreSQL, or in what speaks its protocol: for many replicas, and several writers.
//!
//! Plain statements only, each in a transaction that one connection sees from begin to end: nothing is left in a session
//! that a pooler could hand to somebody else, so no prepared statements, no settings and no locks outlive a transaction.
//! `LISTEN` is the exception: it is done where the session is certainly ours, and only makes followers faster than their
//! patience.

mod append;
mod connections;
mod documents;
mod dsn;
mod listen;
#[path = "sql/log.rs"]
mod log;
#[path = "sql/rows.rs"]
mod rows;
#[path = "sql/schema.rs"]
mod schema;

use std::sync::Arc;

use async_trait::async_trait;
use futures_core::future::BoxFuture;
use jiff::Timestamp;
use model::{Change, Digest, Id, Kind, Op, Point, Revision};
use sqlx::{
    PgConnection as Connection, Postgres, Row as _, SqlSafeStr,
    postgres::{PgArguments, PgRow as Row},
};
use tokio::sync::Notify;

use crate::{
    AppendError, Changes, Ends, Entry, EntryQuery, Kinds, PATIENCE, Picture, Pieces, RestoreError, Store, StoreError,
    Tables, Tail, WriteAndBefore,
};
use connections::{Connections, Purpose, within};
use listen::Listener;

pub use connections::Timeouts;
pub use dsn::PostgresDsn;

type Query<'q> = sqlx::query::Query<'q, Db, PgArguments>;
type Db = Postgres;

/// The statements that make the tables, one after another.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/postgres/0001_log.sql")];

/// How many tables of ours are there.
const TABLES: &str = "SELECT count(*) AS tables FROM information_schema.tables
     WHERE table_schema = ANY (current_schemas(false)) AND table_name = 'fleet_schema'";

/// The most connections for reads of the past. Of a small pool they have half. Both sides have at least one, so a pool of one has
/// two.
const READERS_OF_THE_PAST: u32 = 2;

/// Not kept by the session.
fn query<'q>(statement: impl SqlSafeStr) -> Query<'q> {
    sqlx::query(statement).persistent(false)
}

/// Runs statements that answer nothing.
async fn run(connection: &mut Connection, statements: &'static str) -> Result<(), StoreError> {
    sqlx::raw_sql(statements).execute(connection).await?;
    Ok(())
}

/// What a row says in a column.
fn column<'r, T>(row: &'r Row, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, Db> + sqlx::Type<Db>,
{
    row.try_get(name).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The log in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    /// For whoever follows the log or writes to it.
    connections: Connections,
    /// For reads of the past, which never make a follower or a writer wait.
    past: Connections,
    told: Arc<Notify>,
    listener: Listener,
}

impl PostgresStore {
    /// Connects and sees to the tables.
    pub async fn open(dsn: &PostgresDsn, size: u32, timeouts: Timeouts, tables: Tables) -> Result<Self, StoreError> {
        let told = Arc::new(Notify::new());
        let past = (size / 2).clamp(1, READERS_OF_THE_PAST);
        let store = Self {
            connections: Connections::new(dsn, size.saturating_sub(past).max(1), timeouts),
            past: Connections::new(dsn, past, timeouts),
            listener: Listener::start(dsn, told.clone()),
            told,
        };
        store.ask(|connection| Box::pin(keeps_its_word(connection))).await?;
        if !store.ask(|connection| Box::pin(schema::is_current(connection))).await? {
            if tables == Tables::Found {
                return Err(StoreError::Foreign("it has no tables of ours, or older ones".to_owned()));
            }
            let mut work = store.connections.begin(Purpose::Restore).await?;
            schema::migrate(&mut work).await?;
            log::begin(&mut work).await?;
            store.connections.commit(work).await?;
        }
        Ok(store)
    }

    /// Reads, all of it as of one moment.
    async fn ask<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        ask(&self.connections, read).await
    }

    /// Reads the past, all of it as of one moment.
    async fn ask_past<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        ask(&self.past, read).await
    }
}

async fn ask<T>(
    connections: &Connections,
    read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut work = connections.begin(Purpose::Read).await?;
    let found = within(work.deadline, read(&mut work)).await?;
    connections.commit(work).await?;
    Ok(found)
}

#[async_trait]
impl Store for PostgresStore {
    async fn read(&self, to: Pieces) -> Result<Point, StoreError> {
        self.ask(|connection| Box::pin(async move { log::read(connection, &to).await })).await
    }

    async fn ends(&self) -> Result<Ends, StoreError> {
        self.ask_past(|connection| Box::pin(log::ends(connection))).await
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut work = self.connections.begin(Purpose::Write).await?;
        if !within(work.deadline, append::write(&mut work, changes)).await? {
            self.connections.roll_back(work).await?;
            let ends = self.ask(|connection| Box::pin(log::ends(connection))).await?;
            return Err(AppendError::Conflict { head: ends.head });
        }
        self.connections.commit(work).await?;
        self.listener.tell();
        Ok(())
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<Tail, StoreError> {
        self.ask(|connection| Box::pin(log::changes_after(connection, after, limit))).await
    }

    async fn documents_at(&self, revision: Revision, kinds: Kinds) -> Result<Picture, StoreError> {
        self.ask_past(|connection| Box::pin(async move { log::documents_at(connection, revision, &kinds).await })).await
    }

    async fn writes_of(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError> {
        self.ask_past(|connection| Box::pin(log::writes_of(connection, revision, from, limit))).await
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        let (kind, id) = (kind.clone(), id.clone());
        self.ask_past(|connection| Box::pin(async move { log::document_at(connection, &kind, &id, revision).await }))
            .await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, StoreError> {
        let query = query.clone();
        self.ask_past(|connection| Box::pin(async move { log::entries(connection, &query).await })).await
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        self.ask(|connection| Box::pin(log::digest_at(connection, revision))).await
    }

    async fn overrules(&self, point: &Digest) -> Result<bool, StoreError> {
        let point = *point;
        self.ask(|connection| Box::pin(async move { log::overrules(connection, &point).await })).await
    }

    async fn first_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        self.ask(|connection| Box::pin(log::first_since(connection, time))).await
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut work = self.connections.begin(Purpose::Write).await?;
        let pruned = within(work.deadline, log::prune(&mut work, horizon)).await?;
        self.connections.commit(work).await?;
        Ok(pruned)
    }

    async fn restore(&self, base: Picture, changes: &mut Changes<'_>, replace: bool) -> Result<Point, RestoreError> {
        let mut work = self.connections.begin(Purpose::Restore).await?;
        let head = log::restore(&mut work, base, changes, replace).await?;
        self.connections.commit(work).await?;
        self.listener.tell();
        Ok(head)
    }

    async fn wake(&self) {
        // Running out of patience is one of the ways to return: the database may not tell of changes.
        let _ = tokio::time::timeout(PATIENCE, self.told.notified()).await;
    }

    async fn close(&self) {
        self.listener.stop();
        self.connections.close().await;
        self.past.close().await;
    }
}

/// Refuses a database that acknowledges commits before they are safe.
async fn keeps_its_word(connection: &mut Connection) -> Result<(), StoreError> {
    let row = query("SELECT current_setting('synchronous_commit', true) AS setting").fetch_one(connection).await?;
    match column::<Option<&str>>(&row, "setting")? {
        Some("off") => {
            Err(StoreError::Foreign("it may lose what it acknowledged: synchronous_commit is off".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Tells damage from trouble that may pass: data or an index is corrupted.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some((said, code)) = error.as_database_error().and_then(|error| Some((error.message(), error.code()?)))
        else {
            return Self::Unavailable(error.to_string());
        };
        let what = format!("{said} ({code})");
        if ["XX001", "XX002"].contains(&&*code) { Self::Corrupt(what) } else { Self::Unavailable(what) }
    }
}
