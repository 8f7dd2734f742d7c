//! Where each value of an input comes from.

use model::Value;
use serde_json::json;

use super::{DEMO, fleet_of};
use crate::harness::Server;

const PODINFO: &str = "/clusters/demo-cluster-01/explain/platform-components/podinfo";

/// The explained value at a pointer.
fn field(explanation: &Value, pointer: &str) -> Value {
    let mut fields = explanation["fields"].as_array().unwrap().iter();
    fields.find(|field| field["pointer"] == pointer).unwrap_or_else(|| panic!("{pointer}: {explanation}")).clone()
}

/// A source in a document that the named actor wrote last, without the time.
fn source(kind: &str, (document, id, revision): (&str, &str, u64), (actor, reason): (&str, &str)) -> Value {
    json!({"kind": kind, "document": {"kind": document, "id": id, "revision": revision, "actor": actor, "reason": reason}})
}

/// Removes the times, each of which must be one.
fn without_times(mut value: Value) -> Value {
    fn remove(value: &mut Value) {
        if let Some(document) = value.get_mut("document").and_then(Value::as_object_mut) {
            assert!(document.shift_remove("at").unwrap().as_str().unwrap().ends_with('Z'));
        }
        if let Some(source) = value.get_mut("source") {
            remove(source);
        }
        for hidden in value.get_mut("hidden").and_then(Value::as_array_mut).into_iter().flatten() {
            remove(hidden);
        }
    }
    remove(&mut value);
    value
}

#[test]
fn an_override_wins_over_the_catalogue_and_both_are_explained() {
    let server = Server::crud();
    let reason = [("x-change-reason", "a hotfix")];
    let assigned = "/clusters/demo-cluster-01/platform_components/podinfo";
    assert_eq!(server.write("PUT", assigned, &json!({"oci_tag": "v2"}), &reason).status, 200);
    let answer = server.get(PODINFO);
    assert_eq!((answer.status, &answer.content_type), (200, &"application/json".to_owned()));
    assert_eq!(answer.headers["cache-control"], "no-store");
    let explanation = answer.json();
    let heading = ["cluster", "kind", "id", "revision"].map(|name| explanation[name].clone());
    assert_eq!(heading, [json!("demo-cluster-01"), json!("platform_component"), json!("podinfo"), json!(2)]);

    let catalogue = source("definition", ("platform_component", "podinfo", 1), ("seed", "the log was empty"));
    assert_eq!(
        without_times(field(&explanation, "/source/oci_tag")),
        json!({
            "pointer": "/source/oci_tag", "value": "v2",
            "source": source("reference", ("cluster", "demo-cluster-01", 2), ("crud-auth-token", "a hotfix")),
            "hidden": [
                {"value": "latest", "source": catalogue},
                {"value": "latest", "source": {"kind": "default"}}
            ]
        })
    );
    assert_eq!(without_times(field(&explanation, "/id"))["source"], catalogue);
}

#[test]
fn patches_identity_and_computed_values_are_explained() {
    let server = Server::crud();
    let explanation = server.get(PODINFO).json();
    let cluster = |kind| source(kind, ("cluster", "demo-cluster-01", 1), ("seed", "the log was empty"));
    assert_eq!(
        without_times(field(&explanation, "/patches/replicaCount")),
        json!({"pointer": "/patches/replicaCount", "value": "2", "source": cluster("patch")})
    );
    assert_eq!(
        without_times(field(&explanation, "/cluster/dns")),
        json!({"pointer": "/cluster/dns", "value": DEMO, "source": cluster("cluster")})
    );
    let server = Server::crud_with(&fleet_of(1));
    let explanation = server.get("/clusters/c00000/explain/platform-components/app").json();
    assert_eq!(
        field(&explanation, "/effective_depends_on"),
        json!({"pointer": "/effective_depends_on", "value": ["base"], "source": {"kind": "computed"}})
    );
}

#[test]
fn what_is_explained_is_what_is_served() {
    let server = Server::crud();
    for (path, list) in [("platform-components", "platform_components"), ("namespaces", "namespace")] {
        for input in server.poll(DEMO, path).json()["inputs"].as_array().unwrap() {
            let id = input["id"].as_str().unwrap();
            let explanation = server.get(&format!("/clusters/demo-cluster-01/explain/{list}/{id}")).json();
            for field in explanation["fields"].as_array().unwrap() {
                assert_eq!(input.pointer(field["pointer"].as_str().unwrap()), Some(&field["value"]), "{path}/{id}");
            }
        }
    }
}

#[test]
fn what_a_cluster_is_not_served_is_404() {
    let server = Server::crud();
    let refused = |path: &str| {
        let answer = server.get(path);
        (answer.status, answer.json()["code"].clone(), answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let missing = |detail: &str| (404, json!("not-found"), detail.to_owned());
    let path = "/clusters/demo-cluster-01/explain";
    assert_eq!(
        refused(&format!("{path}/platform-components/ghost")),
        missing("there is no platform_component \"ghost\" among the inputs of the cluster \"demo-cluster-01\"")
    );
    let unassigned = server.delete("/clusters/demo-cluster-01/namespaces/podinfo");
    assert_eq!(unassigned.status, 200);
    assert_eq!(
        refused(&format!("{path}/namespaces/podinfo")),
        missing("there is no namespace \"podinfo\" among the inputs of the cluster \"demo-cluster-01\""),
        "it is defined, and the cluster does not refer to it"
    );
    assert_eq!(refused("/clusters/ghost/explain/namespaces/podinfo"), missing("there is no cluster \"ghost\""));
    for nothing in [format!("{path}/ghosts/podinfo"), format!("{path}/clusters/demo-cluster-01")] {
        assert_eq!(refused(&nothing), missing("there is nothing at this path"));
    }
    assert_eq!(server.get(&format!("{PODINFO}?revision=1")).json()["code"], json!("invalid-query"));
    assert_eq!(server.delete("/clusters/demo-cluster-01").status, 200);
    assert_eq!(
        refused(PODINFO),
        missing(
            "there is no platform_component \"podinfo\" among the inputs of the decommissioned cluster \"demo-cluster-01\""
        )
    );
}

#[test]
fn the_read_token_is_enough_to_explain_and_none_is_not() {
    let server = Server::crud();
    assert_eq!(server.get(PODINFO).status, 200);
    assert_eq!(server.get_open(PODINFO).status, 401);
    assert_eq!(server.write("PUT", PODINFO, &json!({}), &[]).status, 405);
    assert_eq!(Server::demo().get(PODINFO).status, 404, "it is not served in the mode for clusters");
}
