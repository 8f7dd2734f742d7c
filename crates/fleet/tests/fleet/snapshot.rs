//! The snapshot: indexes, tombstones, problems, refusals, and that it only goes forward.

use std::sync::Arc;

use fleet::{Empty, MAX_BYTES, Refusal, Rule, Snapshot, SnapshotError, fleet as new_fleet};
use model::{Body, Document, Id};
use serde_json::json;

use crate::{BUILT_IN, after, change, cluster, component, fleet_of, poll, poll_as};

#[test]
fn a_name_that_was_never_known_is_no_empty_cluster() {
    let fleet = fleet_of(&json!({"clusters": {"demo": cluster("demo.example", &json!({}))}}));
    assert!(matches!(poll(&fleet, "other.example", "namespaces"), Err(Refusal::UnknownCluster)));
    assert!(poll(&fleet, "DEMO.Example.", "namespaces").is_ok(), "case and a trailing dot do not matter");
}

#[test]
fn only_a_decommissioned_cluster_gets_an_empty_answer() {
    let documents = json!({
        "namespaces": {"a": {}},
        "clusters": {"one": cluster("one.example", &json!({"namespaces": [{"id": "a"}]})),
                     "two": cluster("two.example", &json!({"namespaces": [{"id": "a"}]}))}
    });
    let live = fleet_of(&documents);
    let before = poll(&live, "one.example", "namespaces").unwrap();

    let gone = after(&live, &json!({"clusters": {"one": [documents["clusters"]["one"]]}}));
    assert_eq!(poll(&gone, "one.example", "namespaces").unwrap(), json!({"inputs": []}));
    let none = poll_as(&gone, "one.example", "namespaces", Empty::Explicit).unwrap();
    assert_eq!(none["inputs"][0]["cluster"]["dns"], json!("one.example"));
    assert_eq!(poll(&gone, "two.example", "namespaces").unwrap(), poll(&live, "two.example", "namespaces").unwrap());

    let back = after(&gone, &json!({"clusters": {"one": documents["clusters"]["one"]}}));
    assert_eq!(poll(&back, "one.example", "namespaces").unwrap(), before, "re-creating lifts the tombstone");
    let purged = after(&gone, &json!({"clusters": {"one": false}}));
    assert!(matches!(poll(&purged, "one.example", "namespaces"), Err(Refusal::UnknownCluster)));
}

