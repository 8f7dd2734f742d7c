//! A network that fails on demand: a TCP proxy on loopback, between a client and a target. A failure affects all connections, the
//! old and the new.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

#[derive(Clone, Copy, PartialEq)]
enum ProxyMode {
    Forward,
    Cut,
    Refuse,
    Slow(Duration),
    Ended,
}

struct ProxyState {
    mode: ProxyMode,
    target: u16,
    connections: Vec<Weak<Connection>>,
}

/// A TCP proxy. At first it forwards everything.
pub struct Proxy {
    port: u16,
    state: Arc<Mutex<ProxyState>>,
}

impl Proxy {
    /// Starts a proxy to a port of 127.0.0.1.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(ProxyState { mode: ProxyMode::Forward, target, connections: Vec::new() }));
        thread::spawn({
            let state = state.clone();
            move || listener.incoming().map_while(Result::ok).all(|client| accept(&state, client))
        });
        Self { port, state }
    }

    /// Its own port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forwards new connections to another port, and closes the old ones.
    pub fn retarget(&self, target: u16) {
        self.state.lock().unwrap().target = target;
        self.close(|_| true);
    }

    /// Cuts the network: data is silently dropped, in both directions. New connections are accepted and never answered.
    pub fn cut(&self) {
        self.switch(ProxyMode::Cut);
        for connection in self.connections() {
            connection.cut.store(true, Ordering::SeqCst);
        }
    }

    /// Closes all connections, and new ones as soon as they are accepted.
    pub fn refuse(&self) {
        self.switch(ProxyMode::Refuse);
        self.close(|_| true);
    }

    /// Delays each chunk, in both directions.
    pub fn slow(&self, delay: Duration) {
        self.switch(ProxyMode::Slow(delay));
    }

    /// Forwards everything again. Data that a cut dropped is lost, so the connections that it affected are closed.
    pub fn heal(&self) {
        self.switch(ProxyMode::Forward);
        self.close(|connection| connection.cut.load(Ordering::SeqCst));
    }

    /// Forwards new connections again, but connections that a cut affected stay open and are never answered.
    pub fn heal_silently(&self) {
        self.switch(ProxyMode::Forward);
    }

    fn switch(&self, mode: ProxyMode) {
        self.state.lock().unwrap().mode = mode;
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.state.lock().unwrap().connections.iter().filter_map(Weak::upgrade).collect()
    }

    fn close(&self, which: impl Fn(&Connection) -> bool) {
        self.connections().iter().filter(|connection| which(connection)).for_each(|connection| connection.close());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.switch(ProxyMode::Ended);
        self.close(|_| true);
        // Wakes the listener, so that it ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Handles a new connection; returns whether to accept more.
fn accept(state: &Arc<Mutex<ProxyState>>, client: TcpStream) -> bool {
    let mut now = state.lock().unwrap();
    match now.mode {
        ProxyMode::Ended => return false,
        ProxyMode::Refuse => return true,
        ProxyMode::Forward | ProxyMode::Cut | ProxyMode::Slow(_) => {}
    }
    let cut = AtomicBool::new(now.mode == ProxyMode::Cut);
    let connection = Arc::new(Connection { state: state.clone(), client, server: OnceLock::new(), cut });
    now.connections.retain(|connection| connection.strong_count() > 0);
    now.connections.push(Arc::downgrade(&connection));
    let target = now.target;
    thread::spawn(move || connection.serve(target));
    true
}

struct Connection {
    state: Arc<Mutex<ProxyState>>,
    client: TcpStream,
    server: OnceLock<TcpStream>,
    /// Whether it has lost bytes, so that it cannot continue.
    cut: AtomicBool,
}

impl Connection {
    fn serve(self: Arc<Self>, target: u16) {
        if self.is_cut() {
            return discard(&self.client);
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { return self.close() };
        let server = self.server.get_or_init(|| server);
        for end in [&self.client, server] {
            end.set_nodelay(true).unwrap();
        }
        thread::spawn({
            let connection = self.clone();
            move || connection.pump(connection.server.get().unwrap(), &connection.client)
        });
        self.pump(&self.client, server);
    }

    /// Forwards the data of one end to the other, until its end.
    fn pump(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut chunk);
            let mode = self.state.lock().unwrap().mode;
            if let ProxyMode::Slow(delay) = mode {
                thread::sleep(delay);
            }
            match read {
                // The end of a connection is dropped too.
                _ if self.is_cut() => return discard(from),
                Ok(0) => return drop(to.shutdown(Shutdown::Write)),
                Ok(length) if to.write_all(&chunk[..length]).is_ok() => {}
                Ok(_) | Err(_) => return self.close(),
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    fn close(&self) {
        for end in [Some(&self.client), self.server.get()].into_iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn discard(mut from: &TcpStream) {
    let mut chunk = vec![0; 64 * 1024];
    while from.read(&mut chunk).is_ok_and(|length| length > 0) {}
}
