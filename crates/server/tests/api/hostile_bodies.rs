//! No request body can crash a server, and no saved document can make the fleet unreadable.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use model::{Body, Op, Value};
use serde_json::json;

use crate::{
    harness::{Answer, Server},
    operators::fleet_of,
};

const CLUSTER: &str = "/clusters/demo-cluster-01";
const JSON_PATCH: (&str, &str) = ("content-type", "application/json-patch+json");

/// The peak memory that no request here may reach.
const MOST_MIB: u64 = 512;

fn peak_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

/// A value of so many nested objects.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn send(server: &Server, method: &str, path: &str, media: &str, body: String) -> Answer {
    let headers = [("authorization", "Bearer write-token"), ("content-type", media)];
    server.exchange(method, path, &headers, Some(body))
}

/// How many documents a list has. A document may be nested too deeply for the JSON parser of this test.
fn listed(server: &Server, path: &str) -> u64 {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.headers["x-total-count"].to_str().unwrap().parse().unwrap()
}

fn first_rule(answer: &Answer) -> Value {
    answer.json()["errors"][0]["rule"].clone()
}

#[test]
fn a_json_patch_that_nests_deeper_with_every_move_is_refused() {
    let server = Server::crud();
    let mut operations = vec![json!({"op": "add", "path": "/y", "value": {}})];
    let dig = |_| {
        let add = json!({"op": "add", "path": "/x", "value": {}});
        [add, json!({"op": "move", "from": "/y", "path": "/x/y"}), json!({"op": "move", "from": "/x", "path": "/y"})]
    };
    operations.extend((0..4_000).flat_map(dig));
    let answer = server.write("PATCH", CLUSTER, &json!(operations), &[JSON_PATCH]);
    assert_eq!((answer.status, first_rule(&answer)), (422, json!("patch-operations")), "{}", answer.body);
    let answer = server.write("PATCH", CLUSTER, &json!(operations[..301]), &[JSON_PATCH]);
    assert_eq!((answer.status, first_rule(&answer)), (422, json!("patch-size")), "{}", answer.body);
    assert_eq!(server.get(CLUSTER).status, 200);
}

#[test]
fn a_json_patch_that_copies_a_document_into_itself_is_stopped_at_the_limit() {
    let server = Server::crud();
    let mut operations = vec![json!({"op": "add", "path": "/l", "value": vec![0; 100]})];
    operations.extend((0..17).map(|_| json!({"op": "copy", "from": "/l", "path": "/l/-"})));
    let answer = server.write("PATCH", CLUSTER, &json!(operations), &[JSON_PATCH]);
    assert_eq!((answer.status, first_rule(&answer)), (422, json!("patch-size")), "{}", answer.body);
    assert!(peak_mib(&server) < MOST_MIB);

    // Many copies, none of which makes the document larger than the one before it.
    let mut operations = vec![json!({"op": "add", "path": "/l", "value": vec![0; 40_000]})];
    operations.extend((0..999).map(|_| json!({"op": "copy", "from": "/l", "path": "/k"})));
    let answer = server.write("PATCH", CLUSTER, &json!(operations), &[JSON_PATCH]);
    assert_eq!((answer.status, first_rule(&answer)), (422, json!("patch-operations")), "{}", answer.body);
}

#[test]
fn patches_that_are_nested_too_deeply_are_never_saved() {
    let server = Server::crud();
    let path = format!("{CLUSTER}/patches/podinfo");
    // The document, its patches and the component are three levels.
    let saved = send(&server, "PUT", &path, "application/json", nested(62));
    assert_eq!(saved.status, 200, "{}", saved.body);
    for levels in [63, 66, 118, 126, 127, 100_000] {
        let refused = send(&server, "PUT", &path, "application/json", nested(levels));
        assert_eq!((refused.status, first_rule(&refused)), (422, json!("depth")), "{levels}: {}", refused.body);
        assert!(refused.body.len() < 4_000, "{levels}");
    }
    assert_eq!(listed(&server, "/clusters?environment=dev"), 1);
    assert_eq!(server.get("/api/v2/flux/clusters").status, 200);
    assert_eq!(server.delete(&path).status, 200, "the saved document can be edited");
}

