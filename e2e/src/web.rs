//! A small web server on loopback: the repository of charts, and a foreign server that answers instead of ours.

use std::{collections::BTreeMap, net::TcpListener, sync::Arc, thread};

use axum::{Router, extract::State, http::StatusCode, http::Uri};
use tokio::sync::oneshot;

/// The answers: files by path, or one answer to every request.
pub(crate) enum Answers {
    Files(BTreeMap<String, Vec<u8>>),
    Always(StatusCode, Vec<u8>),
}

/// A server; when it is dropped, it ends and its port is closed.
pub(crate) struct Web {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Web {
    pub(crate) fn start(port: u16, answers: Answers) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let router = Router::new().fallback(answer).with_state(Arc::new(answers));
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(State(answers): State<Arc<Answers>>, uri: Uri) -> (StatusCode, Vec<u8>) {
    match &*answers {
        Answers::Always(status, body) => (*status, body.clone()),
        Answers::Files(files) => match files.get(uri.path()) {
            Some(body) => (StatusCode::OK, body.clone()),
            None => (StatusCode::NOT_FOUND, Vec::new()),
        },
    }
}
