//! Compressed answers are kept from one poll to the next. What is kept must never differ from what would be answered anew.

use std::io::Read as _;

use flate2::read::GzDecoder;
use fleet::{Empty, Packed, Refusal, Snapshot};
use model::Value;
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use crate::{after, cluster, fleet_of, poll_as};

/// The answer to a poll that takes gzip, unpacked; and whether it was compressed.
fn poll_gzip(fleet: &Snapshot, dns: &str, path: &str, empty: Empty) -> Result<(bool, Value), Refusal> {
    let cluster = fleet.cluster_at(dns)?;
    let packed = fleet.packed_inputs(cluster, fleet.registry().by_path(path).unwrap(), empty)?;
    let mut text = Vec::new();
    let is_compressed = matches!(packed, Packed::Zipped(_));
    match &packed {
        Packed::Plain(answer) => text.extend(answer.as_ref()),
        Packed::Zipped(answer) => drop(GzDecoder::new(answer.as_ref()).read_to_end(&mut text).unwrap()),
    }
    Ok((is_compressed, serde_json::from_slice(&text).unwrap()))
}

/// A cluster whose identity alone makes an answer long enough to be kept.
#[test]
fn a_compressed_empty_answer_is_of_the_kind_that_was_asked_for() {
    let mut demo = cluster("demo.example", &json!({}));
    demo["environment"] = json!("e".repeat(5_000));
    let fleet = fleet_of(&json!({"clusters": {"demo": demo}}));
    for _ in 0..2 {
        let (is_compressed, explicit) = poll_gzip(&fleet, "demo.example", "namespaces", Empty::Explicit).unwrap();
        assert!(is_compressed);
        assert_eq!(explicit["inputs"][0]["id"], json!("none"));
        let (_, bare) = poll_gzip(&fleet, "demo.example", "namespaces", Empty::Bare).unwrap();
        assert_eq!(bare, json!({"inputs": []}));
    }
}

const CLUSTERS: [&str; 2] = ["c0", "c1"];
const PATHS: [&str; 3] = ["namespaces", "rolebindings", "platform-components"];

/// Identities are so long that every answer is kept.
fn long_cluster(dns: &str, rest: &Value) -> Value {
    let mut body = cluster(dns, rest);
    body["environment"] = json!("e".repeat(5_000));
    body
}

/// One change: a cluster, a definition, a document that no type declares, or the record of a type, which comes, changes or goes.
fn any_change() -> impl Strategy<Value = Value> {
    let id = || proptest::sample::select(vec!["a", "b"]);
    let ids = || proptest::sample::subsequence(vec!["a", "b"], 0..=2);
    let of = |ids: Vec<&str>| ids.into_iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
    let one = proptest::sample::select(CLUSTERS.to_vec());
    let cluster = (one, ids(), ids(), 0..3_u8, any::<bool>()).prop_map(move |(one, spaces, components, dns, live)| {
        let lists =
            json!({"namespaces": of(spaces), "platform_components": of(components), "former_dns": ["old.example"]});
        let body = long_cluster(&format!("{one}-{dns}.example"), &lists);
        json!({"clusters": {one: if live { body } else { json!([body]) }}})
    });
    let definition = (proptest::sample::select(vec!["namespaces", "platform_components", "stray"]), id(), 0..4_u8);
    let definition = definition.prop_map(|(list, id, version)| {
        let body = json!({"id": id, "component_path": "p", "oci_url": "https://charts.example", "oci_tag": version.to_string(),
            "labels": {"version": version.to_string()}, "depends_on": [if id == "a" { "b" } else { "a" }]});
        json!({list: {id: if version == 0 { json!(false) } else { body }}})
    });
    let record = (proptest::sample::select(vec!["namespace", "platform_component"]), 0..3_u8);
    let record = record.prop_map(|(kind, what)| {
        let list = if what == 1 { "moved".to_owned() } else { format!("{kind}s") };
        let key = format!("{kind}_id");
        let body = json!({"id": kind, "kind": kind, "list": list, "path": list.replace('_', "-"), "key": key});
        json!({"resource_type": {kind: if what == 0 { json!(false) } else { body }}})
    });
    prop_oneof![3 => cluster, 3 => definition, 1 => record]
}

/// What a poll comes to: the answer, or the code of its refusal.
fn outcome(answer: Result<Value, Refusal>) -> Result<Value, &'static str> {
    answer.map_err(|refusal| refusal.code())
}

proptest! {
    #[test]
    fn a_compressed_answer_is_the_one_that_would_be_made_now(changes in vec(any_change(), 1..25)) {
        let mut fleet = fleet_of(&json!({
            "clusters": CLUSTERS.iter().map(|id| ((*id).to_owned(), long_cluster(&format!("{id}-0.example"), &json!({})))).collect::<model::Map>(),
        }));
        for change in changes {
            fleet = after(&fleet, &change);
            let names = CLUSTERS.iter().flat_map(|id| (0..3).map(move |dns| format!("{id}-{dns}.example")));
            for (dns, path) in names.chain(["old.example".to_owned()]).flat_map(|dns| PATHS.map(|path| (dns.clone(), path))) {
                for empty in [Empty::Bare, Empty::Explicit] {
                    let plain = outcome(poll_as(&fleet, &dns, path, empty));
                    let gzip = outcome(poll_gzip(&fleet, &dns, path, empty).map(|(_, answer)| answer));
                    prop_assert_eq!(gzip, plain, "{} {} after {}", dns, path, change);
                }
            }
        }
    }
}
