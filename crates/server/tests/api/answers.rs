//! Successful responses, and the body of failures.

use model::Value;
use serde_json::json;

use crate::harness::{Server, repository};

const DEMO: &str = "demo-cluster-01.k8s.example.com";

#[test]
fn the_demo_answers_the_examples_of_the_specification() {
    let server = Server::demo();
    for path in ["platform-components", "namespaces", "rolebindings"] {
        let answer = server.poll(DEMO, path);
        assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
        assert_eq!(answer.headers["cache-control"], "no-store");
        insta::assert_json_snapshot!(format!("demo-{path}"), answer.json());
    }
    assert_eq!(
        server.get("/api/v2/flux/clusters").json(),
        json!({"inputs": [{"id": "demo-cluster-01", "cluster_name": "demo-cluster-01", "cluster_dns": DEMO, "environment": "dev"}]})
    );
    let first = &server.poll(DEMO, "platform-components").json()["inputs"][0];
    let documented = json!({
        "id": "cert-manager", "component_path": "cert-manager", "component_version": "latest",
        "cluster_env_enabled": false, "depends_on": [], "enabled": true, "patches": {},
        "cluster": {"name": "demo-cluster-01", "dns": DEMO, "environment": "dev"},
        "source": {"oci_url": "https://charts.jetstack.io", "oci_tag": "latest"}
    });
    for (field, value) in documented.as_object().unwrap() {
        assert_eq!(&first[field], value, "{field}");
    }
}

#[test]
fn probes_metrics_and_the_openapi_document_need_no_token() {
    let server = Server::demo();
    assert_eq!(server.get_open("/health").json(), json!({"status": "ok"}));
    let ready = server.get_open("/ready").json();
    assert_eq!((&ready["status"], &ready["revision"], &ready["store"]), (&json!("ok"), &json!(1), &json!("following")));
    assert!(ready["age_seconds"].as_f64().unwrap() < 30.0, "{ready}");
    assert!(server.get_open("/openapi.yaml").body.starts_with("openapi: \"3.0.3\"\n"));
    assert_eq!(server.get_open("/metrics").status, 200);
}

#[test]
fn every_failure_has_a_problem_json_body() {
    let server = Server::demo();
    let good = Some("Bearer read-token");
    let mut failures = Vec::new();
    for (method, path, authorization) in [
        ("GET", "/api/v2/flux/clusters", None),
        ("GET", "/no/such/path", None),
        ("POST", "/problems", None),
        ("GET", "/no/such/path", good),
        ("DELETE", "/problems", good),
        ("GET", "/api/v2/flux/clusters/unknown.example/namespaces", good),
        ("GET", "/api/v2/flux/clusters/unknown.example/clusters", good),
        ("GET", "/api/v2/flux/clusters/%ff/namespaces", good),
        ("GET", "/api/v2/flux/clusters?empty=yes", good),
        ("GET", "/api/v2/flux/clusters?empty=explicit&empty=explicit", good),
        ("GET", "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces?emtpy=explicit", good),
    ] {
        let answer = server.request(method, path, authorization);
        assert_eq!(answer.content_type, "application/problem+json", "{method} {path}: {}", answer.body);
        assert_eq!(answer.json()["status"], answer.status);
        failures.push(json!({"request": format!("{method} {path}"), "with token": authorization.is_some(), "answer": answer.json()}));
    }
    insta::assert_json_snapshot!("failures", failures);
}

