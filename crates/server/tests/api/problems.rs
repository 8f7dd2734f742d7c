//! Problems of a fleet with many of them: paged, filtered, counted, logged in one line, and no obstacle to other changes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::Server;

const CLUSTERS: usize = 400;

/// A seed like that of an import: components from artifacts, patched as if they were charts, without their dependencies.
fn seed_with_problems() -> Value {
    let cluster = |at: usize| {
        json!({
            "id": format!("c{at:04}"), "cluster_name": format!("c{at:04}"), "cluster_dns": format!("c{at:04}.example"),
            "environment": "dev",
            "platform_components": [{"id": "app", "enabled": true, "oci_tag": null, "component_path": null}],
            "patches": {"app": {"replica.count": "1", "ingress.host": "x"}}
        })
    };
    let component = |id: &str, depends_on: &[&str]| json!({"id": id, "component_path": "p", "oci_url": "oci://registry.example/p", "depends_on": depends_on});
    json!({
        "platform_components": [component("app", &["base"]), component("base", &[])],
        "clusters": (0..CLUSTERS).map(cluster).collect::<Vec<_>>()
    })
}

fn server() -> Server {
    Server::crud_with(&seed_with_problems())
}

fn warnings(server: &Server) -> Vec<String> {
    server.log().lines().filter(|line| line.contains("stored documents have problems")).map(str::to_owned).collect()
}

#[test]
fn problems_are_paged_by_link_headers() {
    let server = server();
    let (mut path, mut seen) = ("/problems?limit=350".to_owned(), Vec::new());
    loop {
        let page = server.get(&path);
        assert_eq!(page.headers["x-total-count"], "1200");
        let problems = page.json();
        assert!(problems.as_array().unwrap().len() <= 350);
        seen.extend(problems.as_array().unwrap().clone());
        let Some(link) = page.headers.get("link") else { break };
        path = link.to_str().unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    }
    assert_eq!(seen.len(), 3 * CLUSTERS);
    let ids: Vec<_> = seen.iter().map(|problem| problem["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "they are in the order of their documents");
    let first = server.get("/problems").json();
    assert_eq!(first.as_array().unwrap()[..], seen[..1_000], "the default page has a thousand");
    assert_eq!(server.get("/problems?limit=1000000").json().as_array().map(Vec::len), Some(1_200));
    assert_eq!(server.get("/problems?offset=1200").json(), json!([]));
    assert!(!server.get("/problems?limit=0").headers.contains_key("link"), "an empty page has no next one");
}

#[test]
fn problems_are_filtered_by_rule_kind_and_id() {
    let server = server();
    let variables = server.get("/problems?rule=invalid-variable&kind=clusters&limit=1");
    assert_eq!(variables.headers["x-total-count"], "800");
    assert_eq!(variables.json()[0]["rule"], json!("invalid-variable"));
    let link = variables.headers["link"].to_str().unwrap();
    assert_eq!(link, "</problems?rule=invalid-variable&kind=clusters&offset=1&limit=1>; rel=\"next\"");
    let one = server.get("/problems?id=c0007&rule=dependency-not-assigned");
    assert_eq!(
        one.json(),
        json!([{"kind": "cluster", "id": "c0007", "pointer": "/platform_components/0", "rule": "dependency-not-assigned",
            "message": "\"app\" depends on \"base\", which this cluster has not enabled"}])
    );
    assert_eq!(server.get("/problems?kind=namespace").json(), json!([]));
    for wrong in [
        "rule=misspelt",
        "limit=many",
        "offset=-1",
        "id=%20",
        "kind=",
        "kind=misspelt",
        "rules=invalid-variable",
        "rule=a&rule=b",
    ] {
        let answer = server.get(&format!("/problems?{wrong}"));
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("invalid-query")), "{wrong}: {}", answer.body);
    }
}

#[test]
fn problems_are_counted_by_rule() {
    let server = server();
    let counts = server.get("/problems/counts").json();
    assert_eq!(counts["total"], json!(1_200));
    let rule = |name: &str| counts["rules"][name].clone();
    assert_eq!(
        (rule("invalid-variable"), rule("dependency-not-assigned"), rule("missing-definition")),
        (json!(800), json!(400), json!(0))
    );
    let mended = json!({"patches": {"app": {"replica.count": null, "ingress.host": null}}});
    assert_eq!(server.patch("/clusters/c0003", &mended).status, 200);
    let metrics = server.get_open("/metrics").body;
    for (rule, count) in [("invalid-variable", 798), ("dependency-not-assigned", 400), ("missing-definition", 0)] {
        let line = format!("\nflux_resourceset_problems{{rule=\"{rule}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}");
    }
    assert_eq!(server.get("/problems/counts?rule=x").status, 400);
}

#[test]
fn a_former_name_that_is_polled_is_counted_too() {
    let server = server();
    assert_eq!(server.patch("/clusters/c0003", &json!({"cluster_dns": "new.example"})).status, 200);
    assert_eq!(server.poll("c0003.example", "namespaces").status, 200);
    assert_eq!(server.get("/problems/counts").json()["rules"]["former-dns-polled"], json!(1));
    assert!(server.get_open("/metrics").body.contains("\nflux_resourceset_problems{rule=\"former-dns-polled\"} 1\n"));
    let last = server.get("/problems?offset=1200");
    assert_eq!((last.headers["x-total-count"].to_str().unwrap(), &last.json()[0]["id"]), ("1201", &json!("c0003")));
    assert_eq!(server.get("/problems?rule=former-dns-polled").json().as_array().map(Vec::len), Some(1));
}

#[test]
fn many_problems_are_one_log_line_and_a_change_that_adds_none_logs_nothing() {
    let server = server();
    server.wait_until("problems are logged", || !warnings(&server).is_empty());
    let at_the_start = warnings(&server);
    assert_eq!(at_the_start.len(), 1, "{at_the_start:?}");
    assert!(at_the_start[0].contains("dependency-not-assigned 400, invalid-variable 800"), "{at_the_start:?}");
    assert!(at_the_start[0].contains("for example: ") && at_the_start[0].contains("c0000"), "{at_the_start:?}");
    assert!(server.log().len() < 20_000, "{}", server.log().len());
    assert_eq!(server.patch("/clusters/c0003", &json!({"environment": "qa"})).status, 200);
    assert_eq!(server.patch("/clusters/c0003", &json!({"patches": {"app": {"ingress.host": null}}})).status, 200);
    assert_eq!(warnings(&server).len(), 1, "no rule is broken more often");
    // Another writer of the file may add problems; this server shows them.
    let mut body = seed_with_problems()["clusters"][3].clone();
    body["namespaces"] = json!([{"id": "ghost"}]);
    server.append(&[("cluster", "c0003", crate::harness::put(&body))]);
    server.wait_until("the new problem is logged", || warnings(&server).len() == 2);
    assert!(
        warnings(&server)[1].contains("missing-definition 1, invalid-variable 800 (before: 799)"),
        "{}",
        server.log()
    );
}

#[test]
fn problems_are_logged_at_every_start_also_of_a_saved_snapshot() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("seed.json"), seed_with_problems().to_string()).unwrap();
    let settings = [("SEED_FILE", "seed.json"), ("SNAPSHOT_FILE", "saved.snapshot")];
    for _ in 0..2 {
        let server = Server::start_in(folder.clone(), &settings);
        server.wait_until("problems are logged", || warnings(&server).len() == 1);
    }
}
