//! The load generator, against a minimal server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use harness::{Load, eventually};

/// Starts a server that answers each request; returns its address.
fn serve(answer: impl Fn(&str) -> String + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || converse(stream, &answer));
        }
    });
    address
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&str) -> String) {
    stream.set_nodelay(true).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let authorised =
            lines.by_ref().take_while(|line| !line.is_empty()).any(|line| line.ends_with(": Bearer token"));
        assert!(authorised);
        // `any` stops early.
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        stream.write_all(answer(&path).as_bytes()).unwrap();
    }
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} Any\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
#[expect(clippy::print_stderr, reason = "people read the rate")]
fn every_request_is_counted() {
    let served = Arc::new(AtomicU64::new(0));
    let count = served.clone();
    let address = serve(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        answer(200, "a small answer")
    });
    let load = Load::start(vec![address], vec!["/a".into(), "/b".into()], "token", 2_000);
    thread::sleep(Duration::from_secs(3));
    let report = load.finish();
    eprintln!("{:.0} requests per second", report.achieved_per_second);
    assert!(report.sent > 0);
    assert_eq!(report.ok, report.sent, "{report:?}");
    assert_eq!(served.load(Ordering::Relaxed), report.sent);
    assert_eq!(report.longest["/a"], 14);
    assert_eq!(report.longest["/b"], 14);
    assert_eq!(report.shorter, [""; 0]);
}

#[test]
fn failures_are_reported_and_a_replica_may_get_another_address() {
    let good = serve(|_| answer(200, "good"));
    let bad = serve(|path| answer(if path == "/bad" { 503 } else { 200 }, "not now"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let load = Load::start(vec![closed, bad], vec!["/good".into(), "/bad".into()], "token", 200);
    eventually("there are errors", &mut || load.so_far().errors > 3);
    eventually("there are refusals", &mut || load.so_far().statuses.get(&503).is_some_and(|count| *count > 3));
    *load.addresses() = vec![good];
    let ok = load.so_far().ok;
    eventually("there are answers", &mut || load.so_far().ok > ok + 20);
    let report = load.finish();
    assert_eq!(report.sent, report.ok + report.errors + report.statuses[&503]);
    assert!(report.failed.iter().any(|line| line.ends_with("/bad: 503: not now")), "{report:?}");
}

#[test]
fn an_answer_that_is_shorter_than_an_earlier_one_is_reported() {
    let asked = Arc::new(AtomicU64::new(0));
    let address = serve(move |_| {
        let turn = asked.fetch_add(1, Ordering::Relaxed);
        answer(200, if turn == 40 { "short" } else { "as long as ever" })
    });
    let load = Load::start(vec![address], vec!["/".into()], "token", 200);
    eventually("60 requests are answered", &mut || load.so_far().ok > 60);
    let report = load.finish();
    assert_eq!(report.shorter.len(), 1, "{report:?}");
    assert!(report.shorter[0].ends_with(": 5 bytes, after 15"), "{report:?}");
}