#[test]
fn a_token_must_be_exactly_right() {
    let server = Server::demo();
    for good in ["Bearer read-token", "bearer read-token", "Bearer write-token", "Bearer  read-token"] {
        assert_eq!(server.request("GET", "/problems", Some(good)).status, 200, "{good}");
    }
    for bad in [
        "",
        "Bearer",
        "Bearer ",
        "Basic read-token",
        "read-token",
        "Bearer read-toke",
        "Bearer read-token2",
        "Bearer READ-TOKEN",
    ] {
        let answer = server.request("GET", "/problems", Some(bad));
        assert_eq!(answer.status, 401, "{bad:?}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[test]
fn a_request_keeps_its_id_or_gets_one() {
    let server = Server::demo();
    let id = |answer: crate::harness::Answer| answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let (first, second) = (id(server.get("/problems")), id(server.get("/problems")));
    assert_ne!(first, second);
    let response =
        ureq::get(format!("http://{}/health", server.address())).header("x-request-id", "mine-1").call().unwrap();
    assert_eq!(response.headers()["x-request-id"], "mine-1");
}

#[test]
fn metrics_count_requests_and_polls_and_show_revision_and_age() {
    let server = Server::demo();
    server.poll(DEMO, "namespaces");
    server.poll("DEMO-cluster-01.k8s.example.com.", "namespaces");
    server.poll("unknown.example", "namespaces");
    let metrics = server.get_open("/metrics").body;
    for line in [
        "flux_resourceset_polls_total{cluster=\"demo-cluster-01\",type=\"namespaces\"} 2",
        "flux_resourceset_http_requests_total{method=\"GET\",route=\"/api/v2/flux/clusters/{cluster_dns}/{type}\",status=\"200\"} 2",
        "flux_resourceset_http_requests_total{method=\"GET\",route=\"/api/v2/flux/clusters/{cluster_dns}/{type}\",status=\"404\"} 1",
        "flux_resourceset_http_request_duration_seconds_count{route=\"/api/v2/flux/clusters/{cluster_dns}/{type}\"} 3",
        "flux_resourceset_revision 1",
        "flux_resourceset_clusters 1",
        "flux_resourceset_ready 1",
        "flux_resourceset_problems{rule=\"missing-definition\"} 0",
    ] {
        assert!(metrics.lines().any(|metric| metric == line), "{line} is not in\n{metrics}");
    }
    assert!(metrics.contains("\nflux_resourceset_picture_age_seconds 0."), "{metrics}");
    let polled = "\nflux_resourceset_cluster_last_poll_timestamp_seconds{cluster=\"demo-cluster-01\"} ";
    let (_, time) = metrics.split_once(polled).unwrap();
    assert!(time.lines().next().unwrap().parse::<i64>().unwrap() > 1_700_000_000, "{metrics}");
    assert!(!metrics.contains("unknown.example"), "unknown clients must not make metrics grow");
}

/// The fifth type is one file, as the specification writes it.
#[test]
fn a_type_added_as_a_file_is_served_without_a_change_of_code() {
    let seed = json!({
        "clusters": [{
            "_id": "us-east-prod-01", "cluster_name": "us-east-prod-01",
            "cluster_dns": "us-east-prod-01.k8s.example.com", "environment": "prod",
            "network_policies": [{"id": "allow-monitoring"}]
        }],
        "network_policies": [{
            "id": "allow-monitoring", "target_namespace": "monitoring",
            "ingress_rules": [{"from_namespace": "prometheus", "port": 9090}]
        }]
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
    let resources = repository("docs/examples/resources");
    let server =
        Server::start_in(folder.into(), &[("SEED_FILE", "seed.json"), ("RESOURCES_DIR", resources.to_str().unwrap())]);
    assert_eq!(
        server.poll("us-east-prod-01.k8s.example.com", "network-policies").json(),
        json!({"inputs": [{
            "id": "allow-monitoring", "target_namespace": "monitoring",
            "ingress_rules": [{"from_namespace": "prometheus", "port": 9090}],
            "cluster": {"name": "us-east-prod-01", "dns": "us-east-prod-01.k8s.example.com", "environment": "prod"}
        }]})
    );
    let description = model::yaml::read(&server.get_open("/openapi.yaml").body).unwrap().value;
    assert!(description["paths"]["/api/v2/flux/clusters/{cluster_dns}/network-policies"].is_object());
}

#[test]
fn the_committed_openapi_document_is_the_one_that_is_served() {
    let server = Server::crud();
    let description = server.get_open("/openapi.yaml").body;
    let committed = std::fs::read_to_string(repository("openapi/openapi.yaml")).unwrap();
    assert!(description == committed, "openapi/openapi.yaml has drifted: run `make generate`");
}

/// The operations of the OpenAPI document, as method and path with examples as parameters.
fn operations(server: &Server) -> Vec<(String, String)> {
    let document = model::yaml::read(&server.get_open("/openapi.yaml").body).unwrap().value;
    let paths = document["paths"].as_object().unwrap().clone();
    let operations = paths.into_iter().flat_map(|(path, methods)| {
        let path = path.replace("{cluster_dns}", DEMO).replace("{revision}", "1").replace("{component}", "podinfo");
        let path = path
            .replace("/clusters/{id}", "/clusters/demo-cluster-01")
            .replace("{ref_id}", "podinfo")
            .replace("{id}", "podinfo");
        let methods: Vec<_> = methods.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| (method.to_uppercase(), path.clone()))
    });
    operations.collect()
}

#[test]
fn every_documented_route_answers() {
    for (server, least) in [(Server::demo(), 9), (Server::crud(), 55)] {
        let operations = operations(&server);
        assert!(operations.len() >= least, "{operations:?}");
        for (method, path) in operations.iter().filter(|(_, path)| path != "/changes/stream") {
            // An empty body and an unknown parameter change nothing, and the route is still matched.
            let answer = if method == "GET" {
                server.get(path)
            } else {
                server.write(method, &format!("{path}?no=1"), &json!({}), &[])
            };
            let code = if answer.status < 300 { Value::Null } else { answer.json()["code"].clone() };
            let unknown = [json!("not-found"), json!("method-not-allowed")].contains(&code)
                && !answer.body.contains("there is no");
            assert!(
                !unknown && answer.status < 500,
                "{method} {path} is documented and does not answer: {}",
                answer.body
            );
        }
    }
}

/// Each route of the router, probed with every method: one that answers must be documented.
#[test]
fn every_route_is_documented() {
    let server = Server::crud();
    let documented = operations(&server);
    let paths: std::collections::BTreeSet<_> = documented.iter().map(|(_, path)| path.clone()).collect();
    for path in paths.iter().filter(|path| *path != "/changes/stream") {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = server.write(method, &format!("{path}?no=1"), &json!({}), &[]);
            let served = answer.status != 405;
            let is_documented = documented.contains(&(method.to_owned(), path.clone()));
            assert_eq!(served, is_documented, "{method} {path}: served {served}, documented {is_documented}");
        }
    }
    let metrics = server.get_open("/metrics").body;
    let routes: std::collections::BTreeSet<_> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("flux_resourceset_http_request_duration_seconds_count{route=\""))
        .filter_map(|rest| rest.split_once("\"} "))
        .filter(|(route, count)| *route != "unmatched" && *route != "/changes/stream" && *count == "0")
        .collect();
    assert!(routes.is_empty(), "these routes are not documented: {routes:?}");
}

/// Every route, by the test before this one, with every method that may change something.
#[test]
fn no_change_is_made_with_the_read_token_or_without_one() {
    let server = Server::crud();
    let documented = operations(&server);
    let paths: std::collections::BTreeSet<_> = documented.iter().map(|(_, path)| path.clone()).collect();
    let mut refused = 0;
    for path in &paths {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let send = |token: &str| {
                let headers = [("authorization", token), ("content-type", "application/json")];
                let answer = server.exchange(method, path, &headers, Some("{}".to_owned()));
                (answer.status, answer.json()["code"].clone())
            };
            let is_route = documented.contains(&(method.to_owned(), path.clone()));
            let expected = if is_route { (403, json!("forbidden")) } else { (405, json!("method-not-allowed")) };
            assert_eq!(send("Bearer read-token"), expected, "{method} {path} with the read token");
            assert_eq!(send("Bearer wrong-token"), (401, json!("unauthorized")), "{method} {path} with a wrong token");
            refused += usize::from(is_route);
        }
    }
    assert!(refused >= 30, "only {refused} routes make changes");
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1), "nothing was changed");
}