#[test]
fn the_depth_limit_is_the_same_for_every_kind_of_write() {
    let deep = |levels: usize| serde_json::from_str::<Value>(&nested(levels)).unwrap();
    let server = Server::crud();
    // Three levels are the cluster's own.
    let fields = |levels: usize| json!({"patches": {"podinfo": {"v": deep(levels - 3)}}});
    for (levels, good) in [(64, true), (65, false)] {
        let patch = fields(levels);
        let merge = server.write("PATCH", &format!("{CLUSTER}?dry_run=true"), &patch, &[]);
        let media = [("content-type", "application/strategic-merge-patch+json")];
        let strategic = server.write("PATCH", &format!("{CLUSTER}?dry_run=true"), &patch, &media);
        let bulk = server.write("PATCH", "/clusters?all=true&dry_run=true", &patch, &[]);
        let write = json!({"op": "patch", "kind": "cluster", "id": "demo-cluster-01", "body": patch});
        let batch = server.post("/batch?dry_run=true", &json!({"writes": [write]}));
        let operation = json!([{"op": "add", "path": "/patches/podinfo/v", "value": deep(levels - 3)}]);
        let json = server.write("PATCH", &format!("{CLUSTER}?dry_run=true"), &operation, &[JSON_PATCH]);
        for (way, answer) in
            [("merge", merge), ("strategic", strategic), ("bulk", bulk), ("batch", batch), ("json", json)]
        {
            assert_eq!(answer.status == 200, good, "{way} {levels}: {}", answer.body);
        }
    }
}

#[test]
fn a_body_of_many_small_values_is_refused_while_it_is_read() {
    let server = Server::crud();
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
    let list = format!("{{\"platform_components\":{}}}", zeros(500_000));
    let refused = send(&server, "PATCH", CLUSTER, "application/json", list);
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("elements")), "{}", refused.body);
    let list = format!("{{\"platform_components\":{}}}", zeros(12_000_000));
    let refused = send(&server, "PATCH", CLUSTER, "application/json", list.clone());
    assert_eq!((refused.status, &refused.json()["code"]), (413, &json!("body-too-large")));
    let batch = format!("{{\"writes\":[{{\"op\":\"create\",\"kind\":\"namespace\",\"body\":{list}}}]}}");
    let refused = send(&server, "POST", "/batch", "application/json", batch);
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("elements")), "{}", refused.body);
    assert!(peak_mib(&server) < MOST_MIB, "{} MiB", peak_mib(&server));
    assert!(server.log().lines().all(|line| line.len() < 4_000));
}

/// A batch with one document of so many values, each with a name of some length.
fn batch_of_one(values: usize) -> String {
    let mut batch = String::from(r#"{"writes":[{"op":"put","kind":"namespace","id":"a","body":{"#);
    for at in 0..values {
        write!(batch, "\"{}{at:030}\":1,", "k".repeat(30)).unwrap();
    }
    batch + "\"z\":1}}]}"
}

#[test]
fn a_document_in_a_batch_that_is_too_large_is_refused_while_it_is_read() {
    let server = Server::crud();
    let refused = send(&server, "POST", "/batch", "application/json", batch_of_one(450_000));
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("document-bytes")), "{}", refused.body);
    assert!(refused.json()["errors"][0]["pointer"].as_str().unwrap().starts_with("/writes/0/body"), "{}", refused.body);
    assert!(peak_mib(&server) < 160, "{} MiB", peak_mib(&server));

    // The limit is for each write and not for all together.
    let write = |at: usize| {
        let text = json!({"note": "x".repeat(200_000)});
        json!({"op": "create", "kind": "namespace", "body": {"id": format!("n{at}"), "annotations": text}})
    };
    let made = server.post("/batch?dry_run=true", &json!({"writes": (0..30).map(write).collect::<Vec<_>>()}));
    assert_eq!(made.status, 200, "{}", made.body);
}