#[test]
fn a_live_cluster_hides_the_tombstone_of_another_with_its_name() {
    let fleet = fleet_of(&json!({"namespaces": {"a": {}}, "clusters": {"old": cluster("x.example", &json!({}))}}));
    let fleet = after(&fleet, &json!({"clusters": {"old": [cluster("x.example", &json!({}))]}}));
    let heir = cluster("X.example", &json!({"namespaces": [{"id": "a"}]}));
    let fleet = after(&fleet, &json!({"clusters": {"new": heir}}));
    assert_eq!(poll(&fleet, "x.example", "namespaces").unwrap()["inputs"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.problems().map(|problem| problem.rule).collect::<Vec<_>>(), [Rule::TombstoneDns]);
}

#[test]
fn a_renamed_cluster_leaves_no_trace_under_its_old_name() {
    let fleet = fleet_of(&json!({"clusters": {"demo": cluster("old.example", &json!({}))}}));
    let fleet = after(&fleet, &json!({"clusters": {"demo": cluster("new.example", &json!({}))}}));
    assert!(matches!(poll(&fleet, "old.example", "namespaces"), Err(Refusal::UnknownCluster)));
    assert!(poll(&fleet, "new.example", "namespaces").is_ok());
}

#[test]
fn two_clusters_of_one_name_are_both_refused_until_one_gives_way() {
    let twins = json!({"a": cluster("x.example", &json!({})), "b": cluster("X.example.", &json!({}))});
    let fleet = fleet_of(&json!({"clusters": twins}));
    let refusal = poll(&fleet, "x.example", "namespaces").unwrap_err();
    assert_eq!(refusal.to_string(), "the clusters a, b claim the same DNS name");
    assert_eq!(fleet.problems().filter(|problem| problem.rule == Rule::DuplicateDns).count(), 2);
    let fleet = after(&fleet, &json!({"clusters": {"b": [cluster("x.example", &json!({}))]}}));
    assert!(poll(&fleet, "x.example", "namespaces").is_ok());
    assert_eq!(fleet.problems().map(|problem| problem.rule).collect::<Vec<_>>(), [Rule::TombstoneDns]);
}

#[test]
fn a_missing_definition_is_passed_over_and_shown_until_it_is_there() {
    let fleet = fleet_of(&json!({
        "namespaces": {"a": {}},
        "platform_components": {"app": component("https://x", &["db"])},
        "clusters": {"demo": cluster("demo.example", &json!({"namespaces": [{"id": "ghost"}, {"id": "a"}]}))}
    }));
    assert_eq!(poll(&fleet, "demo.example", "namespaces").unwrap()["inputs"].as_array().unwrap().len(), 1);
    let problems: Vec<_> = fleet.problems().map(|problem| problem.to_string()).collect();
    assert_eq!(
        problems,
        [
            "cluster \"demo\" /namespaces/0: namespace \"ghost\" is not defined (missing-definition)",
            "platform_component \"app\" /depends_on/0: platform_component \"db\" is not defined (missing-dependency)",
        ]
    );
    let fleet = after(
        &fleet,
        &json!({"namespaces": {"ghost": {}}, "platform_components": {"db": component("https://x", &[])}}),
    );
    assert_eq!(fleet.problems().count(), 0);
    let fleet = after(&fleet, &json!({"namespaces": {"ghost": false}}));
    assert_eq!(fleet.problems().count(), 1, "and again when it goes");
}

#[test]
fn referrers_are_the_live_clusters_that_name_a_definition() {
    let with = |dns: &str| cluster(dns, &json!({"namespaces": [{"id": "a"}]}));
    let fleet =
        fleet_of(&json!({"namespaces": {"a": {}}, "clusters": {"one": with("1.example"), "two": with("2.example")}}));
    let referrers = |fleet: &Snapshot| {
        let ty = fleet.registry().by_kind("namespace").unwrap();
        let ids = fleet.referrers(ty, &model::Id::parse("a").unwrap());
        ids.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(referrers(&fleet), ["one", "two"]);
    let fleet =
        after(&fleet, &json!({"clusters": {"one": cluster("1.example", &json!({})), "two": [with("2.example")]}}));
    assert_eq!(referrers(&fleet), Vec::<String>::new());
}

#[test]
fn what_flux_would_choke_on_is_refused() {
    let component_of = |patches| {
        json!({"platform_components": {"app": component("https://x", &[])}, "clusters": {"demo": cluster("demo.example",
            &json!({"platform_components": [{"id": "app"}], "patches": {"app": patches}}))}})
    };
    let fleet = fleet_of(&component_of(json!({"a..b": "1"})));
    let refusal = poll(&fleet, "demo.example", "platform-components").unwrap_err();
    assert!(matches!(refusal, Refusal::Patch { .. }), "{refusal}");
    assert_eq!(fleet.problems().map(|problem| problem.pointer).collect::<Vec<_>>(), ["/patches/app/a..b"]);
    assert!(poll(&fleet, "demo.example", "namespaces").is_ok(), "other types of the cluster are answered");

    let twice = cluster("demo.example", &json!({"namespaces": [{"id": "a"}, {"id": "a"}]}));
    let fleet = fleet_of(&json!({"namespaces": {"a": {}}, "clusters": {"demo": twice}}));
    assert!(matches!(poll(&fleet, "demo.example", "namespaces"), Err(Refusal::DuplicateInput(_))));
    assert_eq!(fleet.problems().map(|problem| problem.rule).collect::<Vec<_>>(), [Rule::DuplicateReference]);
}

#[test]
fn an_answer_is_never_cut_to_size() {
    let names: Vec<_> = (0..10_001).map(|at| format!("n{at}")).collect();
    let namespaces: model::Map = names.iter().map(|name| (name.clone(), json!({}))).collect();
    let all = |count: usize| {
        let list: Vec<_> = names[..count].iter().map(|name| json!({"id": name})).collect();
        cluster("demo.example", &json!({"namespaces": list}))
    };
    let fleet = fleet_of(&json!({"namespaces": namespaces, "clusters": {"demo": all(10_001)}}));
    let refusal = poll(&fleet, "demo.example", "namespaces").unwrap_err();
    assert!(matches!(refusal, Refusal::TooManyInputs(10_001)), "{refusal}");

    let one = |length: usize| {
        let labels = json!({"labels": {"x": "y".repeat(length)}});
        fleet_of(&json!({"namespaces": {"a": labels},
            "clusters": {"demo": cluster("demo.example", &json!({"namespaces": [{"id": "a"}]}))}}))
    };
    let bytes = |fleet: &Snapshot| {
        let ty = fleet.registry().by_path("namespaces").unwrap();
        fleet.inputs(fleet.cluster_at("demo.example").unwrap(), ty, Empty::Bare).map(|answer| answer.as_ref().len())
    };
    let rest = bytes(&one(0)).unwrap();
    assert_eq!(bytes(&one(MAX_BYTES - rest)).unwrap(), MAX_BYTES, "the limit itself is answered");
    assert!(matches!(bytes(&one(MAX_BYTES - rest + 1)), Err(Refusal::TooLarge(size)) if size == MAX_BYTES + 1));
}

#[test]
fn a_document_of_an_unknown_kind_is_kept_and_shown() {
    let fleet = fleet_of(&json!({"network_policy": {"x": {"a": 1}}}));
    assert_eq!(fleet.problems().map(|problem| problem.rule).collect::<Vec<_>>(), [Rule::UnknownKind]);
    assert_eq!(after(&fleet, &json!({"network_policy": {"x": false}})).problems().count(), 0);
}

#[test]
fn an_unreadable_document_makes_no_snapshot() {
    let fleet = fleet_of(&json!({}));
    for bad in
        [json!({}), cluster("x.example", &json!({"namespaces": 7})), cluster("x.example", &json!({"namespaces": [{}]}))]
    {
        let write = crate::write(fleet.registry(), "clusters", "x", &bad);
        let error = fleet.apply(&change(&fleet, vec![write])).unwrap_err();
        assert!(matches!(error, SnapshotError::Unreadable { .. }), "{error}");
    }
}

#[test]
fn changes_apply_in_order_only() {
    let fleet = fleet_of(&json!({}));
    let (older, newer) = (Snapshot::empty(BUILT_IN.clone()), after(&fleet, &json!({})));
    let other = fleet_of(&json!({"namespaces": {"a": {}}}));
    for wrong in [older, newer, other] {
        let error = fleet.apply(&change(&wrong, vec![])).unwrap_err();
        assert!(matches!(error, SnapshotError::OutOfOrder { .. }), "{error}");
    }
}

#[test]
fn readers_see_the_newest_snapshot() {
    let (mut writer, reader) = new_fleet();
    assert!(reader.snapshot().is_none(), "nothing is known before the first snapshot");
    let first = Snapshot::empty(BUILT_IN.clone());
    let second = first.apply(&change(&first, vec![])).unwrap();
    for fleet in [first, second] {
        writer.publish(Arc::new(fleet.clone()));
        assert_eq!(reader.snapshot().unwrap().point(), fleet.point());
    }
}

#[test]
fn a_large_fleet_is_read_on_all_cores_and_is_the_same() {
    const CLUSTERS: usize = 1_300;
    let body = |at: usize| {
        let list: Vec<_> = (0..5).map(|n| json!({"id": format!("n{}", (at * 7 + n) % 40)})).collect();
        cluster(&format!("c{at}.example"), &json!({"namespaces": list}))
    };
    // Some of the namespaces are not defined.
    let namespaces: serde_json::Map<_, _> = (0..35).map(|n| (format!("n{n}"), json!({}))).collect();
    let clusters: serde_json::Map<_, _> = (0..CLUSTERS).map(|at| (format!("c{at}"), body(at))).collect();
    let namespaces_first = after(&fleet_of(&json!({})), &json!({"namespaces": namespaces}));
    let applied = after(&namespaces_first, &json!({"clusters": clusters}));
    let documents: Vec<_> = applied.all_documents().cloned().collect();
    let loaded = Snapshot::load(BUILT_IN.clone(), *applied.point(), documents).unwrap();

    assert_eq!(applied.clusters().count(), CLUSTERS);
    assert!(applied.problems().next().is_some());
    assert!(applied.problems().eq(loaded.problems()));
    let ty = applied.registry().by_path("namespaces").unwrap();
    for at in 0..CLUSTERS {
        let dns = format!("c{at}.example");
        let answer = |fleet: &Snapshot| poll(fleet, &dns, "namespaces").map_err(|refusal| refusal.to_string());
        assert_eq!(answer(&applied), answer(&loaded));
    }
    for id in (0..40).map(|n| model::Id::parse(&format!("n{n}")).unwrap()) {
        let referrers = |fleet: &Snapshot| fleet.referrers(ty, &id).cloned().collect::<std::collections::BTreeSet<_>>();
        assert!(!referrers(&applied).is_empty());
        assert_eq!(referrers(&applied), referrers(&loaded));
    }
}

#[test]
fn what_an_answer_is_made_of_has_a_stamp() {
    let fleet = fleet_of(&json!({
        "namespaces": {"a": {}},
        "clusters": {"one": cluster("one.example", &json!({"namespaces": [{"id": "a"}]})),
                     "two": cluster("two.example", &json!({}))}
    }));
    let stamp = |fleet: &Snapshot| {
        fleet.stamp(
            fleet.cluster_at("one.example").unwrap(),
            fleet.registry().by_path("namespaces").unwrap(),
            Empty::Bare,
        )
    };
    let before = stamp(&fleet);
    let elsewhere = after(&fleet, &json!({"clusters": {"two": cluster("two.example", &json!({"namespaces": []}))}}));
    assert_eq!(stamp(&elsewhere), before, "another cluster does not matter");
    let elsewhere = after(&fleet, &json!({"platform_components": {"app": component("https://x", &[])}}));
    assert_eq!(stamp(&elsewhere), before, "another type does not matter");
    let changes = [
        json!({"namespaces": {"a": {"labels": {"x": "y"}}}}),
        json!({"namespaces": {"a": false}}),
        json!({"clusters": {"one": cluster("one.example", &json!({"namespaces": [{"id": "a"}]}))}}),
        json!({"undeclared": {"a": {}}}),
    ];
    for change in changes {
        assert_ne!(stamp(&after(&fleet, &change)), before, "{change}");
    }
}

#[test]
fn a_cluster_polls_under_any_spelling_and_gets_its_own() {
    for spelling in ["one.example", "One.Example", "one.example."] {
        let fleet = fleet_of(&json!({"clusters": {"one": cluster(spelling, &json!({}))}}));
        assert_eq!(fleet.cluster_at("ONE.example.").unwrap().dns(), "one.example", "{spelling}");
        let identity: serde_json::Value =
            serde_json::from_str(fleet.cluster_at("one.example").unwrap().identity()).unwrap();
        assert_eq!(identity["dns"], spelling);
    }
}

/// Enough of them for the table of names to be made anew a few times.
#[test]
fn names_lead_to_their_clusters_after_many_changes() {
    const CLUSTERS: usize = 100;
    const PARTING: usize = 250;
    let named = |number: usize, round: usize| {
        let dns = format!("c{number}-{}.example", round % 3);
        json!({"clusters": {format!("c{number}"): cluster(&dns, &json!({"environment": round.to_string()}))}})
    };
    let mut all: serde_json::Map<_, _> =
        (0..CLUSTERS).map(|at| (format!("c{at}"), named(at, 0)["clusters"][format!("c{at}")].clone())).collect();
    // Two of one name, until one of them gives way.
    all.extend(["t1", "t2"].map(|twin| (twin.to_owned(), cluster("twins.example", &json!({})))));
    let first = fleet_of(&json!({"clusters": all}));
    let mut fleet = first.clone();
    let mut rounds = [0; CLUSTERS];
    for step in 0..500 {
        let number = step * 37 % CLUSTERS;
        rounds[number] += 1;
        fleet = after(&fleet, &named(number, rounds[number]));
        if step == PARTING {
            fleet = after(&fleet, &json!({"clusters": {"t1": cluster("t1.example", &json!({}))}}));
        }
        match fleet.cluster_at("twins.example") {
            Ok(twin) => assert!(step >= PARTING && twin.id().as_str() == "t2", "step {step}"),
            Err(refusal) => assert!(step < PARTING && refusal.code() == "ambiguous-dns", "step {step}"),
        }
        for (number, round) in rounds.iter().enumerate().skip(step % 7).step_by(7) {
            for name in 0..3 {
                let found = fleet.cluster_at(&format!("c{number}-{name}.example")).ok().map(|it| it.id().to_string());
                assert_eq!(found, (name == round % 3).then(|| format!("c{number}")), "step {step}");
            }
            let identity = fleet.cluster_at(&format!("c{number}-{}.example", round % 3)).unwrap().identity().to_owned();
            assert!(identity.contains(&format!("\"environment\":\"{round}\"")), "{identity}, step {step}");
        }
    }
    let untouched = (0..CLUSTERS).all(|number| first.cluster_at(&format!("c{number}-0.example")).is_ok());
    assert!(untouched, "earlier snapshots stay what they were");
}

#[test]
fn polls_are_counted_for_as_long_as_the_cluster_is_there() {
    let one = || json!({"clusters": {"one": cluster("one.example", &json!({"labels": {}}))}});
    let fleet = fleet_of(&one());
    let ty = fleet.registry().by_path("namespaces").unwrap();
    let polls = |fleet: &Snapshot| fleet.cluster_at("one.example").unwrap().polls.counts().sum::<u64>();
    let poll = |fleet: &Snapshot, now| fleet.cluster_at("one.example").unwrap().polls.count(ty, now);
    poll(&fleet, 7);
    let changed = after(&fleet, &one());
    poll(&changed, 8);
    assert_eq!((polls(&fleet), polls(&changed)), (2, 2), "a change makes no other cluster of it");
    assert_eq!(changed.cluster_at("one.example").unwrap().polls.last(9), 8);
    let again = after(&after(&changed, &json!({"clusters": {"one": false}})), &one());
    assert_eq!(polls(&again), 0, "one that is made again is another one");
    assert_eq!(again.cluster_at("one.example").unwrap().polls.last(9), 9, "it is waited for from now on");
    assert_eq!(again.cluster_at("one.example").unwrap().polls.last(10), 9);
}

/// The index of names holds clusters: whatever happens to one must be seen under its name, and under no other.
#[test]
fn a_name_leads_to_the_cluster_as_it_is_now() {
    let refer = |dns: &str, id: &str| cluster(dns, &json!({"cluster_name": "one", "namespaces": [{"id": id}]}));
    let served = |fleet: &Snapshot, dns: &str| {
        let answer = poll(fleet, dns, "namespaces").ok()?;
        Some((answer["inputs"][0]["id"].as_str()?.to_owned(), answer["inputs"][0]["cluster"]["name"].clone()))
    };
    let is = |id: &str, name: &str| Some((id.to_owned(), json!(name)));
    let fleet = fleet_of(&json!({"namespaces": {"a": {}, "b": {}}, "clusters": {"one": refer("one.example", "a")}}));
    assert_eq!(served(&fleet, "one.example"), is("a", "one"));
    let fleet = after(&fleet, &json!({"clusters": {"one": refer("one.example", "b")}}));
    assert_eq!(served(&fleet, "one.example"), is("b", "one"), "it was edited");
    let moved = after(&fleet, &json!({"clusters": {"one": refer("other.example", "b")}}));
    assert_eq!(
        (served(&moved, "one.example"), served(&moved, "other.example")),
        (None, is("b", "one")),
        "it has moved"
    );
    let two = cluster("one.example", &json!({"cluster_name": "two", "namespaces": [{"id": "a"}]}));
    let taken = after(&moved, &json!({"clusters": {"two": two}}));
    assert_eq!((served(&taken, "one.example"), served(&taken, "other.example")), (is("a", "two"), is("b", "one")));
    let back = after(&taken, &json!({"clusters": {"one": refer("one.example", "b")}}));
    assert!(matches!(poll(&back, "one.example", "namespaces"), Err(Refusal::AmbiguousDns(_))), "two claim it");
    let loaded = Snapshot::load(BUILT_IN.clone(), *back.point(), back.all_documents().cloned()).unwrap();
    assert!(matches!(poll(&loaded, "one.example", "namespaces"), Err(Refusal::AmbiguousDns(_))), "and after a start");
}

#[test]
fn references_that_yield_nothing_are_refused_and_an_id_of_another_kind_is_named() {
    let list = json!({"namespaces": [{"id": "a"}, {"id": "b"}]});
    let fleet = fleet_of(&json!({"clusters": {"one": cluster("one.example", &list)}}));
    let code = |fleet: &Snapshot| poll(fleet, "one.example", "namespaces").map_err(|refusal| refusal.code());
    assert_eq!(code(&fleet), Err("no-definitions"));
    let one_of_two = after(&fleet, &json!({"namespaces": {"a": {}}}));
    assert_eq!(code(&one_of_two).unwrap()["inputs"].as_array().unwrap().len(), 1, "as the specification says");

    // Compressed answers too: what is not this type's makes a difference where an id is missing.
    let ty = one_of_two.registry().by_path("namespaces").unwrap();
    let stamp = |fleet: &Snapshot| fleet.stamp(fleet.cluster_at("one.example").unwrap(), ty, Empty::Bare);
    let elsewhere = after(&one_of_two, &json!({"rolebindings": {"b": {"role": "view", "subjects": []}}}));
    assert_eq!(code(&elsewhere), Err("unread-definition"));
    assert_ne!(stamp(&one_of_two), stamp(&elsewhere));
    let back = after(&elsewhere, &json!({"rolebindings": {"b": false}}));
    assert_eq!(code(&back), code(&one_of_two));
    assert_ne!(stamp(&elsewhere), stamp(&back));

    // The other kind may be one that no file declares any more.
    let undeclared = Document { kind: "old_space".into(), ..back.all_documents().next().unwrap().clone() };
    let undeclared = Document { id: Id::parse("b").unwrap(), body: Body::plain("{\"id\":\"b\"}"), ..undeclared };
    let documents = back.all_documents().cloned().chain([undeclared]);
    let elsewhere = Snapshot::load(BUILT_IN.clone(), *back.point(), documents).unwrap();
    assert_eq!(code(&elsewhere), Err("unread-definition"));
}
