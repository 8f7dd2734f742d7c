//! Connections: slow clients and huge requests are refused, and a stop waits for requests.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use axum::{Router, routing::get};
use hyper_util::service::TowerToHyperService;
use nix::sys::signal::Signal;
use server::{Limits, listen, serve};
use tokio::{runtime::Handle, sync::oneshot};

use crate::harness::Server;

/// Sends text and reads until the server ends the connection.
fn talk(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may have closed the connection before it has read everything.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn huge_requests_are_refused() {
    let server = Server::demo();
    let address = server.address();
    let authorised = "host: x\r\nauthorization: Bearer read-token\r\nconnection: close\r\n";
    let body = talk(address, &format!("GET /problems HTTP/1.1\r\n{authorised}content-length: 99999999\r\n\r\n"));
    assert!(body.starts_with("HTTP/1.1 413 ") && body.contains("\"code\":\"body-too-large\""), "{body}");
    let header = talk(address, &format!("GET /health HTTP/1.1\r\nx-large: {}\r\n\r\n", "x".repeat(1_000_000)));
    assert!(header.starts_with("HTTP/1.1 431 "), "{header}");
    let many = talk(address, &format!("GET /health HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1_000)));
    assert!(many.starts_with("HTTP/1.1 431 "), "{many}");
    let line = talk(address, &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1_000_000)));
    assert!(line.starts_with("HTTP/1.1 4"), "{line}");
    assert!(talk(address, "this is not HTTP\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert_eq!(server.get_open("/health").status, 200, "the server still answers");
}

/// Serves a large and a small page with short timeouts.
fn serve_with_short_timeouts() -> (String, oneshot::Sender<()>) {
    let timeout = Duration::from_millis(300);
    serving(Limits { header_timeout: timeout, write_timeout: timeout, ..Limits::default() })
}

/// More than fits into the buffers of a connection.
const LARGE: usize = 64 * 1024 * 1024;

/// A path on the runtime of polls, and one on the other runtime.
const LARGE_PATHS: [&str; 2] = ["/api/v2/flux/clusters/large", "/large"];

fn serving(limits: Limits) -> (String, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let (listening, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        crate::harness::block_on(async move {
            let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
            listening.send(listener.local_addr().unwrap().to_string()).unwrap();
            let large = || get(async || "x".repeat(LARGE));
            let pages = Router::new().route("/small", get(async || "small"));
            let pages = LARGE_PATHS.into_iter().fold(pages, |pages, path| pages.route(path, large()));
            let service = TowerToHyperService::new(pages);
            serve(listener, |_| service.clone(), Handle::current(), limits, async { drop(stopped.await) }).await;
        });
    });
    (address.recv().unwrap(), stop)
}

#[test]
fn slow_clients_are_disconnected() {
    let (address, _stop) = serve_with_short_timeouts();
    assert_eq!(talk(&address, ""), "", "nothing at all");
    assert_eq!(talk(&address, "GET /small HTTP/1.1\r\nhost:"), "", "headers that never end");
    let idle = talk(&address, "GET /small HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(idle.ends_with("small"), "an idle connection is ended after its answer: {idle}");

    for path in LARGE_PATHS {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let mut taken = Vec::new();
        let _ = stream.read_to_end(&mut taken);
        assert!(taken.len() < LARGE, "the server does not wait for a client that does not read");
    }
    for path in LARGE_PATHS {
        let patient = talk(&address, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"));
        assert!(patient.len() > LARGE && patient.ends_with("xxx"), "a client that reads gets all: {}", patient.len());
    }
}

#[test]
fn connections_beyond_the_limit_wait_for_a_free_one() {
    let (address, _stop) =
        serving(Limits { connections: 1, header_timeout: Duration::from_secs(2), ..Limits::default() });
    let mut holder = TcpStream::connect(&address).unwrap();
    holder.write_all(b"GET /small HTTP/1.1\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let mut waiting = TcpStream::connect(&address).unwrap();
    waiting.write_all(b"GET /small HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "the one connection is taken");
    waiting.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("small"), "{answer}");
}

#[test]
fn an_incomplete_body_changes_nothing() {
    let server = Server::crud();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = "POST /namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer write-token\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}d\r\n{{\"id\": \"half\"\r\nthis is no chunk\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("\"code\":\"invalid-body\""), "{answer}");
    assert_eq!(server.get_open("/ready").json()["revision"], serde_json::json!(1));
}

#[test]
fn a_stop_lets_requests_finish_and_ends_the_process_with_success() {
    let poll = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces";
    for (signal, path, end) in [
        (Signal::SIGTERM, "/health", "{\"status\":\"ok\"}"),
        (Signal::SIGINT, "/health", "{\"status\":\"ok\"}"),
        (Signal::SIGTERM, poll, "}]}"),
    ] {
        let server = Server::demo();
        let mut idle = TcpStream::connect(server.address()).unwrap();
        idle.write_all(format!("GET {path} HTTP/1.1\r\nauthorization: Bearer read-token\r\n\r\n").as_bytes()).unwrap();
        let mut first = [0; 12];
        idle.read_exact(&mut first).unwrap();
        let mut silent = TcpStream::connect(server.address()).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        server.signal(signal);
        let mut rest = String::new();
        idle.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with(end), "{rest}");
        assert!(
            !matches!(silent.read(&mut first), Ok(1..)),
            "the server does not wait for a connection without a request"
        );
        assert_eq!(server.wait().code(), Some(0));
    }
}