#[test]
fn concurrent_large_bodies_take_turns() {
    let server = Server::crud();
    let batch = batch_of_one(450_000);
    std::thread::scope(|scope| {
        let one = || {
            let refused = send(&server, "POST", "/batch", "application/json", batch.clone());
            assert!([422, 429].contains(&refused.status), "{} {}", refused.status, refused.body);
            if refused.status == 429 {
                assert_eq!(refused.json()["code"], json!("too-many-requests"));
                assert!(refused.headers.contains_key("retry-after"));
            }
        };
        for _ in 0..24 {
            scope.spawn(one);
        }
    });
    // All 24 bodies at once are over 700 MB.
    assert!(peak_mib(&server) < 512, "{} MiB", peak_mib(&server));
}

#[test]
fn a_batch_of_thousands_of_writes_to_one_cluster_is_made_while_others_write() {
    const WRITES: usize = 3_000;
    let namespaces: Vec<_> = (0..WRITES).map(|at| json!({"id": format!("n{at}")})).collect();
    let cluster = |name: &str| {
        let dns = format!("{name}.example");
        json!({"id": name, "cluster_name": name, "cluster_dns": dns, "environment": "dev"})
    };
    let fleet = json!({"clusters": [cluster("many"), cluster("other")], "namespaces": namespaces});
    let server = Server::crud_with(&fleet);
    let assign = |at: usize| json!({"op": "assign", "cluster": "many", "kind": "namespace", "id": format!("n{at}")});
    let patch = |at: usize| {
        let body = json!({"namespaces": [{"id": format!("n{at}")}], "labels": {"at": at.to_string()}});
        json!({"op": "patch", "kind": "cluster", "id": "many", "body": body})
    };
    let assigns = json!({"writes": (0..WRITES).map(assign).collect::<Vec<_>>()});
    let patches = json!({"writes": (0..WRITES).map(patch).collect::<Vec<_>>()});
    for batch in [assigns, patches] {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| server.post("/batch", &batch));
            let mut count = 0;
            while !made.is_finished() || count == 0 {
                count += 1;
                let other = server.patch("/clusters/other", &json!({"labels": {"count": count.to_string()}}));
                assert_eq!(other.status, 200, "{}", other.body);
            }
            let made = made.join().unwrap();
            assert_eq!(made.status, 200, "{}", made.body);
        });
    }
    let many = server.get("/clusters/many").json();
    assert_eq!(many["namespaces"].as_array().map(Vec::len), Some(WRITES));
    assert_eq!(many["labels"], json!({"at": (WRITES - 1).to_string()}));
}

#[test]
fn values_in_messages_and_log_lines_are_truncated_and_escaped() {
    let server = Server::crud();
    let long = "x".repeat(300_000);
    for refused in [
        server.patch(CLUSTER, &json!({"node_count": long})),
        server.patch(CLUSTER, &json!({ "platform_components": vec![0; 50_000] })),
        server.post("/namespaces", &json!({"id": long, "labels": {(long.clone()): 1}})),
        server.post("/batch", &json!({"writes": [{"op": "delete", "kind": long, "id": "a"}]})),
        send(&server, "POST", "/namespaces", "application/json", format!("{{\"{long}\":1,\"{long}\":1}}")),
        server.get(&format!("/namespaces?limit={}", &long[..9_000])),
    ] {
        assert!((400..500).contains(&refused.status), "{}", refused.status);
        assert!(refused.body.len() < 100_000, "{} bytes", refused.body.len());
    }
    let many = server.patch(CLUSTER, &json!({ "platform_components": vec![0; 50_000] })).json();
    assert_eq!(many["errors"].as_array().map(Vec::len), Some(100));

    let hidden = server.get("/namespaces?limit=1%0A2026-01-01%1B%5B31m%E2%80%AE");
    assert_eq!(hidden.json()["errors"][0]["message"], json!("\"1\\n2026-01-01\\u{1b}[31m\\u{202e}\" is not a number"));
    let log = server.log();
    assert!(log.lines().all(|line| line.len() < 4_000 && !line.contains("\u{202e}")), "a line is long or hides text");
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01")), "a value began a new line");
}

