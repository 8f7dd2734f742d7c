//! Problems: counted with every change, listed on request, and summed up for a log line.

use std::collections::BTreeMap;

use fleet::{Problem, ProblemFilter, Rule, Snapshot};
use model::{Id, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use crate::{
    BUILT_IN, after, change, cluster, component, fleet_of,
    laws::{CLUSTERS, COMPONENTS, answers, catalogue, cluster_of, clusters},
};

/// How often each rule is broken, by the texts.
fn texts_by_rule(fleet: &Snapshot) -> BTreeMap<Rule, u64> {
    let mut counts: BTreeMap<_, _> = Rule::ALL.into_iter().map(|rule| (rule, 0)).collect();
    fleet.problems().for_each(|problem| *counts.entry(problem.rule).or_default() += 1);
    counts
}

fn counts_by_rule(fleet: &Snapshot) -> BTreeMap<Rule, u64> {
    Rule::ALL.into_iter().map(|rule| (rule, fleet.problem_count(rule))).collect()
}

/// One write: a cluster, changed or decommissioned, removed or with the name of another; or a definition.
fn step() -> impl Strategy<Value = Value> {
    let id = select(CLUSTERS.to_vec());
    let put = (id.clone(), id.clone())
        .prop_flat_map(|(id, dns)| (Just(id), cluster_of(format!("{dns}.example")), any::<bool>(), any::<bool>()));
    let cluster = put.prop_map(|(id, mut body, unread, retired)| {
        if unread {
            body["network_policies"] = json!([{"id": "x"}]);
        }
        json!({"clusters": {id: if retired { json!([body]) } else { body }}})
    });
    let gone = id.prop_map(|id| json!({"clusters": {id: false}}));
    let definition = (select(COMPONENTS.to_vec()), catalogue()).prop_map(|(id, catalogue)| {
        let body = catalogue.get(id).cloned().unwrap_or(json!(false));
        json!({"platform_components": {id: body}})
    });
    let undeclared = any::<bool>()
        .prop_map(|there| json!({"network_policy": {"x": if there { json!({"a": 1}) } else { json!(false) }}}));
    prop_oneof![3 => cluster, 1 => gone, 3 => definition, 1 => undeclared]
}

proptest! {
    #[test]
    fn counts_that_changes_keep_are_those_of_the_same_fleet_loaded_anew(
        catalogue in catalogue(), clusters in clusters(), steps in vec(step(), 1..8),
    ) {
        let first = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        let kept = steps.iter().fold(first, |fleet, step| after(&fleet, step));
        let documents: Vec<_> = kept.all_documents().cloned().collect();
        let loaded = Snapshot::load(BUILT_IN.clone(), *kept.point(), documents).unwrap();
        prop_assert_eq!(counts_by_rule(&kept), counts_by_rule(&loaded));
        prop_assert_eq!(counts_by_rule(&kept), texts_by_rule(&kept), "what is counted is what is listed");
        prop_assert!(kept.problems().eq(loaded.problems()));
        prop_assert_eq!(answers(&kept), answers(&loaded));
    }

    #[test]
    fn pages_of_problems_are_the_list_in_parts(
        catalogue in catalogue(), clusters in clusters(), limit in 1..5_u64, rule in select(Rule::ALL.to_vec()),
    ) {
        let fleet = fleet_of(&json!({"platform_components": catalogue, "clusters": clusters}));
        let id = Some(Id::parse("c1").unwrap());
        for filter in [
            ProblemFilter::default(),
            ProblemFilter { rule: Some(rule), ..ProblemFilter::default() },
            ProblemFilter { id, kind: Some("cluster".into()), ..ProblemFilter::default() },
        ] {
            let all: Vec<Problem> = fleet.problems().filter(|problem| filter.accepts(problem)).collect();
            let total = all.len() as u64;
            let mut found = Vec::new();
            for offset in (0..=total).step_by(usize::try_from(limit).unwrap()) {
                let page = fleet.problem_page(&filter, offset, limit);
                prop_assert_eq!(page.total, total);
                prop_assert!(page.problems.len() as u64 <= limit);
                found.extend(page.problems);
            }
            prop_assert_eq!(found, all);
        }
    }
}

/// A component whose patches are no variables and whose dependency is missing, on many clusters.
fn troubled(clusters: usize) -> Snapshot {
    let body = |at: usize| {
        let list = json!({"platform_components": [{"id": "app"}], "patches": {"app": {"a.b": "1", "c.d": "2"}}});
        cluster(&format!("c{at}.example"), &list)
    };
    let clusters: model::Map = (0..clusters).map(|at| (format!("c{at}"), body(at))).collect();
    fleet_of(&json!({"platform_components": {"app": component("oci://x/y", &["db"])}, "clusters": clusters}))
}

#[test]
fn the_summary_of_new_problems_is_as_long_for_a_large_fleet_as_for_a_small_one() {
    let (small, large) = (troubled(7), troubled(7_000));
    let summary = |fleet: &Snapshot| fleet.risen_problems(None).unwrap().to_string();
    assert_eq!(summary(&small).replace(" 14", " 14000").replace(" 7,", " 7000,"), summary(&large));
    assert_eq!(
        summary(&small),
        "missing-dependency 1, dependency-not-assigned 7, invalid-variable 14; for example: \
         cluster \"c0\" /platform_components/0: \"app\" depends on \"db\", which this cluster has not enabled \
         (dependency-not-assigned); cluster \"c0\" /patches/app/a.b: \"a.b\" is not a free name of a variable, which patches \
         of an OCI artifact are (invalid-variable); platform_component \"app\" /depends_on/0: platform_component \"db\" is \
         not defined (missing-dependency)"
    );
}

#[test]
fn an_example_is_a_new_problem_and_there_is_no_summary_without_one() {
    let before = troubled(7);
    assert!(before.risen_problems(Some(&before)).is_none());
    let worse =
        json!({"platform_components": [{"id": "app"}], "patches": {"app": {"a.b": "1", "c.d": "2", "new.e": "3"}}});
    let after_it = after(&before, &json!({"clusters": {"c4": cluster("c4.example", &worse)}}));
    let risen = after_it.risen_problems(Some(&before)).unwrap();
    assert_eq!(risen.rules, [(Rule::InvalidVariable, 14, 15)]);
    let places: Vec<_> = risen.examples.iter().map(|it| (it.id.as_str(), it.pointer.as_str())).collect();
    assert_eq!(places, [("c4", "/patches/app/new.e")]);
    assert!(before.risen_problems(Some(&after_it)).is_none(), "fewer are no news");
}

#[test]
fn an_example_is_short_whatever_a_document_contains() {
    let long = "x.".repeat(50_000) + "y";
    let body = json!({"platform_components": [{"id": "app"}], "patches": {"app": {long: "1"}}});
    let fleet = after(&troubled(1), &json!({"clusters": {"c0": cluster("c0.example", &body)}}));
    let summary = fleet.risen_problems(None).unwrap().to_string();
    assert!(summary.len() < 2_000, "{}", summary.len());
}

#[test]
fn a_null_in_a_reference_sets_nothing_and_the_last_of_several_counts() {
    let components = json!({"app": component("https://x", &[])});
    let poll = |reference: &str| {
        let fields = cluster("c.example", &json!({}));
        let mut body = fields.to_string();
        body.truncate(body.len() - 1);
        let text = format!("{body},\"platform_components\":[{reference}]}}");
        let blank = fleet_of(&json!({"platform_components": components}));
        let write = model::Write {
            kind: "cluster".into(),
            id: Id::parse("c").unwrap(),
            op: model::Op::Put(model::Body::plain(&text)),
        };
        let fleet = blank.apply(&change(&blank, vec![write])).unwrap();
        crate::poll(&fleet, "c.example", "platform-components").unwrap()
    };
    let bare = poll(r#"{"id":"app"}"#);
    for same in [
        r#"{"id":"app","enabled":true,"oci_tag":null,"component_path":null}"#,
        r#"{"id":"app","enabled":null}"#,
        r#"{"id":"app","oci_tag":"v2","oci_tag":null}"#,
    ] {
        assert_eq!(poll(same), bare, "{same}");
    }
    let tagged = poll(r#"{"id":"app","oci_tag":null,"component_path":null,"oci_tag":"v2"}"#);
    assert_eq!(tagged["inputs"][0]["source"]["oci_tag"], json!("v2"));
}
