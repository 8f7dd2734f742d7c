//! `bootstrap`: the manifests of a new cluster.

use std::{fs, os::unix::fs::PermissionsExt as _};

use harness::{READ, WRITE};
use model::{Value, yaml};

use crate::environment::TestEnvironment;

fn objects(text: &str) -> Vec<Value> {
    yaml::read_all(text).unwrap().into_iter().map(|document| document.value).collect()
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn all_manifests_are_printed_in_order_with_the_read_token() {
    let env = TestEnvironment::demo();
    let done = env.run(&["bootstrap", "demo-cluster-01", "--api-url", "https://fleet.example.com"]).success();
    assert!(done.out.starts_with("# Cluster demo-cluster-01."), "{}", done.out);
    let printed = objects(&done.out);
    let expected = [
        "Namespace",
        "ConfigMap",
        "ResourceSetInputProvider",
        "Secret",
        "ResourceSet",
        "ResourceSet",
        "ResourceSet",
        "ResourceSet",
        "FluxInstance",
    ];
    assert_eq!(kinds(&printed), expected);
    assert_eq!(printed[3]["metadata"]["name"], "internal-api-token");
    let providers = printed[4]["spec"]["resourcesTemplate"].as_str().unwrap();
    assert!(providers.contains("secretRef:\n    name: internal-api-token\n"), "the providers refer to this Secret");
    assert_eq!(printed[3]["stringData"]["token"], READ);
    assert!(!done.out.contains(WRITE), "the write token is not printed");
    assert_eq!(
        printed[2]["spec"]["defaultValues"]["api_url"], "https://fleet.example.com",
        "not the server URL of the tool"
    );
    assert_eq!(done.err, "");
}

#[test]
fn the_cluster_url_defaults_to_the_server_url_of_the_tool() {
    let env = TestEnvironment::demo();
    let done = env.run(&["bootstrap", "demo-cluster-01", "--without-flux-instance"]).success();
    let printed = objects(&done.out);
    assert_eq!(printed[2]["spec"]["defaultValues"]["api_url"], env.url());
    assert_eq!(printed[1]["data"]["INTERNAL_API_INSECURE"], "true");
    assert!(!kinds(&printed).contains(&"FluxInstance"));
    assert!(done.err.contains("is a loopback address"), "{}", done.err);
}

#[test]
fn the_public_url_of_the_server_replaces_a_loopback_url() {
    let seed = harness::repository("data/seed.json");
    let env = TestEnvironment::with_settings(&[
        ("SEED_FILE", seed.to_str().unwrap()),
        ("PUBLIC_URL", "https://fleet.example.com"),
    ]);
    let done = env.run(&["bootstrap", "demo-cluster-01"]).success();
    assert_eq!(objects(&done.out)[2]["spec"]["defaultValues"]["api_url"], "https://fleet.example.com");
    assert_eq!(done.err, "");
    let mut without_server = env.tool(&["bootstrap", "demo-cluster-01", "--api-url", "https://fleet.example.com"]);
    let failed = without_server.env_remove("FLUX_API_URL").output().unwrap();
    let stderr = String::from_utf8_lossy(&failed.stderr);
    assert!(stderr.contains("--api-url is the URL that the cluster calls"), "{stderr}");
}

#[test]
fn the_token_comes_from_the_source_that_is_given() {
    let env = TestEnvironment::demo();
    let token = |arguments: &[&str]| {
        let done = env.run(&[&["bootstrap", "demo-cluster-01", "--quiet"], arguments].concat()).success();
        objects(&done.out)[3]["stringData"]["token"].clone()
    };
    assert_eq!(token(&["--token", "from-the-flag"]), "from-the-flag");
    let file = env.file("token.txt", "from-a-file\n");
    assert_eq!(token(&["--token-file", &file]), "from-a-file");
    let piped = env.run_with_input(&["bootstrap", "demo-cluster-01", "--token-file", "-"], "from-a-pipe\n").success();
    assert_eq!(objects(&piped.out)[3]["stringData"]["token"], "from-a-pipe");
    let without = env.run(&["bootstrap", "demo-cluster-01", "--without-token"]).success();
    assert!(!kinds(&objects(&without.out)).contains(&"Secret"));

    let two_words = env.file("words.txt", "two words");
    assert_eq!(env.run(&["bootstrap", "demo-cluster-01", "--token-file", &two_words]).code, 2);
    assert_eq!(env.run(&["bootstrap", "demo-cluster-01", "--token", "a", "--without-token"]).code, 2);
}

#[test]
fn a_write_token_is_never_given_to_a_cluster_by_default() {
    let env = TestEnvironment::demo();
    let set = ["config", "set", "here", "--url", &env.url(), "--write-token-env", "WRITES"];
    let tool = |arguments: &[&str]| {
        let mut command = env.tool(arguments);
        command.env_remove("FLUX_API_URL").env_remove("FLUX_API_TOKEN").env("WRITES", WRITE);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(tool(&set).0, Some(0));
    assert_eq!(tool(&["config", "use", "here"]).0, Some(0));
    assert_eq!(tool(&["cluster", "list"]).0, Some(0), "for reading, the write token is used");
    let (code, output) = tool(&["bootstrap", "demo-cluster-01"]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("no read token for the cluster is configured"), "{output}");
    assert!(!output.contains(WRITE), "{output}");
}

#[test]
fn a_kustomize_folder_is_written() {
    let env = TestEnvironment::demo();
    let folder = env.home().join("clusters/demo");
    let folder_name = folder.to_str().unwrap();
    let done = env.run(&["bootstrap", "demo-cluster-01", "--output-dir", folder_name]).success();
    assert_eq!(done.out, "");
    assert!(done.err.contains("secret-internal-api-token.yaml contains the token"), "{}", done.err);
    let list = yaml::read(&fs::read_to_string(folder.join("kustomization.yaml")).unwrap()).unwrap().value;
    let names: Vec<&str> = list["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names.len(), 9);
    for name in &names {
        assert!(folder.join(name).exists(), "{name}");
    }
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("secret-internal-api-token.yaml"), 0o600);
    assert_ne!(mode("kustomization.yaml"), 0o600);
}

#[test]
fn a_missing_cluster_and_an_invalid_interval_are_reported() {
    let env = TestEnvironment::demo();
    let missing = env.run(&["bootstrap", "demo-cluster-1"]);
    assert_eq!(missing.code, 3);
    assert!(missing.err.contains("did you mean \"demo-cluster-01\"?"), "{}", missing.err);
    let soon = env.run(&["bootstrap", "demo-cluster-01", "--interval", "soon"]);
    assert_eq!(soon.code, 1);
    assert!(soon.err.contains("\"soon\" is not a time from 1s to 24h"), "{}", soon.err);
    env.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).success();
    let decommissioned = env.run(&["bootstrap", "demo-cluster-01"]);
    assert_ne!(decommissioned.code, 0);
    assert!(decommissioned.err.contains("decommissioned"), "{}", decommissioned.err);
}
