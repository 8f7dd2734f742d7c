//! Connections: accepted, limited, and ended politely.
//!
//! Flux Operator opens a connection for every poll and leaves it idle, so connections are many and short. A client
//! that is slow to send its headers, to send the next request or to read its answer is cut off, and a header or a
//! request line has a size; nobody can hold the server by holding a connection.

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    BoxError,
    body::Bytes,
    http::{Request, Response},
};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::Service,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_io_timeout::TimeoutStream;

/// What a client may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for the headers of a request, and so for the pause between two requests.
    pub header_timeout: Duration,
    /// Time in which a client must take some of what it is sent.
    pub write_timeout: Duration,
    /// Bytes for the request line and all headers together.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Connections at a time; more wait in the system's queue.
    pub connections: usize,
    /// Time for requests that are under way when the server is told to stop.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            head_bytes: 16 * 1024,
            headers: 64,
            connections: 16_384,
            drain_timeout: Duration::from_secs(20),
        }
    }
}

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens at an address. What is set here holds for every connection that is accepted, without being said again.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` comes, then finishes the requests that are under way.
pub async fn serve<S, B>(listener: TcpListener, service: S, limits: Limits, stop: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (service, limits, watcher) = (service.clone(), limits.clone(), graceful.watcher());
                tokio::spawn(async move {
                    connection(stream, service, &limits, watcher).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Most likely no file descriptor is left; others are about to be given back.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    tracing::info!("stopping: no new connections are accepted");
    if tokio::time::timeout(limits.drain_timeout, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
}

async fn connection<S, B>(stream: TcpStream, service: S, limits: &Limits, watcher: Watcher)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.head_bytes)
        .max_headers(limits.headers)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!("a connection ended early: {error}");
    }
}
