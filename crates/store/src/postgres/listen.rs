//! Notifications between processes (`LISTEN`, `NOTIFY`). They make followers faster; without them, followers poll.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Row as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

use super::dsn::PostgresDsn;

/// The channel on which appends are announced.
const CHANNEL: &str = "flux_resourceset";

/// A setting that only the listening session has.
const MARK: &str = "flux_resourceset.listener";

/// How long to wait for a step, and before the next attempt after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Sends and receives notifications until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    receiving: JoinHandle<()>,
    sending: JoinHandle<()>,
    pending: Arc<Notify>,
}

impl Listener {
    /// Starts to listen, and calls `appended` for each notification.
    pub(super) fn start(dsn: &PostgresDsn, appended: Arc<Notify>) -> Self {
        let pending = Arc::new(Notify::new());
        let receiving = tokio::spawn(receive(dsn.clone(), appended));
        let sending = tokio::spawn(send(dsn.clone(), pending.clone()));
        Self { receiving, sending, pending }
    }

    /// Notifies the other processes of an append. This is not part of any transaction, and nothing waits for it: a process that
    /// is not notified polls.
    pub(super) fn notify(&self) {
        self.pending.notify_one();
    }

    pub(super) fn stop(&self) {
        self.receiving.abort();
        self.sending.abort();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn receive(dsn: PostgresDsn, appended: Arc<Notify>) {
    // A shared session must not listen: the next client of the pooler would get our notifications. A pooler does not pass this
    // setting on, so a session that has it is ours alone.
    let mark = crate::new_store_id().to_string();
    let options = dsn.options.options([(MARK, &mark)]);
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(RETRY_DELAY).connect_lazy_with(options);
    let listen = async || -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&pool).await?;
        let marked = super::query("SELECT current_setting($1, true)").bind(MARK).fetch_one(&mut listener).await?;
        if marked.try_get::<Option<&str>, _>(0)? != Some(&mark) {
            return Err(sqlx::Error::Protocol("a pooler shares this session with other clients".to_owned()));
        }
        listener.listen(CHANNEL).await?;
        tracing::debug!("listening for notifications of appends");
        // None means that the connection broke.
        while listener.try_recv().await?.is_some() {
            appended.notify_one();
        }
        Ok(())
    };
    loop {
        if let Err(error) = listen().await {
            tracing::debug!("cannot listen for notifications of appends; polling until the next attempt: {error}");
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn send(dsn: PostgresDsn, pending: Arc<Notify>) {
    let send = async || -> Result<(), sqlx::Error> {
        let connection = timeout(RETRY_DELAY, dsn.options.connect()).await;
        let mut connection = connection.map_err(|_| sqlx::Error::PoolTimedOut)??;
        loop {
            let sent = sqlx::raw_sql(AssertSqlSafe(format!("NOTIFY {CHANNEL}"))).execute(&mut connection);
            timeout(RETRY_DELAY, sent).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
            pending.notified().await;
        }
    };
    loop {
        pending.notified().await;
        if let Err(error) = send().await {
            tracing::debug!("cannot notify other processes of an append; they find it by polling: {error}");
        }
    }
}
