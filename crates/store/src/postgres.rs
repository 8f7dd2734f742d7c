//! The change log in PostgreSQL, or in a database that speaks its protocol: for many replicas, and several writers.
//!
//! Plain statements only, each in a transaction on one connection: no prepared statement, setting or lock outlives a
//! transaction, because a pooler may give the session to another client. `LISTEN` is the exception: it is used only where the
//! session is certainly ours, and only makes followers faster than [`WAKE_INTERVAL`].

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
    AppendError, ChangeBatch, ChangeLogEntry, ChangeLogQuery, DocumentSender, KindFilter, LogBounds, MissingTables,
    RestoreChanges, RestoreError, Store, StoreError, StoredFleet, WAKE_INTERVAL, WriteAndBefore,
};
use connections::{ConnectionPool, Purpose, with_deadline};
use listen::Listener;

pub use connections::Timeouts;
pub use dsn::PostgresDsn;

type Query<'q> = sqlx::query::Query<'q, Db, PgArguments>;
type Db = Postgres;

/// The statements that create and migrate the tables, in order of version.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/postgres/0001_log.sql")];

/// Counts our tables: one, or zero in a new database.
const COUNT_TABLES: &str = "SELECT count(*) AS tables FROM information_schema.tables
     WHERE table_schema = ANY (current_schemas(false)) AND table_name = 'fleet_schema'";

/// The most connections for reads of the past; they get at most half of a small pool. Both pools have at least one connection, so
/// a configured size of one means two connections.
const MAX_PAST_READERS: u32 = 2;

/// A statement that the session does not prepare for later.
fn query<'q>(statement: impl SqlSafeStr) -> Query<'q> {
    sqlx::query(statement).persistent(false)
}

/// Runs statements that return no rows.
async fn run(connection: &mut Connection, statements: &'static str) -> Result<(), StoreError> {
    sqlx::raw_sql(statements).execute(connection).await?;
    Ok(())
}

/// The value of a column.
fn column<'r, T>(row: &'r Row, name: &str) -> Result<T, StoreError>
where
    T: sqlx::Decode<'r, Db> + sqlx::Type<Db>,
{
    row.try_get(name).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The change log in PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    /// For the follower and the writer.
    connections: ConnectionPool,
    /// For reads of the past, so that a follower or a writer never waits for them.
    past_readers: ConnectionPool,
    appended: Arc<Notify>,
    listener: Listener,
}

impl PostgresStore {
    /// Connects, checks the settings of the database, and checks or creates the tables.
    pub async fn open(
        dsn: &PostgresDsn,
        size: u32,
        timeouts: Timeouts,
        missing_tables: MissingTables,
    ) -> Result<Self, StoreError> {
        let appended = Arc::new(Notify::new());
        let past = (size / 2).clamp(1, MAX_PAST_READERS);
        let store = Self {
            connections: ConnectionPool::new(dsn, size.saturating_sub(past).max(1), timeouts),
            past_readers: ConnectionPool::new(dsn, past, timeouts),
            listener: Listener::start(dsn, appended.clone()),
            appended,
        };
        store.read(|connection| Box::pin(refuse_unsafe_commits(connection))).await?;
        if !store.read(|connection| Box::pin(schema::is_current(connection))).await? {
            if missing_tables == MissingTables::Refuse {
                return Err(StoreError::Foreign("it has no tables of ours, or older ones".to_owned()));
            }
            let mut transaction = store.connections.begin(Purpose::Restore).await?;
            schema::migrate(&mut transaction).await?;
            log::create_log(&mut transaction).await?;
            store.connections.commit(transaction).await?;
        }
        Ok(store)
    }

    /// Reads one consistent state.
    async fn read<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        read_from(&self.connections, read).await
    }

    /// Reads one consistent state of the past.
    async fn read_past<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        read_from(&self.past_readers, read).await
    }
}

async fn read_from<T>(
    connections: &ConnectionPool,
    read: impl for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut transaction = connections.begin(Purpose::Read).await?;
    let result = with_deadline(transaction.deadline, read(&mut transaction)).await?;
    connections.commit(transaction).await?;
    Ok(result)
}

#[async_trait]
impl Store for PostgresStore {
    async fn read_documents(&self, to: DocumentSender) -> Result<Point, StoreError> {
        self.read(|connection| Box::pin(async move { log::read_documents(connection, &to).await })).await
    }

    async fn bounds(&self) -> Result<LogBounds, StoreError> {
        self.read_past(|connection| Box::pin(log::bounds(connection))).await
    }