#[test]
fn documents_and_requests_have_a_size_limit() {
    let server = Server::crud();
    let labels = |bytes: usize| json!({"patches": {"podinfo": {"text": "x".repeat(bytes)}}});
    let refused = server.patch(CLUSTER, &labels(1024 * 1024));
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("document-bytes")), "{}", refused.body);
    let refused = server.patch(CLUSTER, &labels(3 * 1024 * 1024));
    assert_eq!((refused.status, &refused.json()["code"]), (413, &json!("body-too-large")));
    let refused = server.post("/batch", &json!({"writes": vec![json!({"op": "restore", "id": "a"}); 20_001]}));
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("batch-writes")), "{}", refused.body);
}

#[test]
fn a_keyed_list_of_many_items_is_merged_in_time() {
    let server = Server::crud();
    let items: Vec<_> = (0..45_000).map(|at| json!({"id": format!("i{at}")})).collect();
    let patch = json!({"patches": {"podinfo": {"items": items}}});
    // Item by item this would be a thousand million comparisons, in a server that the tests build without optimisation.
    let media = [("content-type", "application/strategic-merge-patch+json")];
    let answer = server.write("PATCH", &format!("{CLUSTER}?dry_run=true"), &patch, &media);
    assert!([200, 422].contains(&answer.status), "{}", answer.status);
}

#[test]
fn a_filter_names_a_document_that_it_cannot_read() {
    let server = Server::crud();
    let mut text =
        String::from(r#"{"id":"deep","cluster_name":"deep","cluster_dns":"deep.example","environment":"dev""#);
    write!(text, ",\"unknown\":{}}}", nested(400)).unwrap();
    let revision = server.append(&[("cluster", "deep", Op::Put(Body::plain(&text)))]);
    server.wait_until("it has the change", || server.get_open("/ready").json()["revision"] == json!(revision));
    let refused = server.get("/clusters?environment=dev");
    assert_eq!((refused.status, &refused.json()["code"]), (500, &json!("unreadable-document")), "{}", refused.body);
    assert!(refused.json()["detail"].as_str().unwrap().contains("cluster/deep"), "{}", refused.body);
    let refused = server.patch("/clusters?environment=dev", &json!({"labels": {"a": "b"}}));
    assert_eq!((refused.status, &refused.json()["code"]), (500, &json!("unreadable-document")), "{}", refused.body);
    for part in ["environment=dev", "label=a=b"] {
        let refused = server.get(&format!("/api/v2/flux/clusters?{part}"));
        assert_eq!((refused.status, &refused.json()["code"]), (500, &json!("unreadable-document")), "{part}");
    }
    assert_eq!(listed(&server, "/clusters"), 2, "without a filter no document is parsed");

    let good = json!({"cluster_name": "deep", "cluster_dns": "deep.example", "environment": "dev"});
    assert_eq!(server.put("/clusters/deep", &good).status, 200, "it can be replaced");
    assert_eq!(listed(&server, "/clusters?environment=dev"), 2);
}

#[test]
fn documents_from_before_the_limits_are_read_listed_edited_and_deleted() {
    let server = Server::crud();
    let mut text =
        String::from(r#"{"id":"deep","cluster_name":"deep","cluster_dns":"deep.example","environment":"dev""#);
    write!(text, ",\"patches\":{{\"podinfo\":{{\"v\":{},\"w\":1}}}}}}", nested(124)).unwrap();
    let revision = server.append(&[("cluster", "deep", Op::Put(Body::plain(&text)))]);
    server.wait_until("it has the change", || server.get_open("/ready").json()["revision"] == json!(revision));
    assert_eq!(server.get("/clusters/deep").body, text);
    assert_eq!(listed(&server, "/clusters?environment=dev"), 2);
    assert_eq!(server.get("/api/v2/flux/clusters").status, 200);
    assert_eq!(server.get(&format!("/changes/{revision}")).status, 200);

    assert_eq!(server.patch("/clusters/deep", &json!({"environment": "qa"})).status, 200, "it has not grown");
    let deeper: Value = serde_json::from_str(&nested(60)).unwrap();
    let grown = json!([
        {"op": "add", "path": format!("/patches/podinfo/v{}", "/a".repeat(123)), "value": deeper}
    ]);
    let refused = server.write("PATCH", "/clusters/deep", &grown, &[JSON_PATCH]);
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("patch-size")), "{}", refused.body);
    let smaller = json!([{"op": "remove", "path": "/patches/podinfo/v"}]);
    assert_eq!(server.write("PATCH", "/clusters/deep", &smaller, &[JSON_PATCH]).status, 200);
    assert_eq!(server.delete("/clusters/deep").status, 200);
}

