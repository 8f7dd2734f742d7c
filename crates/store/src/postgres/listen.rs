//! Wake-up calls between processes. They make followers quick; without them, patience does.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

use super::dsn::PostgresDsn;

/// The channel on which appends are told.
const CHANNEL: &str = "flux_resourceset";

/// How long to wait before the database is asked again to tell.
const PAUSE: Duration = Duration::from_secs(5);

/// Tells and listens until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    listening: JoinHandle<()>,
    telling: JoinHandle<()>,
    news: Arc<Notify>,
}

impl Listener {
    /// Hands every call on.
    pub(super) fn start(dsn: &PostgresDsn, appended: Arc<Notify>) -> Self {
        let news = Arc::new(Notify::new());
        let listening = tokio::spawn(listen(dsn.clone(), appended));
        let telling = tokio::spawn(tell(dsn.clone(), news.clone()));
        Self { listening, telling, news }
    }

    /// Tells everybody who listens. Not part of any change, and nobody waits for it: where it cannot be told, they look by
    /// themselves.
    pub(super) fn tell(&self) {
        self.news.notify_one();
    }

    pub(super) fn stop(&self) {
        self.listening.abort();
        self.telling.abort();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn listen(dsn: PostgresDsn, appended: Arc<Notify>) {
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(PAUSE).connect_lazy_with(dsn.options);
    let listen = async || -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        tracing::debug!("the database tells of changes");
        // None is a connection that broke.
        while listener.try_recv().await?.is_some() {
            appended.notify_one();
        }
        Ok(())
    };
    loop {
        if let Err(error) = listen().await {
            tracing::debug!("the database does not tell of changes, so it is asked: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn tell(dsn: PostgresDsn, news: Arc<Notify>) {
    let tell = async || -> Result<(), sqlx::Error> {
        let mut connection = dsn.options.connect().await?;
        loop {
            let told = sqlx::raw_sql(AssertSqlSafe(format!("NOTIFY {CHANNEL}"))).execute(&mut connection);
            timeout(PAUSE, told).await.map_err(|_| sqlx::Error::WorkerCrashed)??;
            news.notified().await;
        }
    };
    loop {
        news.notified().await;
        if let Err(error) = tell().await {
            tracing::debug!("the database is not told of changes: {error}");
        }
    }
}
