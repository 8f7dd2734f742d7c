//! A reference that leads nowhere. No change can make one: every id in a list keeps its entry for as long as the list is there.
//! If that should ever fail, an answer must fail too, and never become shorter.
//!
//! And the cost of a snapshot in dependencies, which can be counted only from inside.

use jiff::Timestamp;
use model::{Body, Change, Op, Origin, Write};
use serde_json::{Value, json};

use super::*;
use crate::{Empty, catalogue::Catalogue, cycles::FOLLOWED};

fn put(registry: &Registry, list: &str, id: &str, body: &Value) -> Write {
    let op = Op::Put(Body::from_fields(body.as_object().unwrap()));
    Write { kind: registry.by_name(list).unwrap().kind.clone(), id: Id::parse(id).unwrap(), op }
}

#[test]
fn a_list_whose_references_lead_nowhere_is_an_error_and_not_a_shorter_answer() {
    let registry = Arc::new(Registry::built_in().unwrap());
    let cluster = json!({"cluster_name": "one", "cluster_dns": "one.example", "environment": "dev",
        "namespaces": [{"id": "a"}, {"id": "b"}]});
    let writes = vec![
        put(&registry, "namespaces", "a", &json!({})),
        put(&registry, "namespaces", "b", &json!({})),
        put(&registry, "clusters", "one", &cluster),
    ];
    let empty = Snapshot::empty(registry.clone());
    let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
    let mut fleet = empty.apply(&Change::after(empty.point(), origin, writes)).unwrap();
    let namespaces = registry.by_path("namespaces").unwrap();
    let answer = |fleet: &Snapshot, empty| {
        let cluster = fleet.cluster_at("one.example").unwrap();
        fleet.inputs(cluster, namespaces, empty).map(|answer| String::from_utf8(answer.as_ref().to_vec()).unwrap())
    };
    assert!(answer(&fleet, Empty::Bare).unwrap().contains("\"b\""));

    // One of the two entries is lost: the other definition alone would be a shorter answer.
    let mut partial = Catalogue::default();
    let definition = fleet.catalogue(namespaces).unwrap().find("a").unwrap().definition.clone();
    partial.define(&Id::parse("a").unwrap(), definition);
    for catalogue in [partial, Catalogue::default()] {
        fleet.catalogues[namespaces.position] = catalogue;
        for empty in [Empty::Bare, Empty::Explicit] {
            let code = answer(&fleet, empty).map_err(|refusal| refusal.code());
            assert_eq!(code, Err("unreadable-document"));
        }
    }
}

#[test]
fn a_start_and_a_change_of_the_order_follow_each_dependency_once_and_another_change_none() {
    const COUNT: usize = 60;
    const EACH: usize = 6;
    let registry = Arc::new(Registry::built_in().unwrap());
    let component = |at: usize, tag: &str, on: std::ops::Range<usize>| {
        let on: Vec<_> = on.map(|on| format!("y{on}")).collect();
        let body = json!({"component_path": "p", "oci_url": "oci://x/y", "oci_tag": tag, "depends_on": on});
        put(&registry, "platform_components", &format!("y{at}"), &body)
    };
    let origin = || Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
    let apply = |fleet: &Snapshot, writes| {
        let before = FOLLOWED.get();
        let next = fleet.apply(&Change::after(fleet.point(), origin(), writes)).unwrap();
        (next, FOLLOWED.get() - before)
    };
    let dependencies = COUNT * EACH - (1..=EACH).sum::<usize>();
    let all = (0..COUNT).map(|at| component(at, "v1", at.saturating_sub(EACH)..at)).collect();
    let (fleet, followed) = apply(&Snapshot::empty(registry.clone()), all);
    assert_eq!(followed, dependencies);
    let (_, followed) = apply(&fleet, vec![component(COUNT - 1, "v1", 0..1)]);
    assert_eq!(followed, dependencies - EACH + 1);
    let (_, followed) = apply(&fleet, vec![component(COUNT - 1, "v2", COUNT - 1 - EACH..COUNT - 1)]);
    assert_eq!(followed, 0, "who depends on whom is as before");

    let before = FOLLOWED.get();
    let documents: Vec<_> = fleet.all_documents().cloned().collect();
    Snapshot::load(registry.clone(), *fleet.point(), documents).unwrap();
    assert_eq!(FOLLOWED.get() - before, dependencies);
}
