//! Dependencies between components: what of them a cluster is served, and catalogues that are as large as a batch can make them.
//!
//! The large ones are not timed. Work that grew with the square of the dependencies would not end while a test runs.

use std::collections::BTreeSet;

use fleet::{AllowedRemovals, Draft, EditError, Objections, Rule, Snapshot};
use jiff::Timestamp;
use model::{Id, Map, Origin, Patch, ResourceType, Value};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    BUILT_IN, after, cluster, component, fleet_of,
    laws::{catalogue, cluster_of},
    poll,
};

fn components() -> &'static ResourceType {
    BUILT_IN.by_path("platform-components").unwrap()
}

fn finish(draft: Draft<'_>) -> Result<Snapshot, Objections> {
    let origin = Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None };
    draft.into_change(origin, AllowedRemovals::AtMost(0)).map(|(_, fleet)| fleet)
}

fn id(name: &str) -> Id {
    Id::parse(name).unwrap()
}

fn patch(draft: &mut Draft<'_>, name: &str, depends_on: &[&str]) {
    draft.patch(components(), &id(name), &Patch::Merge(json!({"depends_on": depends_on}))).unwrap();
}

fn create(draft: &mut Draft<'_>, name: &str, depends_on: &[&str]) {
    let mut fields = component("https://x", depends_on);
    fields["id"] = json!(name);
    draft.create(components(), fields.as_object().unwrap().clone()).unwrap();
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

const COUNT: usize = 3_000;
const EACH: usize = 20;

fn name(at: usize) -> String {
    format!("y{at}")
}

/// Many components, each of which depends on those before it.
fn large() -> Snapshot {
    let empty = Snapshot::empty(BUILT_IN.clone());
    let mut draft = Draft::on(&empty);
    for at in 0..COUNT {
        let on: Vec<_> = (at.saturating_sub(EACH)..at).map(name).collect();
        create(&mut draft, &name(at), &on.iter().map(String::as_str).collect::<Vec<_>>());
    }
    finish(draft).unwrap()
}

#[test]
fn a_large_catalogue_is_made_loaded_edited_and_deleted() {
    let made = large();
    let documents = made.all_documents().cloned();
    let fleet = Snapshot::load(BUILT_IN.clone(), *made.point(), documents).unwrap();
    let last = name(COUNT - 1);

    let mut draft = Draft::on(&fleet);
    patch(&mut draft, &last, &["y1"]);
    assert_eq!(finish(draft).unwrap().problems().count(), 0);

    let mut draft = Draft::on(&fleet);
    patch(&mut draft, "y0", &[&last]);
    let Err(Objections::Rules(errors)) = finish(draft) else { panic!("a cycle is refused") };
    assert!(errors.iter().all(|error| error.rule == Rule::DependencyCycle.name()));

    let mut draft = Draft::on(&fleet);
    for at in (0..COUNT).rev() {
        draft.delete(components(), &id(&name(at)), false).unwrap();
    }
    assert_eq!(finish(draft).unwrap().documents(components()).count(), 0);
}

#[test]
fn a_cluster_with_much_of_a_large_catalogue_is_answered_also_where_that_is_one_cycle() {
    // With more of them the answer would be larger than Flux takes.
    const MANY: usize = COUNT / 3;
    let list: Vec<_> = (0..MANY).map(|at| json!({"id": name(at)})).collect();
    let many = cluster("many.example", &json!({"platform_components": list}));
    let fleet = after(&large(), &json!({"clusters": {"many": many}}));
    let effective = |fleet: &Snapshot| -> usize {
        let answer = poll(fleet, "many.example", "platform-components").unwrap();
        let inputs = answer["inputs"].as_array().unwrap();
        inputs.iter().map(|input| input["effective_depends_on"].as_array().unwrap().len()).sum()
    };
    let dependencies = MANY * EACH - (1..=EACH).sum::<usize>();
    assert_eq!(effective(&fleet), dependencies);

    // The API refuses it; a seed may bring it.
    let first = component("https://x", &[&name(MANY - 1)]);
    let circular = after(&fleet, &json!({"platform_components": {"y0": first}}));
    assert_eq!(circular.problem_count(Rule::DependencyCycle), dependencies as u64 + 1);
    assert_eq!(effective(&circular), 0);
    // What was closed by one dependency is opened by another.
    let open = after(&circular, &json!({"platform_components": {"y0": component("https://x", &[])}}));
    assert_eq!((open.problems().count(), effective(&open)), (0, dependencies));
}

#[test]
fn a_delete_sees_who_depends_on_it_at_that_point_of_the_batch() {
    let fleet = fleet_of(&json!({"platform_components": {
        "base": component("https://x", &[]), "app": component("https://x", &["base"]), "other": component("https://x", &[])
    }}));
    let refused = |draft: &mut Draft<'_>| match draft.delete(components(), &id("base"), false) {
        Err(EditError::Referenced { by, .. }) => by,
        other => panic!("{other:?}"),
    };
    let mut draft = Draft::on(&fleet);
    assert_eq!(refused(&mut draft), ["platform_component/app"]);
    patch(&mut draft, "other", &["base"]);
    create(&mut draft, "new", &["other", "base"]);
    let all = ["platform_component/app", "platform_component/new", "platform_component/other"];
    assert_eq!(refused(&mut draft), all);
    patch(&mut draft, "app", &[]);
    assert_eq!(refused(&mut draft), all[1..]);
    draft.delete(components(), &id("new"), false).unwrap();
    draft.delete(components(), &id("base"), true).unwrap();
    let after = finish(draft).unwrap();
    let left: Vec<_> = after.documents(components()).map(|it| it.body.fields().unwrap()).collect();
    let left: Vec<_> = left.iter().map(|fields| (&fields["id"], &fields["depends_on"])).collect();
    assert_eq!(left, [(&json!("app"), &json!([])), (&json!("other"), &json!([]))]);
}

