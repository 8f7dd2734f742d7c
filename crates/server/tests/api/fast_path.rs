//! Usual polls are answered by the fast path before the router, and compressed for clients that accept it. Neither may change
//! the answer.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use flate2::read::GzDecoder;
use model::Value;
use serde_json::json;

use crate::harness::Server;

const PATH: &str = "/api/v2/flux/clusters/one.example/namespaces";

/// A cluster with enough namespaces for an answer that is compressed.
fn server() -> Server {
    let ids: Vec<_> = (0..20).map(|at| format!("namespace-{at}")).collect();
    let namespaces: Vec<_> = ids.iter().map(|id| json!({"id": id, "labels": {"team": "platform"}})).collect();
    let references: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
    Server::crud_with(&json!({
        "namespaces": namespaces,
        "clusters": [
            {"cluster_name": "one", "cluster_dns": "one.example", "environment": "dev", "namespaces": references},
            {"cluster_name": "two", "cluster_dns": "two.example", "environment": "dev"},
        ],
    }))
}

/// The content encoding and the decoded body of a poll's answer.
fn poll(server: &Server, path: &str, accept_encoding: &str) -> (Option<String>, Value) {
    let mut answer = ureq::get(format!("http://{}{path}", server.address()))
        .header("authorization", "Bearer read-token")
        .header("accept-encoding", accept_encoding)
        .call()
        .unwrap();
    let encoding = answer.headers().get("content-encoding").map(|it| it.to_str().unwrap().to_owned());
    let sent = answer.body_mut().read_to_vec().unwrap();
    let mut text = String::new();
    match encoding {
        Some(_) => drop(GzDecoder::new(&*sent).read_to_string(&mut text).unwrap()),
        None => text = String::from_utf8(sent).unwrap(),
    }
    (encoding, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_compressed_answer_is_the_same_answer() {
    let server = server();
    let plain = server.get(PATH).json();
    for (accept_encoding, encoding) in [
        ("gzip", Some("gzip")),
        ("deflate, GZIP;q=0.5", Some("gzip")),
        ("identity", None),
        ("gzip;q=0", None),
        ("gzip; q=0.000", None),
        ("br", None),
        ("gzipped", None),
    ] {
        // The second answer comes from the cache.
        for _ in 0..2 {
            assert_eq!(
                poll(&server, PATH, accept_encoding),
                (encoding.map(ToOwned::to_owned), plain.clone()),
                "{accept_encoding}"
            );
        }
    }
    assert_eq!(poll(&server, "/api/v2/flux/clusters/two.example/namespaces", "gzip"), (None, json!({"inputs": []})));
}

#[test]
fn a_compressed_answer_is_never_older_than_a_plain_one() {
    let server = server();
    let mut seen = vec![poll(&server, PATH, "gzip").1];
    let writes: [(&str, &str, Value); 4] = [
        ("PATCH", "/namespaces/namespace-3", json!({"labels": {"team": "other"}})),
        ("DELETE", "/clusters/one/namespaces/namespace-19", Value::Null),
        ("DELETE", "/namespaces/namespace-4?cascade=true", Value::Null),
        ("PATCH", "/clusters?all=true", json!({"environment": "prod"})),
    ];
    for (method, path, body) in writes {
        let status = server.write(method, path, &body, &[]).status;
        assert!((200..300).contains(&status), "{method} {path}: {status}");
        let (encoding, answer) = poll(&server, PATH, "gzip");
        assert_eq!((encoding.as_deref(), &answer), (Some("gzip"), &server.get(PATH).json()), "{method} {path}");
        seen.push(answer);
    }
    seen.dedup();
    assert!(seen.len() > 3, "the answers did change");
    assert_eq!(server.delete("/clusters/one").status, 200);
    assert_eq!(poll(&server, PATH, "gzip"), (None, json!({"inputs": []})));
}

#[test]
fn an_unusual_poll_gets_the_same_answer() {
    let server = server();
    let plain = server.get(PATH).json();
    for path in ["/api/v2/flux/clusters/ONE.Example./namespaces", "/api/v2/flux/clusters/one%2Eexample/name%73paces"] {
        assert_eq!(server.get(path).json(), plain, "{path}");
    }
    for query in ["?empty=explicit", "?empty=explici%74"] {
        assert_eq!(server.get(&format!("{PATH}{query}")).json(), plain, "{query}");
        let none = server.get(&format!("/api/v2/flux/clusters/two.example/namespaces{query}")).json();
        assert_eq!(none["inputs"][0]["id"], "none", "{query}");
    }
    for (path, token, status) in [
        (PATH.to_owned(), "Bearer wrong", 401),
        (PATH.to_owned(), "bearer  read-token", 200),
        (format!("{PATH}?empty=yes"), "Bearer read-token", 400),
        (format!("{PATH}/"), "Bearer read-token", 404),
        (PATH.replace("namespaces", "nothing"), "Bearer read-token", 404),
        (PATH.replace("one", "three"), "Bearer read-token", 404),
    ] {
        assert_eq!(server.request("GET", &path, Some(token)).status, status, "{path} {token}");
    }
    let head = server.request("HEAD", PATH, Some("Bearer read-token"));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

/// Sends all requests together, and reads until the server ends the connection.
fn exchange(server: &Server, requests: &str) -> String {
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(requests.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    answers
}

#[test]
fn the_fast_path_and_the_router_give_the_same_response() {
    let server = server();
    let answer = |path: &str, headers: &str| {
        let text = exchange(
            &server,
            &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer read-token\r\nConnection: close\r\n{headers}\r\n"),
        );
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let is_same = |line: &&str| !line.starts_with("date: ") && !line.starts_with("x-request-id: ");
        let mut head: Vec<_> = head.lines().filter(is_same).map(ToOwned::to_owned).collect();
        head.sort();
        assert!(text.contains("\r\ndate: ") && text.contains(" GMT\r\n"), "{text}");
        (head, body.to_owned())
    };
    let routed_path = PATH.replace("one.", "one%2E");
    assert_eq!(answer(PATH, ""), answer(&routed_path, ""));
    assert_eq!(answer(PATH, "X-Request-Id: mine\r\n"), answer(&routed_path, "X-Request-Id: mine\r\n"));
    assert_eq!(answer(PATH, ""), answer(PATH, "content-length: 0\r\n"), "an empty body makes no difference");
    let headers = "x-more: y\r\n".repeat(40);
    assert_eq!(answer(PATH, ""), answer(PATH, &headers), "many headers make no difference");
}

/// A no-break space is white space to Unicode, and no part of HTTP.
#[test]
fn only_spaces_and_tabs_around_a_token_are_ignored_on_both_paths() {
    let server = server();
    let routed_path = PATH.replace("one.", "one%2E");
    for (credentials, status) in [
        ("Bearer read-token", "200"),
        ("Bearer   read-token \t", "200"),
        ("Bearer \u{a0}read-token", "401"),
        ("Bearer read-token\u{a0}", "401"),
        ("Bearer read-token\u{3000}", "401"),
        ("Bearer read-token\u{85}", "401"),
    ] {
        for path in [PATH, &routed_path] {
            let request = format!("GET {path} HTTP/1.1\r\nAuthorization: {credentials}\r\nConnection: close\r\n\r\n");
            let answer = exchange(&server, &request);
            assert_eq!(&answer["HTTP/1.1 ".len()..][..3], status, "{credentials:?} {path}");
        }
    }
}

#[test]
fn requests_of_all_kinds_follow_one_another_on_one_connection() {
    let server = server();
    let request = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nauthorization: Bearer read-token\r\nx-request-id: {path}\r\n{more}\r\n")
    };
    let paths = [PATH, PATH, "/health", PATH, "/api/v2/flux/clusters/unknown.example/namespaces"];
    let mut all: Vec<_> = paths[..4].iter().map(|path| request(path, "")).collect();
    all.push(request(paths[4], "connection: close\r\n"));
    let answers = exchange(&server, &all.concat());
    let ids: Vec<_> = answers.lines().filter_map(|line| line.strip_prefix("x-request-id: ")).collect();
    assert_eq!(ids, paths, "{answers}");
    let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200", "200", "200", "404"], "{answers}");

    // A request that arrives in several packets.
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let text = format!("{}{}", request(PATH, ""), request(PATH, "connection: close\r\n"));
    for packet in text.as_bytes().chunks(text.len() * 3 / 4) {
        stream.write_all(packet).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}

#[test]
fn every_poll_has_an_id_and_is_counted_once() {
    let server = server();
    let ids: Vec<_> = (0..3).map(|_| server.get(PATH).headers["x-request-id"].to_str().unwrap().to_owned()).collect();
    assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'7'), "{ids:?}");
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    let given = server.exchange("GET", PATH, &[("authorization", "Bearer read-token"), ("x-request-id", "mine")], None);
    assert_eq!(given.headers["x-request-id"], "mine");
    // An escaped path is handled by the router.
    assert_eq!(server.get("/api/v2/flux/clusters/one%2Eexample/namespaces").status, 200);
    let metrics = server.get_open("/metrics").body;
    for line in [
        r#"flux_resourceset_polls_total{cluster="one",type="namespaces"} 5"#,
        r#"flux_resourceset_http_requests_total{method="GET",route="/api/v2/flux/clusters/{cluster_dns}/{type}",status="200"} 5"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn a_poll_that_is_refused_is_counted_once_too() {
    let large: Vec<_> =
        (0..5).map(|at| json!({"id": format!("large-{at}"), "annotations": {"x": "y".repeat(200_000)}})).collect();
    let references: Vec<_> = large.iter().map(|it| json!({"id": it["id"]})).collect();
    let one =
        json!({"cluster_name": "one", "cluster_dns": "one.example", "environment": "dev", "namespaces": references});
    let server = Server::seeded(&json!({"namespaces": large, "clusters": [one]}));
    assert_eq!(server.get(PATH).json()["code"], "answer-too-large");
    let metrics = server.get_open("/metrics").body;
    let line = r#"flux_resourceset_polls_total{cluster="one",type="namespaces"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}