/// Every route that answers a GET, by the test above, but those for probes, scrapers and readers of the API's description.
#[test]
fn nothing_is_read_without_a_token() {
    let server = Server::crud();
    let open = ["/health", "/ready", "/metrics", "/openapi.yaml"];
    let mut refused = 0;
    for (_, path) in operations(&server).iter().filter(|(method, path)| method == "GET" && !open.contains(&&**path)) {
        for headers in [&[][..], &[("authorization", "Bearer wrong-token")]] {
            let answer = server.exchange("GET", path, headers, None);
            assert_eq!((answer.status, &answer.json()["code"]), (401, &json!("unauthorized")), "GET {path}");
        }
        refused += 1;
    }
    assert!(refused >= 20, "only {refused} routes are read");
}

#[test]
fn an_openapi_file_is_served_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("api.yaml"), "openapi: 3.0.0\n").unwrap();
    let server = Server::start_in(folder.into(), &[("OPENAPI_FILE", "api.yaml")]);
    assert_eq!(server.get_open("/openapi.yaml").body, "openapi: 3.0.0\n");
}

#[test]
fn the_memory_backend_serves_the_seed() {
    let seed = repository("data/seed.json");
    let server = Server::start(&[("STORE_BACKEND", "memory"), ("SEED_FILE", seed.to_str().unwrap())]);
    assert_eq!(server.poll(DEMO, "namespaces").json()["inputs"].as_array().map(Vec::len), Some(3));
    assert!(!server.database().exists());
}

#[test]
fn the_default_seed_is_loaded_if_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::copy(repository("data/seed.json"), folder.path().join("data/seed.json")).unwrap();
    let server = Server::start_in(folder.into(), &[]);
    assert_eq!(server.get("/api/v2/flux/clusters").json()["inputs"][0]["id"], Value::from("demo-cluster-01"));
    let (folder, none) = (server.folder().clone(), [("SEED_FILE", ""), ("DATABASE_URL", "sqlite://other.db?mode=rwc")]);
    drop(server);
    let server = Server::start_in(folder, &none);
    assert_eq!(server.get_open("/ready").json()["revision"], json!(0), "an empty SEED_FILE means none");
}
