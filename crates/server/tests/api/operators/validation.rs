//! No change is saved that would stall a cluster or make its answers shorter.

use model::Value;
use serde_json::json;

use super::fleet_of;
use crate::harness::{Answer, Server};

/// The broken rules that an answer lists, as `document pointer rule`.
fn broken(answer: &Answer) -> Vec<String> {
    assert_eq!((answer.status, &answer.json()["code"]), (422, &json!("invalid")), "{}", answer.body);
    let text = |error: &Value, name: &str| error[name].as_str().unwrap_or_default().to_owned();
    let line =
        |error: &Value| format!("{} {} {}", text(error, "document"), text(error, "pointer"), text(error, "rule"));
    answer.json()["errors"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn all_broken_rules_are_reported_together() {
    let server = Server::crud();
    let answer = server.post(
        "/clusters",
        &json!({"id": "Bad_Id", "cluster_dns": "not a name", "environment": "dev", "colour": "red", "node_count": -1}),
    );
    assert_eq!(
        broken(&answer),
        [
            "cluster/Bad_Id  additionalProperties",
            "cluster/Bad_Id  required",
            "cluster/Bad_Id /cluster_dns pattern",
            "cluster/Bad_Id /id pattern",
            "cluster/Bad_Id /node_count minimum",
        ]
    );
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
}

#[test]
fn values_that_kubernetes_or_flux_rejects_are_refused() {
    let server = Server::crud();
    let namespaces = [
        (json!({"id": "kube-system"}), "/id reserved"),
        (json!({"id": "flux-system"}), "/id reserved"),
        (json!({"id": "none"}), "/id id"),
        (json!({"id": "x", "labels": {"a": "b c"}}), "/labels/a label"),
        (
            json!({"id": "x", "annotations": {"fluxcd.controlplane.io/reconcile": "disabled"}}),
            "/annotations/fluxcd.controlplane.io~1reconcile flux-metadata",
        ),
        (json!({"id": "x", "labels": {"a": null}}), "/labels/a type"),
        (json!({"id": "x", "annotations": {"a": "b\u{7f}"}}), "/annotations/a control-character"),
        (
            json!({"id": "x", "labels": {"pod-security.kubernetes.io/enforce": "strict"}}),
            "/labels/pod-security.kubernetes.io~1enforce pod-security",
        ),
    ];
    for (body, rule) in namespaces {
        let errors = broken(&server.post("/namespaces", &body));
        assert!(errors.iter().any(|error| error.ends_with(rule)), "{body}: {errors:?}");
    }
    let subject = |subject: Value| json!({"id": "x", "role": "view", "subjects": [subject]});
    for (bad, rule) in [
        (json!({"kind": "ServiceAccount", "name": "a"}), "/subjects/0 required"),
        (
            json!({"kind": "ServiceAccount", "name": "a", "namespace": "b", "apiGroup": "rbac.authorization.k8s.io"}),
            "/subjects/0/apiGroup enum",
        ),
        (json!({"kind": "User", "name": "a", "namespace": "b"}), "/subjects/0/namespace maxLength"),
        (json!({"kind": "Robot", "name": "a"}), "/subjects/0/kind enum"),
    ] {
        let errors = broken(&server.post("/rolebindings", &subject(bad.clone())));
        assert!(errors.iter().any(|error| error.ends_with(rule)), "{bad}: {errors:?}");
    }
    for good in [json!({"kind": "ServiceAccount", "name": "a", "namespace": "b"}), json!({"kind": "User", "name": "a"})]
    {
        let answer = server.write("POST", "/rolebindings?dry_run=true", &subject(good), &[]);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

#[test]
fn patches_that_cannot_be_applied_completely_are_refused() {
    let server = Server::crud();
    let set = |patches: Value| server.put("/clusters/demo-cluster-01/patches/podinfo", &patches);
    for (patches, rule) in [
        (json!({"a..b": "1"}), "/patches/podinfo/a..b invalid-patch"),
        (json!({"a": "1", "a.b": "2"}), "/patches/podinfo/a.b invalid-patch"),
        (json!({"a": null}), "/patches/podinfo/a null"),
        (json!({"a": 9_007_199_254_740_993_u64}), "/patches/podinfo/a number-range"),
        (json!({"a": "9007199254740993"}), "/patches/podinfo/a number-range"),
    ] {
        let errors = broken(&set(patches.clone()));
        assert!(errors.iter().any(|error| error.ends_with(rule)), "{patches}: {errors:?}");
    }
    assert_eq!(set(json!({"a,b": "{1,2} \"quoted\" = \n", "list[0].x\\.y": "1"})).status, 200);
}

#[test]
fn references_dependencies_and_names_are_checked() {
    let server = Server::crud();
    let errors = broken(&server.put("/clusters/demo-cluster-01/namespaces/ghost", &json!({})));
    assert_eq!(errors, ["cluster/demo-cluster-01 /namespaces/3 missing-definition"]);
    let errors =
        broken(&server.put("/clusters/demo-cluster-01/platform_components/cert-manager", &json!({"enabled": false})));
    assert_eq!(errors, ["cluster/demo-cluster-01 /platform_components/1 dependency-not-assigned"], "traefik needs it");
    let errors = broken(&server.delete("/clusters/demo-cluster-01/platform_components/cert-manager"));
    assert_eq!(errors, ["cluster/demo-cluster-01 /platform_components/0 dependency-not-assigned"]);
    let errors = broken(&server.patch("/platform_components/podinfo", &json!({"depends_on": ["ghost"]})));
    assert!(errors.contains(&"platform_component/podinfo /depends_on/0 missing-dependency".to_owned()), "{errors:?}");
    let errors = broken(&server.patch("/platform_components/cert-manager", &json!({"depends_on": ["traefik"]})));
    assert_eq!(
        errors,
        [
            "platform_component/cert-manager /depends_on/0 dependency-cycle",
            "platform_component/traefik /depends_on/0 dependency-cycle"
        ]
    );
    let twin = json!({"id": "twin", "cluster_name": "twin", "cluster_dns": "DEMO-cluster-01.k8s.example.com.", "environment": "dev"});
    let refused = server.post("/clusters", &twin);
    assert_eq!(
        (refused.status, &refused.json()["errors"][0]["document"]),
        (409, &json!("cluster/twin")),
        "{}",
        refused.body
    );
    let errors = broken(&server.patch("/platform_components/podinfo", &json!({"oci_url": "oci://registry/repo"})));
    assert!(
        errors.contains(&"cluster/demo-cluster-01 /patches/podinfo/ui.color invalid-variable".to_owned()),
        "{errors:?}"
    );
}

#[test]
fn a_role_changes_only_if_the_binding_may_be_recreated() {
    let server = Server::crud();
    let change = json!({"role": "edit"});
    assert_eq!(broken(&server.patch("/rolebindings/dev-readers", &change)), ["rolebinding/dev-readers /role fixed"]);
    assert_eq!(server.patch("/rolebindings/dev-readers", &json!({"subjects": []})).status, 200);
    assert_eq!(server.delete("/clusters/demo-cluster-01").status, 200);
    let errors = broken(&server.patch("/rolebindings/dev-readers", &change));
    assert_eq!(errors, ["rolebinding/dev-readers /role fixed"], "the cluster may be restored before it has polled");
    assert_eq!(server.post("/clusters/demo-cluster-01/restore", &json!({})).status, 200);
    let wanted = json!({"role": "edit", "role_may_change": true});
    let plan = server.patch("/rolebindings/dev-readers?dry_run=true", &wanted).json();
    let inputs = &plan["clusters"][0]["inputs"]["rolebindings"];
    assert_eq!((&inputs["added"], &inputs["removed"]), (&json!(["dev-readers"]), &json!(["dev-readers"])), "{plan}");
    assert_eq!(server.patch("/rolebindings/dev-readers", &wanted).status, 200);
    let unused = json!({"id": "unused", "role": "view"});
    assert_eq!(server.post("/rolebindings", &unused).status, 201);
    assert_eq!(server.patch("/rolebindings/unused", &change).status, 200, "no cluster has it");

    for (id, role, rule) in [
        ("cluster-admin", "view", "/id reserved"),
        ("system:node", "view", "/id reserved"),
        ("cluster-reconciler-flux-system", "view", "/id reserved"),
        ("mine", "team/admin", "/role pattern"),
        ("mine", "..", "/role pattern"),
    ] {
        let errors = broken(&server.post("/rolebindings", &json!({"id": id, "role": role})));
        assert!(errors.iter().any(|error| error.ends_with(rule)), "{id} {role}: {errors:?}");
    }
    let account = json!({"kind": "ServiceAccount", "name": "Bad_Name", "namespace": "x"});
    let errors = broken(&server.patch("/rolebindings/dev-readers", &json!({"subjects": [account]})));
    assert_eq!(errors, ["rolebinding/dev-readers /subjects/0/name pattern"]);
}

#[test]
fn invalid_paths_tags_keys_and_variables_are_refused() {
    let server = Server::crud();
    for path in ["..", "/", "a/../b", "a b", "podinfo:6", "-x", ""] {
        let errors = broken(&server.patch("/platform_components/podinfo", &json!({"component_path": path})));
        assert_eq!(errors, ["platform_component/podinfo /component_path pattern"], "{path}");
    }
    for path in [".", "./a/b/", "core/cert-manager/1.14.0"] {
        let patch = json!({"component_path": path});
        assert_eq!(server.patch("/platform_components/podinfo?dry_run=true", &patch).status, 200, "{path}");
    }
    let errors = broken(&server.patch("/platform_components/podinfo", &json!({"oci_tag": "1.0.0+b1"})));
    assert_eq!(errors, ["platform_component/podinfo /oci_tag pattern"]);
    let long = json!({"patches": {"podinfo": {"k".repeat(600): "1"}}});
    let errors = broken(&server.patch("/clusters/demo-cluster-01", &long));
    assert_eq!(errors, ["cluster/demo-cluster-01 /patches/podinfo key-length"]);

    let artifact = json!({"id": "artifact", "component_path": "a", "oci_url": "oci://registry.example/repo"});
    assert_eq!(server.post("/platform_components", &artifact).status, 201);
    assert_eq!(server.put("/clusters/demo-cluster-01/platform_components/artifact", &json!({})).status, 200);
    for (patches, key) in [
        (json!({"CLUSTER_NAME": "x"}), "CLUSTER_NAME"),
        (json!({"ENVIRONMENT_STR": "x"}), "ENVIRONMENT_STR"),
        (json!({"X": "1", "X_STR": "2"}), "X_STR"),
        (json!({"a.b": "1"}), "a.b"),
    ] {
        let errors = broken(&server.patch("/clusters/demo-cluster-01", &json!({"patches": {"artifact": patches}})));
        assert_eq!(errors, [format!("cluster/demo-cluster-01 /patches/artifact/{key} invalid-variable")]);
    }
}

#[test]
fn a_definition_that_would_break_some_clusters_is_refused_and_they_are_named() {
    let mut seed = fleet_of(500);
    seed["platform_components"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "rare", "component_path": "r", "oci_url": "https://charts.example"}));
    for at in [7, 123, 499] {
        let list = seed["clusters"][at]["platform_components"].as_array_mut().unwrap();
        list.retain(|it| it["id"] == "base");
        list.push(json!({"id": "rare"}));
    }
    let server = Server::crud_with(&seed);
    let errors = broken(&server.patch("/platform_components/rare", &json!({"depends_on": ["app"]})));
    let expected =
        ["c00007", "c00123", "c00499"].map(|id| format!("cluster/{id} /platform_components/1 dependency-not-assigned"));
    assert_eq!(errors, expected);
}

#[test]
fn an_answer_cannot_grow_beyond_the_limit_of_flux() {
    let mut seed = fleet_of(1);
    let big = |at: usize| json!({"id": format!("big{at}"), "annotations": {"x": "y".repeat(200_000)}});
    seed["namespaces"] = (0..5).map(big).chain([json!({"id": "shared"})]).collect();
    seed["clusters"][0]["namespaces"] = (0..4).map(|at| json!({"id": format!("big{at}")})).collect();
    let server = Server::crud_with(&seed);
    let before = server.poll("c00000.example", "namespaces").body;
    let errors = broken(&server.put("/clusters/c00000/namespaces/big4", &json!({})));
    assert_eq!(errors, ["cluster/c00000 /namespaces answer-too-large"]);
    assert_eq!(server.poll("c00000.example", "namespaces").body, before);
}

#[test]
fn existing_problems_do_not_block_other_changes() {
    let mut seed = fleet_of(1);
    seed["clusters"][0]["namespaces"] = json!([{"id": "ghost"}, {"id": "shared"}]);
    let server = Server::crud_with(&seed);
    assert_eq!(server.patch("/clusters/c00000", &json!({"environment": "qa"})).status, 200);
    assert_eq!(server.get("/problems").json().as_array().map(Vec::len), Some(1));
}

#[test]
fn duplicate_fields_are_refused() {
    let server = Server::crud();
    let twice = r#"{"labels": {"a": "b"}, "labels": {"c": "d"}}"#.to_owned();
    let headers = [("authorization", "Bearer write-token"), ("content-type", "application/json")];
    for (method, path) in [("PUT", "/namespaces/podinfo"), ("PATCH", "/namespaces/podinfo"), ("POST", "/namespaces")] {
        let answer = server.exchange(method, path, &headers, Some(twice.clone()));
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("invalid-body")), "{}", answer.body);
        assert!(answer.body.contains("appears twice"), "{}", answer.body);
    }
}

