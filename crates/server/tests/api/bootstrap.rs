//! The bundle that a new cluster installs.

use std::{fs, path::Path};

use model::{Value, yaml};
use serde_json::json;

use crate::harness::{Server, command, repository};

const PATH: &str = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/bootstrap";

fn objects(text: &str) -> Vec<Value> {
    yaml::read_all(text).unwrap().into_iter().map(|document| document.value).collect()
}

fn names(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects.iter().map(|object| format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))).collect()
}

#[test]
fn the_bundle_has_everything_but_the_token_in_order() {
    let server = Server::demo();
    let answer = server.get(&format!("{PATH}?api_url=https://fleet.example.com/"));
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/yaml"));
    insta::assert_snapshot!("bootstrap", answer.body);
    let objects = objects(&answer.body);
    assert_eq!(
        names(&objects),
        [
            "Namespace flux-system",
            "ConfigMap cluster-identity",
            "ResourceSetInputProvider cluster-identity",
            "ResourceSet phone-home",
            "ResourceSet platform-components",
            "ResourceSet namespaces",
            "ResourceSet rolebindings",
            "FluxInstance flux",
        ]
    );
    for set in objects.iter().filter(|object| object["kind"] == "ResourceSet") {
        let spec = &set["spec"];
        assert_eq!(spec["inputStrategy"], json!({"name": "Permute"}), "a missing list must not become an empty one");
        assert_eq!(spec["inputs"], json!([{"guard": true}]));
        assert_eq!(spec["dependsOn"][0]["readyExpr"], "has(status.lastExportedRevision)");
        assert_eq!(spec["dependsOn"][0]["ready"], true);
    }
    for set in &objects[4..7] {
        let template = set["spec"]["resourcesTemplate"].as_str().unwrap();
        let guard = "<<- if ne $in.provider.kind \"ResourceSetInputProvider\" >>\n<< fail ";
        assert!(template.lines().next().is_some_and(|line| line.starts_with("<<- $in := inputs.")), "{template}");
        assert!(template.contains(guard), "{template}");
    }
}

#[test]
fn the_query_parameters_set_the_values_of_the_bundle() {
    let server = Server::start(&[
        ("SEED_FILE", repository("data/seed.json").to_str().unwrap()),
        ("PUBLIC_URL", "http://flux-api-read.flux-system.svc.cluster.local:8080"),
    ]);
    let query = "interval=10m&cert_secret=api-ca&flux_instance=false";
    let objects = objects(&server.get(&format!("{PATH}?{query}")).body);
    let identity = &objects[2]["spec"]["defaultValues"];
    assert_eq!(identity["api_url"], "http://flux-api-read.flux-system.svc.cluster.local:8080");
    assert_eq!(identity["cert_secret"], "api-ca");
    assert_eq!(objects[1]["data"]["INTERNAL_API_INSECURE"], "true");
    assert_eq!(objects[1]["data"]["RECONCILE_EVERY"], identity["reconcile_every"]);
    assert!(
        identity["reconcile_every"].as_str().unwrap().starts_with("9m"),
        "a little less than the requested interval: {identity}"
    );
    assert!(!names(&objects).contains(&"FluxInstance flux".to_owned()));
}

#[test]
fn what_cannot_be_installed_is_refused() {
    let server = Server::crud();
    let mut lines = Vec::new();
    for query in [
        "",
        "?api_url=fleet.example.com",
        "?api_url=https://${HOST}",
        "?api_url=https://fleet.example.com&interval=soon",
        "?api_url=https://fleet.example.com&interval=0s",
        "?api_url=https://fleet.example.com&cert_secret=Not_A_Name",
        "?api_url=https://fleet.example.com&flux_instance=perhaps",
        "?api_url=https://fleet.example.com&intervall=5m",
    ] {
        let answer = server.get(&format!("{PATH}{query}"));
        lines.push(format!("{query}: {} {}", answer.status, answer.json()["detail"]));
    }
    let good = "?api_url=https://fleet.example.com";
    let unknown = server.get(&format!("/api/v2/flux/clusters/unknown.example/bootstrap{good}"));
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("unknown-cluster")));
    assert_eq!(server.get_open(&format!("{PATH}{good}")).status, 401);
    assert_eq!(server.delete("/clusters/demo-cluster-01").status, 200);
    let decommissioned = server.get(&format!("{PATH}{good}"));
    lines.push(format!("decommissioned: {} {}", decommissioned.status, decommissioned.json()["detail"]));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn an_added_type_is_installed_and_one_without_a_template_is_named() {
    let types = repository("docs/examples/resources");
    let plain = Server::start(&[
        ("SEED_FILE", repository("data/seed.json").to_str().unwrap()),
        ("RESOURCES_DIR", types.to_str().unwrap()),
    ]);
    let text = plain.get(&format!("{PATH}?api_url=https://fleet.example.com")).body;
    assert!(text.contains("\n# Without network-policies: the type has no x-flux.template.\n"), "{text}");
    assert!(!names(&objects(&text)).contains(&"ResourceSet network-policies".to_owned()));

    let folder = tempfile::tempdir().unwrap();
    let example = |path: &str| fs::read_to_string(repository(path)).unwrap();
    let whole =
        example("docs/examples/resources/network_policy.yaml") + &example("docs/examples/network_policy_template.yaml");
    fs::write(folder.path().join("network_policy.yaml"), whole).unwrap();
    let mut write = command(folder.path());
    let written = write.env("RESOURCES_DIR", folder.path()).args(["clusters", "tree"]).status().unwrap();
    assert!(written.success());
    let set = fs::read_to_string(folder.path().join("tree/resourcesets/network-policies.yaml")).unwrap();
    assert!(set.contains("<<- $in := inputs.network_policies >>"), "{set}");
    let home = fs::read_to_string(folder.path().join("tree/with-operator/phone-home.yaml")).unwrap();
    assert!(home.contains("\"rolebindings\" \"network-policies\""), "{home}");
}

#[test]
fn the_committed_manifests_are_the_generated_ones() {
    let folder = tempfile::tempdir().unwrap();
    assert!(command(folder.path()).args(["clusters", "tree"]).status().unwrap().success());
    let (new, committed) = (files(&folder.path().join("tree")), files(&repository("clusters")));
    for (name, text) in &new {
        let known = committed.iter().find(|(known, _)| known == name).map(|(_, text)| text);
        assert!(known == Some(text), "clusters/{name} has drifted: run `make generate`");
    }
    let generated = committed.iter().filter(|(_, text)| text.starts_with("# Generated")).count();
    assert_eq!(generated, new.len(), "clusters/ has a file that is not generated any more");
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