/// What a component of a cluster depends on and Flux can order.
fn possible<'a>(catalogue: &'a Map, enabled: &BTreeSet<&str>, of: &str) -> Vec<&'a str> {
    let url = |name: &str| catalogue.get(name).map(|it| &it["oci_url"]);
    let is_possible = |on: &&str| enabled.contains(on) && url(on).is_some() && url(on) == url(of);
    strings(&catalogue[of]["depends_on"]).into_iter().filter(is_possible).collect()
}

fn waits(catalogue: &Map, enabled: &BTreeSet<&str>, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(possible(catalogue, enabled, at));
        }
    }
    false
}

proptest! {
    /// Found by a walk from each dependency, as the book describes it.
    #[test]
    fn a_dependency_is_served_unless_it_waits_for_its_dependant_on_that_cluster(
        catalogue in catalogue(), body in cluster_of("c.example".to_owned()),
    ) {
        let fleet = fleet_of(&json!({"platform_components": &catalogue, "clusters": {"c": &body}}));
        let Ok(answer) = poll(&fleet, "c.example", "platform-components") else { return Ok(()) };
        let (catalogue, list) = (catalogue.as_object().unwrap(), body["platform_components"].as_array().unwrap());
        let enabled = list.iter().filter(|it| it.get("enabled") != Some(&json!(false)));
        let enabled: BTreeSet<_> = enabled.map(|it| it["id"].as_str().unwrap()).collect();
        for input in answer["inputs"].as_array().unwrap() {
            let of = input["id"].as_str().unwrap();
            let expected = possible(catalogue, &enabled, of).into_iter().filter(|on| !waits(catalogue, &enabled, on, of));
            prop_assert_eq!(strings(&input["effective_depends_on"]), expected.collect::<Vec<_>>(), "{}", of);
        }
        let all: BTreeSet<_> = catalogue.keys().map(String::as_str).collect();
        let defined = |on: &&str| all.contains(on);
        // In the catalogue, what it is delivered as makes no difference.
        let same: Map = catalogue.iter().map(|(id, it)| (id.clone(), json!({"oci_url": "", "depends_on": it["depends_on"]}))).collect();
        let cyclic = |of: &&str| strings(&same[*of]["depends_on"]).into_iter().filter(defined).filter(|on| waits(&same, &all, on, of)).count();
        prop_assert_eq!(fleet.problem_count(Rule::DependencyCycle), all.iter().map(cyclic).sum::<usize>() as u64);
    }
}
