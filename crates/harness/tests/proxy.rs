//! The network that fails on demand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use harness::{LONG, Proxy};

/// A server that returns the data it receives, after a mark of its own.
fn echo(mark: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut chunk = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut chunk) {
                    stream.write_all(&[&[mark], &chunk[..length]].concat()).unwrap();
                }
            });
        }
    });
    port
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn exchange(stream: &mut TcpStream, what: &str) -> String {
    stream.write_all(what.as_bytes()).unwrap();
    let mut answer = vec![0; what.len() + 1];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    // Either side may be the first to notice.
    stream.read(&mut [0]).map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |length| length == 0)
}

/// Whether there is neither an answer nor an end.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.write_all(b"anyone?").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    stream.set_read_timeout(Some(LONG)).unwrap();
    error.kind() == ErrorKind::WouldBlock
}

#[test]
fn data_and_the_end_are_forwarded() {
    let proxy = Proxy::to(echo(b'a'));
    let mut stream = connect(&proxy);
    assert_eq!(exchange(&mut stream, "hello"), "ahello");
    assert_eq!(exchange(&mut stream, "again"), "aagain");
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_closed(&mut stream));
}

#[test]
fn a_cut_is_silent_until_it_is_healed() {
    let proxy = Proxy::to(echo(b'a'));
    let mut old = connect(&proxy);
    exchange(&mut old, "hello");
    proxy.cut();
    let mut new = connect(&proxy);
    assert!(is_silent(&mut old));
    assert!(is_silent(&mut new));
    proxy.heal();
    assert!(is_closed(&mut old));
    assert!(is_closed(&mut new));
    assert_eq!(exchange(&mut connect(&proxy), "hello"), "ahello");
}

#[test]
fn a_cut_may_stay_silent_for_the_connections_that_it_affected() {
    let proxy = Proxy::to(echo(b'a'));
    let mut old = connect(&proxy);
    exchange(&mut old, "hello");
    proxy.cut();
    proxy.heal_silently();
    assert!(is_silent(&mut old));
    assert_eq!(exchange(&mut connect(&proxy), "hello"), "ahello");
    assert!(is_silent(&mut old));
}

#[test]
fn the_end_of_a_connection_is_dropped_during_a_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::to(listener.local_addr().unwrap().port());
    let client = connect(&proxy);
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(LONG)).unwrap();
    proxy.cut();
    drop(client);
    assert!(is_silent(&mut server));
    proxy.heal();
    assert!(is_closed(&mut server));
}

#[test]
fn a_refused_connection_is_closed_at_once() {
    let proxy = Proxy::to(echo(b'a'));
    let mut old = connect(&proxy);
    exchange(&mut old, "hello");
    proxy.refuse();
    assert!(is_closed(&mut old));
    assert!(is_closed(&mut connect(&proxy)));
    proxy.heal();
    assert_eq!(exchange(&mut connect(&proxy), "hello"), "ahello");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "slowness is measured")]
fn a_slow_network_delays_both_directions() {
    let proxy = Proxy::to(echo(b'a'));
    let mut stream = connect(&proxy);
    proxy.slow(Duration::from_millis(50));
    let start = Instant::now();
    assert_eq!(exchange(&mut stream, "hello"), "ahello");
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_new_target_gets_the_new_connections() {
    let proxy = Proxy::to(echo(b'a'));
    let mut old = connect(&proxy);
    exchange(&mut old, "hello");
    proxy.retarget(echo(b'b'));
    assert!(is_closed(&mut old));
    assert_eq!(exchange(&mut connect(&proxy), "hello"), "bhello");
}

#[test]
fn the_port_is_closed_after_its_end() {
    let proxy = Proxy::to(echo(b'a'));
    let port = proxy.port();
    let mut old = connect(&proxy);
    exchange(&mut old, "hello");
    drop(proxy);
    assert!(is_closed(&mut old));
    harness::eventually("the port is free", &mut || TcpStream::connect(("127.0.0.1", port)).is_err());
}
