//! A new cluster, from one command.

use std::{fs, os::unix::fs::PermissionsExt as _};

use harness::{READ, WRITE};
use model::{Value, yaml};

use crate::stage::Stage;

fn objects(text: &str) -> Vec<Value> {
    yaml::read_all(text).unwrap().into_iter().map(|document| document.value).collect()
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn everything_is_printed_in_order_with_the_token_for_reading() {
    let stage = Stage::demo();
    let done = stage.run(&["bootstrap", "demo-cluster-01", "--api-url", "https://fleet.example.com"]).good();
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
    assert!(providers.contains("secretRef:\n    name: internal-api-token\n"), "it is the one that providers name");
    assert_eq!(printed[3]["stringData"]["token"], READ);
    assert!(!done.out.contains(WRITE), "the token that may write stays here");
    assert_eq!(
        printed[2]["spec"]["defaultValues"]["api_url"], "https://fleet.example.com",
        "not the address of the tool"
    );
    assert_eq!(done.err, "");
}

#[test]
fn what_the_cluster_calls_is_what_the_tool_calls_unless_it_is_said() {
    let stage = Stage::demo();
    let done = stage.run(&["bootstrap", "demo-cluster-01", "--without-flux-instance"]).good();
    let printed = objects(&done.out);
    assert_eq!(printed[2]["spec"]["defaultValues"]["api_url"], stage.url());
    assert_eq!(printed[1]["data"]["INTERNAL_API_INSECURE"], "true");
    assert!(!kinds(&printed).contains(&"FluxInstance"));
    assert!(done.err.contains("is this machine"), "{}", done.err);
}

#[test]
fn a_server_that_knows_its_address_is_believed_where_the_tools_own_leads_nowhere() {
    let seed = harness::repository("data/seed.json");
    let stage = Stage::with(&[("SEED_FILE", seed.to_str().unwrap()), ("PUBLIC_URL", "https://fleet.example.com")]);
    let done = stage.run(&["bootstrap", "demo-cluster-01"]).good();
    assert_eq!(objects(&done.out)[2]["spec"]["defaultValues"]["api_url"], "https://fleet.example.com");
    assert_eq!(done.err, "");
    let mut lost = stage.tool(&["bootstrap", "demo-cluster-01", "--api-url", "https://fleet.example.com"]);
    let lost = lost.env_remove("FLUX_API_URL").output().unwrap();
    let said = String::from_utf8_lossy(&lost.stderr);
    assert!(said.contains("--api-url is here what the cluster calls"), "{said}");
}

#[test]
fn the_token_comes_from_where_it_is_said_to() {
    let stage = Stage::demo();
    let token = |arguments: &[&str]| {
        let done = stage.run(&[&["bootstrap", "demo-cluster-01", "--quiet"], arguments].concat()).good();
        objects(&done.out)[3]["stringData"]["token"].clone()
    };
    assert_eq!(token(&["--token", "of-the-line"]), "of-the-line");
    let file = stage.file("token.txt", "of-a-file\n");
    assert_eq!(token(&["--token-file", &file]), "of-a-file");
    let fed = stage.feed(&["bootstrap", "demo-cluster-01", "--token-file", "-"], "of-a-pipe\n").good();
    assert_eq!(objects(&fed.out)[3]["stringData"]["token"], "of-a-pipe");
    let without = stage.run(&["bootstrap", "demo-cluster-01", "--without-token"]).good();
    assert!(!kinds(&objects(&without.out)).contains(&"Secret"));

    let two_words = stage.file("words.txt", "two words");
    assert_eq!(stage.run(&["bootstrap", "demo-cluster-01", "--token-file", &two_words]).code, 2);
    assert_eq!(stage.run(&["bootstrap", "demo-cluster-01", "--token", "a", "--without-token"]).code, 2);
}

#[test]
fn a_token_that_may_write_is_not_handed_out_for_want_of_another() {
    let stage = Stage::demo();
    let set = ["config", "set", "here", "--url", &stage.url(), "--write-token-env", "WRITES"];
    let tool = |arguments: &[&str]| {
        let mut command = stage.tool(arguments);
        command.env_remove("FLUX_API_URL").env_remove("FLUX_API_TOKEN").env("WRITES", WRITE);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(tool(&set).0, Some(0));
    assert_eq!(tool(&["config", "use", "here"]).0, Some(0));
    assert_eq!(tool(&["cluster", "list"]).0, Some(0), "for looking it is good enough");
    let (code, said) = tool(&["bootstrap", "demo-cluster-01"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no token that the cluster could send"), "{said}");
    assert!(!said.contains(WRITE), "{said}");
}

#[test]
fn a_tree_for_kustomize_is_written() {
    let stage = Stage::demo();
    let folder = stage.home().join("clusters/demo");
    let folder_name = folder.to_str().unwrap();
    let done = stage.run(&["bootstrap", "demo-cluster-01", "--output-dir", folder_name]).good();
    assert_eq!(done.out, "");
    assert!(done.err.contains("secret-internal-api-token.yaml holds the token"), "{}", done.err);
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
fn what_is_not_there_or_not_meant_is_said() {
    let stage = Stage::demo();
    let missing = stage.run(&["bootstrap", "demo-cluster-1"]);
    assert_eq!(missing.code, 3);
    assert!(missing.err.contains("did you mean \"demo-cluster-01\"?"), "{}", missing.err);
    let soon = stage.run(&["bootstrap", "demo-cluster-01", "--interval", "soon"]);
    assert_eq!(soon.code, 1);
    assert!(soon.err.contains("\"soon\" is not a time from 1s to 24h"), "{}", soon.err);
    stage.run(&["cluster", "delete", "demo-cluster-01", "--yes"]).good();
    let gone = stage.run(&["bootstrap", "demo-cluster-01"]);
    assert_ne!(gone.code, 0);
    assert!(gone.err.contains("decommissioned"), "{}", gone.err);
}
