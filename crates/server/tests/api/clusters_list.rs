//! The list of clusters, for their provisioning: all of them or a complete part, and never empty by mistake.

use std::collections::BTreeSet;

use model::Value;
use serde_json::json;

use crate::{
    harness::{Answer, Server},
    operators::fleet_of,
};

fn list(server: &Server, query: &str) -> Answer {
    server.get(&format!("/api/v2/flux/clusters{query}"))
}

fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let inputs = answer.json()["inputs"].as_array().cloned().unwrap();
    inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect()
}

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

#[test]
fn the_list_is_filtered_by_environment_and_labels() {
    let server = Server::crud_with(&fleet_of(4));
    server.patch("/clusters/c00002", &json!({"labels": {"tier": "gold"}}));
    assert_eq!(ids(&list(&server, "")), ["c00000", "c00001", "c00002", "c00003"]);
    assert_eq!(ids(&list(&server, "?environment=prod")), ["c00001", "c00003"]);
    assert_eq!(ids(&list(&server, "?label=region=eu")), ["c00000", "c00003"]);
    assert_eq!(ids(&list(&server, "?label=region=eu&environment=prod")), ["c00003"]);
    assert_eq!(ids(&list(&server, "?label=region=us&label=tier=gold")), ["c00002"]);
    assert_eq!(ids(&list(&server, "?label=tier=gold&empty=explicit")), ["c00002"]);
    for query in ["?enviroment=prod", "?label=region", "?environment=dev&environment=prod", "?cluster_name=c00000"] {
        assert_eq!(code(&list(&server, query)), (400, json!("invalid-query")), "{query}");
    }
}

#[test]
fn a_filter_that_matches_no_cluster_is_an_error_and_not_an_empty_list() {
    let server = Server::crud_with(&fleet_of(2));
    for query in ["?environment=moon", "?environment=", "?label=tier=gold", "?label=region=eu&environment=prod"] {
        for empty in ["", "&empty=explicit"] {
            let answer = list(&server, &format!("{query}{empty}"));
            assert_eq!(code(&answer), (404, json!("no-matching-cluster")), "{query}{empty}: {}", answer.body);
        }
    }
    // No cluster has the label any more, and none was decommissioned: a changed label must not delete anything.
    server.patch("/clusters/c00000", &json!({"labels": {"region": "asia"}}));
    assert_eq!(code(&list(&server, "?label=region=eu&empty=explicit")), (404, json!("no-matching-cluster")));
}

#[test]
fn an_environment_without_clusters_in_force_is_an_error() {
    let server = Server::crud_with(&fleet_of(2));
    assert_eq!(server.delete("/clusters/c00001").status, 200);
    for query in ["?environment=prod", "?environment=prod&empty=explicit", "?environment=prod&shard=1/1&empty=explicit"]
    {
        assert_eq!(code(&list(&server, query)), (404, json!("no-cluster-in-force")), "{query}");
    }
    assert_eq!(server.delete("/clusters/c00001?purge=true").status, 200);
    assert_eq!(code(&list(&server, "?environment=prod&empty=explicit")), (404, json!("no-matching-cluster")));
}

#[test]
fn a_shard_is_complete_and_an_empty_one_is_an_error() {
    let server = Server::crud_with(&fleet_of(3));
    let mut found = Vec::new();
    let (mut filled, mut blank) = (Vec::new(), None);
    for at in 1..=16 {
        let answer = list(&server, &format!("?shard={at}/16&empty=explicit"));
        if answer.status == 200 {
            found.extend(ids(&answer));
            filled.push((at, ids(&answer)));
        } else {
            assert_eq!(code(&answer), (404, json!("no-matching-cluster")), "{at}");
            blank = Some(at);
        }
    }
    found.sort();
    assert_eq!(found, ["c00000", "c00001", "c00002"], "each is in one shard");
    assert!(blank.is_some(), "three clusters leave shards of sixteen without one");
    for shard in ["0/4", "5/4", "1/0", "1/1001", "one", "1", "-1/4", ""] {
        assert_eq!(code(&list(&server, &format!("?shard={shard}"))), (400, json!("invalid-query")), "{shard}");
    }
    // Only a decommissioned cluster makes a shard empty.
    let (at, clusters) = &filled[0];
    for cluster in clusters {
        assert_eq!(server.delete(&format!("/clusters/{cluster}")).status, 200);
    }
    assert_eq!(code(&list(&server, &format!("?shard={at}/16"))), (404, json!("no-cluster-in-force")));
    assert_eq!(ids(&list(&server, &format!("?shard={at}/16&empty=explicit"))), ["none"]);
}

#[test]
fn ten_thousand_clusters_are_each_served_in_exactly_one_shard() {
    let mut seed = fleet_of(10_000);
    for cluster in seed["clusters"].as_array_mut().unwrap() {
        cluster["cluster_dns"] = json!(format!("{}.k8s.internal.example.com", cluster["id"].as_str().unwrap()));
    }
    let server = Server::crud_with(&seed);
    let whole = list(&server, "");
    assert_eq!(code(&whole), (500, json!("answer-too-large")));
    let detail = whole.json()["detail"].as_str().unwrap().to_owned();
    let shards =
        detail.split_once("shard=1/").map(|(_, rest)| rest.split_once(',').unwrap().0.parse::<usize>().unwrap());
    let shards = shards.unwrap_or_else(|| panic!("the next step is missing: {detail}"));
    let parts: Vec<Vec<String>> =
        (1..=shards).map(|at| ids(&list(&server, &format!("?shard={at}/{shards}")))).collect();
    assert!(parts.iter().all(|part| part.is_sorted()), "the order is that of the ids");
    let all: Vec<&String> = parts.iter().flatten().collect();
    let different: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), different.len()), (10_000, 10_000), "every cluster is in one shard");
    assert!(parts.iter().all(|part| part.len() * shards > 9_000), "shards are about as large as one another");
    let of_prod = ids(&list(&server, "?environment=prod"));
    assert_eq!(of_prod.len(), 5_000);
}