    async fn append_all(&self, changes: &[Change]) -> Result<(), AppendError> {
        let mut transaction = self.connections.begin(Purpose::Write).await?;
        if !with_deadline(transaction.deadline, append::append_all(&mut transaction, changes)).await? {
            self.connections.roll_back(transaction).await?;
            let bounds = self.read(|connection| Box::pin(log::bounds(connection))).await?;
            return Err(AppendError::Conflict { head: bounds.head });
        }
        self.connections.commit(transaction).await?;
        self.listener.notify();
        Ok(())
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> Result<ChangeBatch, StoreError> {
        self.read(|connection| Box::pin(log::changes_after(connection, after, limit))).await
    }

    async fn documents_at(&self, revision: Revision, kinds: KindFilter) -> Result<StoredFleet, StoreError> {
        self.read_past(|connection| Box::pin(async move { log::documents_at(connection, revision, &kinds).await }))
            .await
    }

    async fn writes_of_change(
        &self,
        revision: Revision,
        from: usize,
        limit: usize,
    ) -> Result<Vec<WriteAndBefore>, StoreError> {
        self.read_past(|connection| Box::pin(log::writes_of_change(connection, revision, from, limit))).await
    }

    async fn document_at(
        &self,
        kind: &Kind,
        id: &Id,
        revision: Revision,
    ) -> Result<Option<(Revision, Op)>, StoreError> {
        let (kind, id) = (kind.clone(), id.clone());
        self.read_past(|connection| Box::pin(async move { log::document_at(connection, &kind, &id, revision).await }))
            .await
    }

    async fn change_log_entries(&self, query: &ChangeLogQuery) -> Result<Vec<ChangeLogEntry>, StoreError> {
        let query = query.clone();
        self.read_past(|connection| Box::pin(async move { log::change_log_entries(connection, &query).await })).await
    }

    async fn digest_at(&self, revision: Revision) -> Result<Option<Digest>, StoreError> {
        self.read(|connection| Box::pin(log::digest_at(connection, revision))).await
    }

    async fn is_overruled(&self, point: &Digest) -> Result<bool, StoreError> {
        let point = *point;
        self.read(|connection| Box::pin(async move { log::is_overruled(connection, &point).await })).await
    }

    async fn first_revision_since(&self, time: Timestamp) -> Result<Option<Revision>, StoreError> {
        self.read(|connection| Box::pin(log::first_revision_since(connection, time))).await
    }

    async fn prune(&self, horizon: Revision) -> Result<Option<Revision>, StoreError> {
        let mut transaction = self.connections.begin(Purpose::Write).await?;
        let pruned = with_deadline(transaction.deadline, log::prune(&mut transaction, horizon)).await?;
        self.connections.commit(transaction).await?;
        Ok(pruned)
    }

    async fn restore(
        &self,
        base: StoredFleet,
        changes: &mut RestoreChanges<'_>,
        replace: bool,
    ) -> Result<Point, RestoreError> {
        let mut transaction = self.connections.begin(Purpose::Restore).await?;
        let head = log::restore(&mut transaction, base, changes, replace).await?;
        self.connections.commit(transaction).await?;
        self.listener.notify();
        Ok(head)
    }

    async fn wait_for_append(&self) {
        // A timeout is a normal return: the database may send no notifications.
        let _ = tokio::time::timeout(WAKE_INTERVAL, self.appended.notified()).await;
    }

    async fn close(&self) {
        self.listener.stop();
        self.connections.close().await;
        self.past_readers.close().await;
    }
}

/// Refuses a database that acknowledges commits before they are durable.
async fn refuse_unsafe_commits(connection: &mut Connection) -> Result<(), StoreError> {
    let row = query("SELECT current_setting('synchronous_commit', true) AS setting").fetch_one(connection).await?;
    match column::<Option<&str>>(&row, "setting")? {
        Some("off") => {
            Err(StoreError::Foreign("it may lose what it acknowledged: synchronous_commit is off".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Separates damage (corrupted data or a corrupted index) from errors that a retry may solve.
impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some((message, code)) = error.as_database_error().and_then(|error| Some((error.message(), error.code()?)))
        else {
            return Self::Unavailable(error.to_string());
        };
        let what = format!("{message} ({code})");
        if ["XX001", "XX002"].contains(&&*code) { Self::Corrupt(what) } else { Self::Unavailable(what) }
    }
}
