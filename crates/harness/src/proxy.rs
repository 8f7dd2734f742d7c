//! A network that fails on demand: a TCP proxy on loopback, between a client and a target. What befalls the network
//! befalls all of its connections, the old and the new.

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
enum Mode {
    Pass,
    Cut,
    Refuse,
    Slow(Duration),
    Over,
}

struct State {
    mode: Mode,
    target: u16,
    connections: Vec<Weak<Connection>>,
}

/// A TCP proxy. It passes everything until told otherwise.
pub struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// Starts a proxy to a port of 127.0.0.1.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { mode: Mode::Pass, target, connections: Vec::new() }));
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

    /// New connections go to another port. The old ones are closed.
    pub fn retarget(&self, target: u16) {
        self.state.lock().unwrap().target = target;
        self.close(|_| true);
    }

    /// Cuts the network: what is sent is swallowed, in both directions, and nobody is told. New connections are
    /// accepted and never answered.
    pub fn cut(&self) {
        self.switch(Mode::Cut);
        for connection in self.connections() {
            connection.cut.store(true, Ordering::SeqCst);
        }
    }

    /// Closes all connections, and new ones at once.
    pub fn refuse(&self) {
        self.switch(Mode::Refuse);
        self.close(|_| true);
    }

    /// Delays each chunk, in both directions.
    pub fn slow(&self, delay: Duration) {
        self.switch(Mode::Slow(delay));
    }

    /// Passes everything again. What a cut swallowed is lost, so the connections that lived through it are closed.
    pub fn heal(&self) {
        self.switch(Mode::Pass);
        self.close(|connection| connection.cut.load(Ordering::SeqCst));
    }

    /// Passes everything again, but connections that lived through a cut are never answered, and never told.
    pub fn heal_silently(&self) {
        self.switch(Mode::Pass);
    }

    fn switch(&self, mode: Mode) {
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
        self.switch(Mode::Over);
        self.close(|_| true);
        // Lets the listener see that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Takes a new connection. Whether there may be more.
fn accept(state: &Arc<Mutex<State>>, client: TcpStream) -> bool {
    let mut now = state.lock().unwrap();
    match now.mode {
        Mode::Over => return false,
        Mode::Refuse => return true,
        Mode::Pass | Mode::Cut | Mode::Slow(_) => {}
    }
    let cut = AtomicBool::new(now.mode == Mode::Cut);
    let connection = Arc::new(Connection { state: state.clone(), client, server: OnceLock::new(), cut });
    now.connections.retain(|connection| connection.strong_count() > 0);
    now.connections.push(Arc::downgrade(&connection));
    let target = now.target;
    thread::spawn(move || connection.serve(target));
    true
}

struct Connection {
    state: Arc<Mutex<State>>,
    client: TcpStream,
    server: OnceLock<TcpStream>,
    /// It has lost bytes and cannot be mended.
    cut: AtomicBool,
}

impl Connection {
    fn serve(self: Arc<Self>, target: u16) {
        if self.is_cut() {
            return swallow(&self.client);
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

    /// Carries what one end sends to the other, until there is no more.
    fn pump(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut chunk);
            let mode = self.state.lock().unwrap().mode;
            if let Mode::Slow(delay) = mode {
                thread::sleep(delay);
            }
            match read {
                // Nobody is told of an end either.
                _ if self.is_cut() => return swallow(from),
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

fn swallow(mut from: &TcpStream) {
    let mut chunk = vec![0; 64 * 1024];
    while from.read(&mut chunk).is_ok_and(|length| length > 0) {}
}