/// The clusters come in the order of their ids, and the first of them is fine.
#[test]
fn every_cluster_whose_answer_becomes_too_large_is_named_and_nothing_changes() {
    // Kubernetes accepts 256 KiB of annotations, so five namespaces are needed to come near the limit of Flux.
    const FILLER: usize = (921_600 - 4_000) / 5;
    let namespace = |id: &str, length: usize| json!({"id": id, "annotations": {"text": "x".repeat(length)}});
    let fillers: Vec<_> = (0..5).map(|at| format!("filler-{at}")).collect();
    let cluster = |id: &str, namespaces: &[String]| {
        let list: Vec<_> = namespaces.iter().map(|id| json!({"id": id})).collect();
        json!({"id": id, "cluster_name": id, "cluster_dns": format!("{id}.example"), "environment": "dev",
            "namespaces": list})
    };
    let shared = ["shared".to_owned()];
    let definitions = fillers.iter().map(|id| namespace(id, FILLER)).chain([namespace("shared", 1)]);
    let server = Server::crud_with(&json!({
        "clusters": [
            cluster("a", &shared),
            cluster("b", &[&fillers[..], &shared].concat()),
            cluster("c", &[&shared[..], &fillers].concat()),
        ],
        "namespaces": definitions.collect::<Vec<_>>(),
    }));
    let polls = || ["a", "b", "c"].map(|id| server.poll(&format!("{id}.example"), "namespaces"));
    let before = polls();
    assert_eq!(before.each_ref().map(|answer| answer.status), [200; 3]);
    let refused = server.patch("/namespaces/shared", &json!({"annotations": {"text": "x".repeat(8_000)}}));
    assert_eq!(
        broken(&refused),
        ["cluster/b /namespaces answer-too-large", "cluster/c /namespaces answer-too-large"],
        "both of them, and not the one with space left"
    );
    for (before, after) in before.iter().zip(polls()) {
        assert_eq!((after.status, &after.body), (200, &before.body));
    }
    assert_eq!(server.get_open("/ready").json()["revision"], json!(1));
}

#[test]
fn a_definition_that_would_make_another_type_refuse_an_answer_is_refused() {
    let mut seed = fleet_of(2);
    seed["clusters"][1]["namespaces"] = json!([{"id": "shared"}, {"id": "gap"}]);
    let server = Server::crud_with(&seed);
    let before = server.poll("c00001.example", "namespaces");
    assert_eq!(before.status, 200, "{}", before.body);
    let component = json!({"id": "gap", "component_path": "gap", "oci_url": "https://charts.example"});
    for query in ["", "?dry_run=true"] {
        let refused = server.post(&format!("/platform_components{query}"), &component);
        let error = refused.json()["errors"][0].clone();
        assert_eq!((refused.status, &error["rule"]), (422, &json!("unread-definition")), "{}", refused.body);
        assert_eq!(error["document"], json!("cluster/c00001"), "{error}");
    }
    assert_eq!(server.poll("c00001.example", "namespaces").body, before.body);
}
