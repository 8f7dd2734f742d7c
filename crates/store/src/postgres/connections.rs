//! A few connections, kept while they work.
//!
//! A connection on which anything failed, or took too long, is thrown away with all it had in mind: the server undoes its
//! transaction. So nothing here ever waits for a connection to get well, and a network that swallows packets costs one
//! deadline and no slot.

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

/// How long the database may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To give a connection: for the wait until one is free, and for making one.
    pub connection: Duration,
    /// For a statement; the server gives it up then, and a moment later so does this side.
    pub statement: Duration,
}

/// The server has no connection left, until somebody gives one back.
const TOO_MANY: &str = "53300";
const A_MOMENT: Duration = Duration::from_millis(50);

/// The longest time for which a transaction that nobody waits for may wait for its client.
const STALLED: Duration = Duration::from_mins(1);

/// For what the server's own deadline takes to reach us.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connections {
    options: PgConnectOptions,
    timeouts: Timeouts,
    slots: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reading, all of it as of one moment.
    Read,
    /// A change.
    Write,
    /// Something that takes as long as it takes.
    Restore,
}

/// A transaction. Dropped, it never was.
pub(super) struct Work<'c> {
    connection: PgConnection,
    /// What is to be waited for in it.
    pub(super) deadline: Option<Duration>,
    _slot: SemaphorePermit<'c>,
}

impl Deref for Work<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Work<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Connections {
    pub(super) fn new(dsn: &PostgresDsn, size: u32, timeouts: Timeouts) -> Self {
        let slots = Semaphore::new(usize::try_from(size).unwrap_or(1).max(1));
        Self { options: dsn.options.clone(), timeouts, slots, idle: Mutex::new(Vec::new()) }
    }

    pub(super) async fn begin(&self, purpose: Purpose) -> Result<Work<'_>, StoreError> {
        let slot = timeout(self.timeouts.connection, self.slots.acquire()).await;
        let Ok(Ok(slot)) = slot else {
            return Err(StoreError::Unavailable("all connections are busy".to_owned()));
        };
        let deadline = (purpose != Purpose::Restore).then_some(self.timeouts.statement);
        let begin = begin(purpose, deadline.unwrap_or_default());
        let Ok(connection) = timeout(self.timeouts.connection, self.connection(&begin)).await else {
            // Those that are idle would not answer either.
            self.idle().clear();
            return Err(StoreError::Unavailable("it does not answer".to_owned()));
        };
        Ok(Work { connection: connection?, deadline, _slot: slot })
    }

    /// A connection on which a transaction has begun.
    async fn connection(&self, begin: &str) -> Result<PgConnection, StoreError> {
        loop {
            // One that was idle may have been cut off meanwhile. Nothing was asked of it yet, so the next one can be tried.
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
                Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == TOO_MANY) => {
                    tokio::time::sleep(A_MOMENT).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes a transaction last.
    pub(super) async fn commit(&self, work: Work<'_>) -> Result<(), StoreError> {
        self.end(work, "COMMIT").await
    }

    /// Makes a transaction that did nothing wrong undone.
    pub(super) async fn roll_back(&self, work: Work<'_>) -> Result<(), StoreError> {
        self.end(work, "ROLLBACK").await
    }

    async fn end(&self, mut work: Work<'_>, how: &'static str) -> Result<(), StoreError> {
        run(&mut work.connection, work.deadline, how).await?;
        self.idle().push(work.connection);
        Ok(())
    }

    fn take_idle(&self) -> Option<PgConnection> {
        self.idle().pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        // Nothing panics while it is held.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what is idle, and gives no more.
    pub(super) async fn close(&self) {
        self.slots.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            // It is not needed any more, however it takes that.
            let _ = timeout(GRACE, sqlx::Connection::close(connection)).await;
        }
    }
}

/// Limits that end with the transaction: where this side is cut off, the server lets go of it and of its locks.
fn begin(purpose: Purpose, deadline: Duration) -> String {
    let how = match purpose {
        Purpose::Read => "ISOLATION LEVEL REPEATABLE READ READ ONLY",
        Purpose::Write | Purpose::Restore => "ISOLATION LEVEL READ COMMITTED READ WRITE",
    };
    // A writer holds the row that others wait for.
    let idle = if purpose == Purpose::Write { deadline } else { STALLED };
    let (limit, idle) = (deadline.as_millis(), idle.as_millis());
    format!(
        "BEGIN {how}; SET LOCAL statement_timeout = {limit}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
    )
}

async fn run(connection: &mut PgConnection, deadline: Option<Duration>, statement: &str) -> Result<(), StoreError> {
    let run = async { Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)?) };
    within(deadline, run).await
}

/// Waits for a piece of work on the database, but not for ever.
pub(super) async fn within<T, E: From<StoreError>>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match deadline {
        None => work.await,
        Some(deadline) => match timeout(deadline + GRACE, work).await {
            Ok(done) => done,
            Err(_) => Err(StoreError::Unavailable("it takes too long".to_owned()).into()),
        },
    }
}