#[test]
fn a_bulk_patch_cannot_make_the_fleet_many_times_as_large() {
    let cluster = |at: usize| {
        let name = format!("c{at:03}");
        json!({"id": name, "cluster_name": name, "cluster_dns": format!("{name}.example"), "environment": "dev"})
    };
    let server = Server::crud_with(&json!({"clusters": (0..100).map(cluster).collect::<Vec<_>>()}));
    let patch = json!({"patches": {"podinfo": {"text": "x".repeat(800_000)}}});
    let refused = server.patch("/clusters?all=true", &patch);
    assert_eq!((refused.status, first_rule(&refused)), (422, json!("bulk-growth")), "{}", refused.body);

    // The patch breaks a rule in each of them: a hundred errors are listed, and no cluster is changed.
    let refused = server.patch("/clusters?all=true", &json!({"environment": "No"}));
    assert_eq!((refused.status, refused.json()["errors"].as_array().map(Vec::len)), (422, Some(100)));
    assert_eq!(listed(&server, "/clusters?environment=dev"), 100);
}

#[test]
fn a_query_has_a_bounded_number_of_parameters() {
    let server = Server::crud();
    let query = |count: usize| format!("/clusters?{}", vec!["label=a=b"; count].join("&"));
    assert_eq!(server.get(&query(64)).status, 200);
    let refused = server.get(&query(65));
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("invalid-query")));
}

/// The JSON library replaces such an object with the JSON in its text, which no rule has validated.
#[test]
fn a_reserved_name_of_the_json_library_is_refused_in_every_kind_of_write() {
    const NAME: &str = "$serde_json::private::RawValue";
    let server = Server::crud_with(&fleet_of(1));
    let before = server.get("/clusters/c00000").body;
    let body = json!({"patches": {"app": {"x": { NAME: "[1]" }}}});
    let patches = body["patches"]["app"].clone();
    let add = json!([{"op": "add", "path": format!("/labels/{NAME}"), "value": "[1]"}]);
    let write = json!({"op": "patch", "kind": "cluster", "id": "c00000", "body": body});
    for (method, path, body, media) in [
        ("PATCH", "/clusters/c00000", &body, "application/merge-patch+json"),
        ("PATCH", "/clusters/c00000", &body, "application/strategic-merge-patch+json"),
        ("PATCH", "/clusters/c00000", &add, "application/json-patch+json"),
        ("PATCH", "/clusters?all=true", &body, "application/strategic-merge-patch+json"),
        ("PUT", "/clusters/c00000/patches/app", &patches, "application/json"),
        ("POST", "/batch", &json!({ "writes": [write] }), "application/json"),
    ] {
        let refused = server.write(method, path, body, &[("content-type", media)]);
        assert!([400, 422].contains(&refused.status), "{method} {path}: {} {}", refused.status, refused.body);
        assert!(refused.body.contains("are reserved"), "{method} {path}: {}", refused.body);
    }
    assert_eq!(server.get("/clusters/c00000").body, before);
}

