//! Answers that a good server rarely gives: told from a script, over a real connection.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use api::{BatchWrite, TypeDescription};
use client::{Client, ClientError, Edit, Settings, Token};
use model::Map;
use serde_json::json;

/// A server that gives these answers, one a connection, and tells what it was asked: the first line and the headers.
fn scripted(answers: Vec<(u16, &'static str, String)>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, hear) = mpsc::channel();
    thread::spawn(move || {
        for (status, headers, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut heard, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                heard += &line;
            }
            reader.take(length).read_to_end(&mut Vec::new()).unwrap();
            // Not every test listens.
            let _ = asked.send(heard);
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (url, hear)
}

fn problem(status: u16, code: &str) -> (u16, &'static str, String) {
    (status, "", json!({"status": status, "code": code, "detail": "not now"}).to_string())
}

fn client(url: &str) -> Client {
    let settings = Settings {
        url: url.to_owned(),
        read: Token::new("reading"),
        write: Token::new("writing"),
        reason: Some("größer".to_owned()),
        timeout: Duration::from_secs(30),
        retries: 3,
    };
    Client::new(settings).unwrap()
}

fn namespaces() -> TypeDescription {
    let ty = json!({
        "kind": "namespace", "plural": "namespaces", "path": "namespaces", "description": "", "patchable": false,
        "nest": {}, "filters": [], "schema": {}, "list": "namespaces"
    });
    serde_json::from_value(ty).unwrap()
}

fn made() -> (u16, &'static str, String) {
    (200, "x-revision: 7\r\n", "{}".to_owned())
}

#[test]
fn a_redirect_is_told_and_the_token_goes_nowhere_else() {
    let (elsewhere, heard_elsewhere) = scripted(vec![(200, "", "[]".to_owned())]);
    let location: &'static str = Box::leak(format!("location: {elsewhere}/clusters\r\n").into_boxed_str());
    let (url, _) = scripted(vec![(302, location, String::new())]);
    let error = client(&url).list(&namespaces(), &[]).unwrap_err();
    assert!(error.to_string().contains(&format!("sends its clients to {elsewhere}")), "{error}");
    assert!(heard_elsewhere.try_recv().is_err());
}

#[test]
fn all_pages_of_problems_are_asked_for_and_no_more_than_are_wanted() {
    let page = |ids: &[&str]| {
        let problem = |id| json!({"kind": "cluster", "id": id, "pointer": "", "rule": "r", "message": "m"});
        let problems: Vec<_> = ids.iter().map(problem).collect();
        (200, "x-total-count: 3\r\n", json!(problems).to_string())
    };
    let (url, heard) = scripted(vec![page(&["a", "b"]), page(&["c"])]);
    let filters = [("rule".to_owned(), "r".to_owned())];
    let (problems, total) = client(&url).problems(&filters, None).unwrap();
    let ids: Vec<_> = problems.iter().map(|problem| problem.id.as_str()).collect();
    assert_eq!((ids, total), (vec!["a", "b", "c"], 3));
    assert!(heard.recv().unwrap().starts_with("GET /problems?rule=r&limit=10000&offset=0 "));
    assert!(heard.recv().unwrap().starts_with("GET /problems?rule=r&limit=10000&offset=2 "));

    let (url, heard) = scripted(vec![page(&["a", "b"])]);
    let (problems, total) = client(&url).problems(&[], Some(2)).unwrap();
    assert_eq!((problems.len(), total), (2, 3));
    assert!(heard.recv().unwrap().starts_with("GET /problems?limit=2&offset=0 "));

    // A server from before there were pages answers all of them.
    let (url, _) = scripted(vec![(200, "", page(&["a", "b", "c"]).2)]);
    assert_eq!(client(&url).problems(&[], None).unwrap().0.len(), 3);
}

#[test]
fn reads_are_tried_again_and_writes_only_where_that_is_safe() {
    let (url, _) = scripted(vec![problem(503, "store-unavailable"), (200, "", "[]".to_owned())]);
    assert_eq!(client(&url).list(&namespaces(), &[]).unwrap().len(), 0);

    let create = Edit::create(&namespaces(), Map::new());
    let (url, _) = scripted(vec![problem(503, "busy"), made()]);
    assert_eq!(client(&url).make(&create).unwrap().revision, 7, "nothing was done before");

    let (url, _) = scripted(vec![problem(503, "store-unavailable"), made()]);
    assert_eq!(client(&url).make(&create).unwrap_err().status(), Some(503), "it may have been created already");

    let replace = Edit::replace(&namespaces(), "a", Map::new());
    let (url, _) = scripted(vec![problem(503, "store-unavailable"), made()]);
    assert_eq!(client(&url).make(&replace).unwrap_err().status(), Some(503), "others may have written since");

    let (url, heard) = scripted(vec![problem(503, "store-unavailable"), made()]);
    assert_eq!(
        client(&url).make(&replace.clone().on(6, model::Epoch::default())).unwrap_err().status(),
        Some(503),
        "it may be made already"
    );
    assert!(heard.recv().unwrap().starts_with("PUT /namespaces/a?expected_revision=6 "));

    let plan = json!({"dry_run": true, "revision": 6, "documents": [], "clusters": [], "totals": {}}).to_string();
    let (url, heard) = scripted(vec![problem(503, "store-unavailable"), (200, "", plan)]);
    assert_eq!(client(&url).plan(&replace).unwrap().revision, 6, "a plan is a read");
    assert!(heard.recv().unwrap().starts_with("PUT /namespaces/a?dry_run=true "));

    let delete = BatchWrite::Delete { kind: "namespace".to_owned(), id: "a".to_owned(), cascade: false };
    let (url, _) = scripted(vec![problem(503, "store-unavailable"), made()]);
    assert_eq!(client(&url).make(&Edit::batch(vec![delete])).unwrap_err().status(), Some(503));

    let (url, _) = scripted((0..4).map(|_| problem(503, "not-ready")).collect());
    assert_eq!(client(&url).list(&namespaces(), &[]).unwrap_err().status(), Some(503), "not for ever");
}

#[test]
fn what_is_no_server_of_ours_is_told_apart() {
    let (url, _) = scripted(vec![(502, "", "<html>a proxy</html>".to_owned()), (200, "", "<html>".to_owned())]);
    let client = client(&url);
    let error = client.list(&namespaces(), &[]).unwrap_err();
    assert!(error.problem().is_some_and(|problem| problem.code.is_empty()), "{error:?}");
    assert!(matches!(client.list(&namespaces(), &[]).unwrap_err(), ClientError::Strange { .. }));
}

#[test]
fn ids_and_queries_are_escaped_and_tokens_and_reasons_are_sent() {
    let (url, heard) = scripted(vec![(200, "", "{}".to_owned()), (200, "", "[]".to_owned()), made()]);
    let client = client(&url);
    client.get(&namespaces(), "../a?b#c%d é", None).unwrap();
    let asked = heard.recv().unwrap();
    assert!(asked.starts_with("GET /namespaces/..%2Fa%3Fb%23c%25d%20%C3%A9 HTTP/1.1"), "{asked}");
    assert!(asked.to_lowercase().contains("authorization: bearer reading"), "{asked}");
    client.list(&namespaces(), &[("label".to_owned(), "a=b&c".to_owned())]).unwrap();
    assert!(heard.recv().unwrap().starts_with("GET /namespaces?label=a%3Db%26c HTTP/1.1"));
    client.make(&Edit::delete(&namespaces(), "a", true)).unwrap();
    let asked = heard.recv().unwrap();
    assert!(asked.starts_with("DELETE /namespaces/a?cascade=true"), "{asked}");
    assert!(asked.contains("Bearer writing") && asked.contains("x-change-reason: größer"), "{asked}");
}

#[test]
fn a_word_about_the_log_is_for_the_log_that_was_looked_at() {
    let (url, heard) = scripted(vec![(200, "x-revision: 4\r\n", json!({"revision": 4}).to_string())]);
    let digest = "ab".repeat(32);
    let made = client(&url)
        .make(&Edit::accept_log(&digest.parse().unwrap(), Some(&"cd".repeat(32).parse().unwrap())))
        .unwrap();
    assert_eq!(made.revision, 4);
    let asked = heard.recv().unwrap();
    assert!(
        asked.starts_with(&format!("POST /store/accept?expected_digest={digest}&served={} ", "cd".repeat(32))),
        "{asked}"
    );
}

#[test]
fn addresses_and_reasons_that_cannot_be_used_are_refused_at_once() {
    let settings = |url: &str, reason: &str| Settings {
        url: url.to_owned(),
        read: None,
        write: None,
        reason: Some(reason.to_owned()),
        timeout: Duration::from_secs(1),
        retries: 0,
    };
    for url in ["", "fleet.example.com", "ftp://x", "http://", "http://user:secret@x", "http://x?y=z"] {
        let refused = Client::new(settings(url, "r"));
        assert!(matches!(refused, Err(ClientError::Address { .. })), "{url}");
    }
    assert!(matches!(Client::new(settings("http://x", "two\nlines")), Err(ClientError::Reason)));
    assert_eq!(format!("{:?}", Token::new("secret")), "Some(Token(…))");
}

#[test]
fn a_change_without_an_answer_may_have_been_made() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Takes the request, and is gone.
        let _ = stream.read(&mut [0; 1024]);
    });
    let error = client(&url).make(&Edit::create(&namespaces(), Map::new())).unwrap_err();
    assert!(matches!(error, ClientError::Uncertain { .. }), "{error:?}");
    for answer in
        [(504, "", "<html>".to_owned()), (200, "", "{}".to_owned()), (200, "x-revision: 7\r\n", "<".to_owned())]
    {
        let (url, _) = scripted(vec![answer]);
        let error = client(&url).make(&Edit::create(&namespaces(), Map::new())).unwrap_err();
        assert!(matches!(error, ClientError::Uncertain { .. }), "{error:?}");
    }
    let error = client("http://127.0.0.1:1").make(&Edit::create(&namespaces(), Map::new())).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
}
