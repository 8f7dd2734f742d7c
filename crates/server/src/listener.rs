//! Connections: accepted, limited, and ended politely.
//!
//! What comes whole and can be answered at once goes a short way. At the first request that cannot, a connection is handed
//! over to those who know all of HTTP, with what has been received, and stays there: on another runtime, so that whatever is
//! asked there, a poll never waits in the same queue.
//!
//! Flux Operator opens a connection for every poll and leaves it idle, so connections are many and short. A client
//! that is slow to send its headers, to send the next request or to read its answer is cut off, and a header or a
//! request line has a size; nobody can hold the server by holding a connection.

use std::{
    convert::Infallible,
    io::{self, Cursor, IoSlice},
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    time::Duration,
};

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
    io::{AsyncReadExt as _, join},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
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
    #[cfg(target_os = "linux")]
    silence::leave_to_the_system(&socket)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Connections that do not say anything yet stay with the system: it tells of one once its request is there, for which the
/// server is then woken once instead of twice. That is a fifth of a poll with a connection of its own.
#[cfg(target_os = "linux")]
mod silence {
    use std::{io, os::fd::AsFd};

    use nix::{
        libc, setsockopt_impl,
        sys::socket::{setsockopt, sockopt::SetStruct},
    };

    #[derive(Clone)]
    struct DeferAccept;

    setsockopt_impl!(DeferAccept, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, libc::c_int, SetStruct<'_, libc::c_int>);

    /// Who says nothing for longer is the server's to be patient with.
    const SECONDS: libc::c_int = 1;

    pub(super) fn leave_to_the_system(socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, DeferAccept, &SECONDS)?)
    }
}

/// Answers requests from the bytes in which they come, where it can.
pub trait Shortcut: Clone + Send + Sync + 'static {
    /// The body of an answer.
    type Body: AsRef<[u8]> + Send;

    /// The answer to the first request that has been received, and its head; none, if it is not whole or not for here.
    fn answer(&self, received: &[u8], head: &mut Vec<u8>) -> Option<Reply<Self::Body>>;
}

/// An answer without its head.
#[derive(Debug)]
pub struct Reply<B> {
    /// How long the request is.
    pub request: usize,
    /// The body.
    pub body: B,
    /// Whether the connection ends with it.
    pub last: bool,
}

/// Serves until `stop` comes, then finishes the requests that are under way. Connections that ask for anything but what the
/// shortcut answers go to another runtime.
pub async fn serve<F, S, B>(
    listener: TcpListener,
    shortcut: F,
    (service, runtime): (S, Handle),
    limits: Limits,
    stop: impl Future<Output = ()>,
) where
    F: Shortcut,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let (stopping, _) = watch::channel(false);
    let limits = Arc::new(limits);
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
            Ok((stream, peer)) => {
                let service = FromPeer { peer: PeerAddress(peer), service: service.clone() };
                let (shortcut, runtime) = (shortcut.clone(), runtime.clone());
                let (limits, stopping) = (limits.clone(), stopping.subscribe());
                tokio::spawn(connection(stream, shortcut, (service, runtime), limits, (stopping, place)));
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
    stopping.send_replace(true);
    if tokio::time::timeout(limits.drain_timeout, stopping.closed()).await.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
}

/// Who is at the other end of the connection over which a request came. A proxy between is who that is; what it says of its
/// clients (`X-Forwarded-For`) anybody can say, so it is not taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// A service that is told from whom its requests come.
struct FromPeer<S> {
    peer: PeerAddress,
    service: S,
}

impl<S: Service<Request<Incoming>>> Service<Request<Incoming>> for FromPeer<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<Incoming>) -> S::Future {
        request.extensions_mut().insert(self.peer);
        self.service.call(request)
    }
}

/// Turns true when the server stops.
type Stopping = watch::Receiver<bool>;

async fn connection<F, S, B>(
    mut stream: TcpStream,
    shortcut: F,
    (service, runtime): (FromPeer<S>, Handle),
    limits: Arc<Limits>,
    (mut stopping, place): (Stopping, Option<OwnedSemaphorePermit>),
) where
    F: Shortcut,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let PeerAddress(peer) = service.peer;
    let ended = move |error: BoxError| tracing::debug!(client.address = %peer, "a connection ended early: {error}");
    let moved = match short_way(&mut stream, &shortcut, &limits, &mut stopping).await {
        Ok(None) => return,
        Ok(Some(received)) => stream.into_std().map(|stream| (stream, received)),
        Err(error) => Err(error),
    };
    let (stream, received) = match moved {
        Ok(moved) => moved,
        Err(error) => return ended(error.into()),
    };
    runtime.spawn(async move {
        let served = async {
            // From here on, the other runtime looks after it.
            let stream = TcpStream::from_std(stream)?;
            Ok::<_, BoxError>(long_way(stream, received, service, &limits, stopping).await?)
        };
        served.await.unwrap_or_else(ended);
        drop(place);
    });
}

/// What is received at once. A request that is longer goes the long way.
const RECEIVED: usize = 4 * 1024;

/// Answers what can be answered at once. Of the first request that cannot, what has been received of it is for the long way;
/// nothing is, if the connection has come to its end.
async fn short_way(
    stream: &mut TcpStream,
    shortcut: &impl Shortcut,
    limits: &Limits,
    stopping: &mut Stopping,
) -> io::Result<Option<Vec<u8>>> {
    let (mut received, mut head) = (Vec::with_capacity(RECEIVED), Vec::new());
    let mut patience = pin!(tokio::time::sleep(limits.header_timeout));
    let mut stopped = pin!(stopping.wait_for(|stop| *stop));
    loop {
        tokio::select! {
            biased;
            read = stream.read_buf(&mut received) => if read? == 0 {
                return Ok(None);
            },
            () = &mut patience => return Ok(None),
            _ = &mut stopped => return Ok(None),
        }
        while let Some(Reply { request, body, last }) = shortcut.answer(&received, &mut head) {
            received.drain(..request);
            send(stream, [&head, body.as_ref()], limits.write_timeout).await?;
            if last {
                return Ok(None);
            }
        }
        if !received.is_empty() {
            return Ok(Some(received));
        }
        patience.as_mut().reset(Instant::now() + limits.header_timeout);
    }
}

/// Sends a head and a body.
async fn send(stream: &TcpStream, parts: [&[u8]; 2], patience: Duration) -> io::Result<()> {
    let mut parts = parts.map(IoSlice::new);
    let mut parts = &mut parts[..];
    while !parts.is_empty() {
        match stream.try_write_vectored(parts) {
            Ok(sent) => IoSlice::advance_slices(&mut parts, sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::timeout(patience, stream.writable()).await??;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Answers everything that comes over a connection from here on.
async fn long_way<S, B>(
    stream: TcpStream,
    received: Vec<u8>,
    service: S,
    limits: &Limits,
    mut stopping: Stopping,
) -> hyper::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let (reader, writer) = stream.into_split();
    let mut stream = TimeoutStream::new(join(Cursor::new(received).chain(reader), writer));
    stream.set_write_timeout(Some(limits.write_timeout));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(limits.head_bytes)
            .max_headers(limits.headers)
            .serve_connection(TokioIo::new(Box::pin(stream)), service)
    );
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
