//! Connections: accepted, limited, and closed in an orderly way.
//!
//! hyper reads and writes HTTP. A connection is served by the runtime that fits its first request: polls by the runtime on
//! which connections are accepted, everything else by another one, so that a poll never waits behind the chunks of a large
//! response. The first bytes are only peeked at for that; every request gets the same service, whichever runtime it is.
//!
//! Flux Operator opens a connection for every poll and leaves it idle, so connections are many and short. A client
//! that is slow to send its headers, to send the next request or to read its response is disconnected, and the request line
//! and the headers have a size limit; no client can block the server by holding a connection.

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
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tokio_io_timeout::TimeoutStream;

/// What a client may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for the headers of a request, and so for the pause between two requests.
    pub header_timeout: Duration,
    /// Time within which a client must read some of what it is sent.
    pub write_timeout: Duration,
    /// Bytes for the request line and all headers together.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Connections at a time; more wait in the queue of the kernel.
    pub connections: usize,
    /// Time for requests that are under way when the server stops.
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

/// Listens at an address. Every accepted connection inherits the options that are set here.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    deferred_accept::enable(&socket)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The kernel reports a connection only once its first bytes have arrived, so that the server is woken once instead of
/// twice. Without it, a poll on a connection of its own takes a fifth longer.
#[cfg(target_os = "linux")]
mod deferred_accept {
    use std::{io, os::fd::AsFd};

    use nix::{
        libc, setsockopt_impl,
        sys::socket::{setsockopt, sockopt::SetStruct},
    };

    #[derive(Clone)]
    struct DeferAccept;

    setsockopt_impl!(DeferAccept, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, libc::c_int, SetStruct<'_, libc::c_int>);

    /// A connection that stays silent for longer is accepted, and the header timeout applies to it.
    const SECONDS: libc::c_int = 1;

    pub(super) fn enable(socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, DeferAccept, &SECONDS)?)
    }
}

/// How a request for inputs begins on the wire.
const POLL_START: &[u8] = b"GET /api/v2/flux/clusters/";

/// Serves until `stop` comes, then finishes the requests that are under way. `service_for` makes the service of a connection from
/// the address of its client. Connections that do not begin with a poll are served by the runtime `others`.
pub async fn serve<S, B>(
    listener: TcpListener,
    service_for: impl Fn(SocketAddr) -> S,
    others: Handle,
    limits: Limits,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let (stopping, _) = watch::channel(false);
    let limits = Arc::new(limits);
    let slots = Arc::new(Semaphore::new(limits.connections));
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let slot = slots.clone().acquire_owned().await.ok();
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = Connection {
                    peer,
                    service: service_for(peer),
                    limits: limits.clone(),
                    stopping: stopping.subscribe(),
                    _slot: slot,
                };
                tokio::spawn(connection.run(stream, others.clone()));
            }
            Err(error) => {
                // Most likely the process has no file descriptor left; other connections are about to be closed.
                tracing::warn!("a connection could not be accepted: {error}; accepting again in 100 ms");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    tracing::info!("stopping: no new connections are accepted");
    stopping.send_replace(true);
    if tokio::time::timeout(limits.drain_timeout, stopping.closed()).await.is_err() {
        let seconds = limits.drain_timeout.as_secs();
        tracing::warn!("some requests were still under way after {seconds} s and are aborted");
    }
}

/// Turns true when the server stops.
type Stopping = watch::Receiver<bool>;

/// One accepted connection.
struct Connection<S> {
    peer: SocketAddr,
    service: S,
    limits: Arc<Limits>,
    stopping: Stopping,
    _slot: Option<OwnedSemaphorePermit>,
}

impl<S, B> Connection<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    /// Serves the connection on this runtime if it begins with a poll, and else on another one.
    async fn run(mut self, stream: TcpStream, others: Handle) {
        let begins_with_poll = tokio::select! {
            biased;
            begins = begins_with_poll(&stream) => begins,
            () = tokio::time::sleep(self.limits.header_timeout) => return,
            _ = self.stopping.wait_for(|stop| *stop) => return,
        };
        match begins_with_poll {
            Ok(true) => self.serve(stream).await,
            Ok(false) => match stream.into_std() {
                Ok(stream) => drop(others.spawn(async move {
                    match TcpStream::from_std(stream) {
                        Ok(stream) => self.serve(stream).await,
                        Err(error) => self.closed_early(&error),
                    }
                })),
                Err(error) => self.closed_early(&error),
            },
            Err(error) => self.closed_early(&error),
        }
    }

    /// Answers every request of the connection.
    async fn serve(self, stream: TcpStream) {
        let Self { peer, service, limits, mut stopping, _slot } = self;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.write_timeout));
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_timeout)
                .max_buf_size(limits.head_bytes)
                .max_headers(limits.headers)
                .serve_connection(TokioIo::new(Box::pin(stream)), service)
        );
        let served = async {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
            }
            connection.await
        };
        if let Err(error) = served.await {
            tracing::debug!(client.address = %peer, "a connection was closed early: {error}");
        }
    }

    fn closed_early(&self, error: &io::Error) {
        tracing::debug!(client.address = %self.peer, "a connection was closed early: {error}");
    }
}

/// Whether the first request looks like a poll. A poll that arrives in several packets may be taken for another request: it
/// is then served by the other runtime, and gets the same answer.
async fn begins_with_poll(stream: &TcpStream) -> io::Result<bool> {
    let mut start = [0; POLL_START.len()];
    let length = stream.peek(&mut start).await?;
    Ok(start[..length] == *POLL_START)
}
