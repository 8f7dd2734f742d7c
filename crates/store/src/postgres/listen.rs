//! Wake-up calls between processes. They make followers quick; without them, patience does.

use std::{sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Row as _,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

use super::dsn::PostgresDsn;

/// The channel on which appends are told.
const CHANNEL: &str = "flux_resourceset";

/// A setting that only the listening session has.
const MARK: &str = "flux_resourceset.listener";

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
    pub(super) fn start(dsn: &PostgresDsn, told: Arc<Notify>) -> Self {
        let news = Arc::new(Notify::new());
        let listening = tokio::spawn(listen(dsn.clone(), told));
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

async fn listen(dsn: PostgresDsn, told: Arc<Notify>) {
    // A session that is shared must not listen: whoever gets it next would be told. A pooler does not hand this setting on,
    // so a session that has it is ours alone.
    let mark = crate::name().to_string();
    let options = dsn.options.options([(MARK, &mark)]);
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(PAUSE).connect_lazy_with(options);
    let listen = async || -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(&pool).await?;
        let marked = super::query("SELECT current_setting($1, true)").bind(MARK).fetch_one(&mut listener).await?;
        if marked.try_get::<Option<&str>, _>(0)? != Some(&mark) {
            return Err(sqlx::Error::Protocol("the session is not ours alone".to_owned()));
        }
        listener.listen(CHANNEL).await?;
        tracing::debug!("the database tells of changes");
        // None is a connection that broke.
        while listener.try_recv().await?.is_some() {
            told.notify_one();
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
        let connection = timeout(PAUSE, dsn.options.connect()).await;
        let mut connection = connection.map_err(|_| sqlx::Error::PoolTimedOut)??;
        loop {
            let told = sqlx::raw_sql(AssertSqlSafe(format!("NOTIFY {CHANNEL}"))).execute(&mut connection);
            timeout(PAUSE, told).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
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
