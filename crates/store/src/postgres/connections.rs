//! A small pool of connections.
//!
//! A connection on which anything failed, or took too long, is closed, and the database rolls its transaction back. So nothing
//! here waits for a broken connection, and a network that drops packets costs one deadline and no slot.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::dsn::PostgresDsn;
use crate::StoreError;

/// How long to wait for the database.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection: until one is free, and until a new one is open.
    pub connection: Duration,
    /// For a statement: the database cancels it then, and this side stops waiting a moment later.
    pub statement: Duration,
}

/// The code for a database that has no free connection; another client may close one soon.
const TOO_MANY_CONNECTIONS: &str = "53300";
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// How long a transaction that holds no lock may be idle before the database ends it.
const MAX_IDLE: Duration = Duration::from_mins(1);

/// How much longer than the database's own deadline this side waits, so that its error can arrive.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ConnectionPool {
    options: PgConnectOptions,
    timeouts: Timeouts,
    slots: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read one consistent state.
    Read,
    /// To append changes.
    Write,
    /// To migrate or to restore, without a deadline.
    Restore,
}

/// A transaction. If it is dropped, its connection is closed, and the database rolls it back.
pub(super) struct PostgresTransaction<'c> {
    connection: PgConnection,
    /// How long each step may take; none for no limit.
    pub(super) deadline: Option<Duration>,
    _slot: SemaphorePermit<'c>,
}

impl Deref for PostgresTransaction<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for PostgresTransaction<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl ConnectionPool {
    pub(super) fn new(dsn: &PostgresDsn, size: u32, timeouts: Timeouts) -> Self {
        let slots = Semaphore::new(usize::try_from(size).unwrap_or(1).max(1));
        Self { options: dsn.options.clone(), timeouts, slots, idle: Mutex::new(Vec::new()) }
    }

    pub(super) async fn begin(&self, purpose: Purpose) -> Result<PostgresTransaction<'_>, StoreError> {
        let slot = timeout(self.timeouts.connection, self.slots.acquire()).await;
        let Ok(Ok(slot)) = slot else {
            return Err(StoreError::Unavailable("all connections to the database are busy".to_owned()));
        };
        let deadline = (purpose != Purpose::Restore).then_some(self.timeouts.statement);
        let begin = begin_statement(purpose, deadline.unwrap_or_default());
        let Ok(connection) = timeout(self.timeouts.connection, self.connection(&begin)).await else {
            // The idle connections would not answer either.
            self.idle().clear();
            return Err(StoreError::Unavailable("the database does not answer".to_owned()));
        };
        Ok(PostgresTransaction { connection: connection?, deadline, _slot: slot })
    }

    /// A connection on which a transaction has begun.
    async fn connection(&self, begin: &str) -> Result<PgConnection, StoreError> {
        loop {
            // An idle connection may have been cut off meanwhile. It has no transaction yet, so the next one can be tried.
            while let Some(mut connection) = self.take_idle() {
                if run(&mut connection, None, begin).await.is_ok() {
                    return Ok(connection);
                }
            }
            match self.options.connect().await {
                Ok(mut connection) => {
                    run(&mut connection, None, begin).await?;
                    return Ok(connection);
                }
                Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == TOO_MANY_CONNECTIONS) => {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Commits a transaction.
    pub(super) async fn commit(&self, transaction: PostgresTransaction<'_>) -> Result<(), StoreError> {
        self.end(transaction, "COMMIT").await
    }

    /// Rolls back a transaction and keeps its connection.
    pub(super) async fn roll_back(&self, transaction: PostgresTransaction<'_>) -> Result<(), StoreError> {
        self.end(transaction, "ROLLBACK").await
    }

    async fn end(&self, mut transaction: PostgresTransaction<'_>, statement: &'static str) -> Result<(), StoreError> {
        run(&mut transaction.connection, transaction.deadline, statement).await?;
        self.idle().push(transaction.connection);
        Ok(())
    }

    fn take_idle(&self) -> Option<PgConnection> {
        self.idle().pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the idle connections, and lends no more.
    pub(super) async fn close(&self) {
        self.slots.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            // A connection that cannot be closed is dropped.
            let _ = timeout(GRACE, sqlx::Connection::close(connection)).await;
        }
    }
}

/// Begins a transaction with limits of its own: if this side is cut off, the database ends it and releases its locks.
fn begin_statement(purpose: Purpose, deadline: Duration) -> String {
    let mode = match purpose {
        Purpose::Read => "ISOLATION LEVEL REPEATABLE READ READ ONLY",
        Purpose::Write | Purpose::Restore => "ISOLATION LEVEL READ COMMITTED READ WRITE",
    };
    // A writer locks the row that other writers wait for.
    let idle = if purpose == Purpose::Write { deadline } else { MAX_IDLE };
    let (limit, idle) = (deadline.as_millis(), idle.as_millis());
    format!(
        "BEGIN {mode}; SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
    )
}

async fn run(connection: &mut PgConnection, deadline: Option<Duration>, statement: &str) -> Result<(), StoreError> {
    let run = async { Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)?) };
    with_deadline(deadline, run).await
}

/// Waits for work on the database, but no longer than the deadline.
pub(super) async fn with_deadline<T, E: From<StoreError>>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match deadline {
        None => work.await,
        Some(deadline) => match timeout(deadline + GRACE, work).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable("the database took too long".to_owned()).into()),
        },
    }
}