#[test]
fn a_bulk_patch_of_many_values_is_refused_before_its_plan_is_made() {
    let server = Server::crud_with(&fleet_of(100));
    for query in ["&dry_run=true", ""] {
        let path = format!("/clusters?all=true{query}");
        let refused = server.patch(&path, &json!({"patches": {"app": {"big": vec![0; 20_000]}}}));
        assert_eq!((refused.status, first_rule(&refused)), (422, json!("bulk-growth")), "{}", refused.body);
    }
}

/// A path of ten bytes would add a list of sixty-five thousand nulls to every answer.
#[test]
fn an_index_far_beyond_the_end_of_a_list_is_refused() {
    let server = Server::crud();
    for keys in [json!({"a[65535]": "1"}), json!({"a[17]": "1"}), json!({"a[9]": "1", "b[9]": "1"})] {
        let refused = server.patch(CLUSTER, &json!({"patches": {"podinfo": keys}}));
        assert_eq!((refused.status, first_rule(&refused)), (422, json!("invalid-patch")), "{}", refused.body);
        let refused = server.patch("/clusters?all=true", &json!({"patches": {"podinfo": keys}}));
        assert_eq!((refused.status, first_rule(&refused)), (422, json!("invalid-patch")), "{}", refused.body);
    }
    let dense: Vec<_> = (0..300).map(|at| format!("\"a[{at}].name\":\"x\"")).collect();
    let dense: Value = serde_json::from_str(&format!("{{{}}}", dense.join(","))).unwrap();
    assert_eq!(server.patch(CLUSTER, &json!({"patches": {"podinfo": dense}})).status, 200);
}

/// An answer lists a hundred broken rules, so millions of messages need not be written.
#[test]
fn a_change_that_breaks_rules_everywhere_is_refused_with_a_short_answer() {
    let clusters: Vec<_> = (0..400)
        .map(|at| {
            json!({
                "id": format!("c{at}"), "cluster_name": format!("c{at}"), "cluster_dns": format!("c{at}.example"),
                "environment": "dev", "platform_components": [{"id": "app"}],
            })
        })
        .collect();
    let component = json!({"id": "app", "component_path": "p", "oci_url": "oci://registry.example/p"});
    let server = Server::crud_with(&json!({"platform_components": [component], "clusters": clusters}));
    let missing: Vec<_> = (0..90).map(|at| format!("q{at}")).collect();
    let refused = server.patch("/platform_components/app", &json!({"depends_on": missing}));
    assert_eq!((refused.status, refused.json()["errors"].as_array().map(Vec::len)), (422, Some(100)));
    assert_eq!(refused.json()["detail"], json!("more than 1000 rules would be broken"), "{}", refused.body);

    // A batch stops at the last error that its answer lists.
    let delete = json!({"op": "delete", "kind": "platform_component", "id": "app"});
    let refused = server.post("/batch", &json!({"writes": vec![delete; 500]}));
    let problem = refused.json();
    assert_eq!((refused.status, &problem["code"]), (409, &json!("referenced")), "{}", refused.body);
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(100));
    let pointers: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|it| it["pointer"].clone()).collect();
    assert!(pointers.iter().all(|pointer| *pointer == json!("/writes/0")), "{pointers:?}");
}

#[test]
fn a_media_type_that_is_not_text_is_refused_and_a_long_method_is_truncated_in_the_log() {
    let server = Server::crud();
    let raw = |text: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(text).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let head =
        "PATCH /namespaces/podinfo HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer write-token\r\n";
    let mut request = format!("{head}content-length: 2\r\ncontent-type: ").into_bytes();
    request.extend(b"\xff\xff\r\n\r\n{}");
    assert!(raw(&request).starts_with("HTTP/1.1 415 "));
    let long = format!("{} / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "A".repeat(15_000));
    assert!(raw(long.as_bytes()).starts_with("HTTP/1.1 401 "));
    assert!(server.log().lines().all(|line| line.len() < 2_000), "{}", server.log());
}
