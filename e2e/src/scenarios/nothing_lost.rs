//! Whatever happens to the API, to its answers or to the providers: no object of a live cluster is deleted.
//!
//! Each scenario prints the objects before and after, by uid, because an object that was deleted and created again is lost too;
//! and the conditions that the operator reports. One compares with a ResourceSet without our guard, which does lose its objects.

use axum::http::StatusCode;
use harness::{WRITE, repository};
use serde_json::{Value, json};

use super::{Scenario, compared, scenario};
use crate::{
    clock::pass,
    inventory::UNGUARDED,
    kubectl::condition,
    stack::OPERATOR,
    web::Answers,
    world::{A_WHILE, CLUSTER, DNS, TYPES, World, assert_nothing_lost},
};

pub(super) const SCENARIOS: [Scenario; 11] = [
    scenario("api-down", "the API is down", api_down),
    scenario("api-restarted", "the API is killed again and again, and comes back without a fleet", api_restarted),
    scenario("operator-killed", "the operator is killed while the API is down", operator_killed),
    scenario("unknown-dns", "the cluster's DNS name is misspelt", unknown_dns),
    scenario("wrong-token", "the cluster's token is wrong", wrong_token),
    scenario("delete-refused", "an operator deletes a definition that the cluster still refers to", delete_refused),
    scenario("store-lost", "the API's volume is lost, and a blank server answers", store_lost),
    scenario("identity-recreated", "the identity is deleted and created again", identity_recreated),
    scenario("bare-empty-list", "a foreign server answers with a bare empty list", bare_empty_list),
    scenario("answer-too-large", "an answer is larger than Flux reads", answer_too_large),
    scenario(
        "deletions-refused",
        "with clusters/protect, deletions of ResourceSets, CRDs and flux-system are refused",
        deletions_refused,
    ),
];

/// The condition of a provider that works.
pub(super) const READY: &str = "Ready=True";

/// Causes trouble, and checks that no object is lost: during all waits, and at the end.
pub(super) fn without_losses(world: &mut World, trouble: impl FnOnce(&mut World)) {
    let before = world.inventory();
    assert!(before.len() >= 20, "there is something to lose: {}", before.text());
    world.log(&format!("before  {}", before.text()));
    world.protected = Some(before.clone());
    trouble(world);
    world.protected = None;
    let after = world.inventory();
    world.log(&format!("after   {}", after.text()));
    assert_nothing_lost(&before, &after);
}

/// Waits until every provider reports a message, and prints one of them.
pub(super) fn until_providers_report(world: &mut World, message: &str) {
    world.until(&format!("every provider reports \"{message}\""), |kubectl| {
        TYPES.iter().all(|name| condition(&kubectl.flux("resourcesetinputprovider", name), "Ready").contains(message))
    });
    world.log(&format!("provider namespaces: {}", world.provider_condition("namespaces")));
}

/// Renders everything again, waits for several reconciles, and prints the conditions of the ResourceSets.
pub(super) fn endure(world: &mut World) {
    world.force_sets();
    pass(A_WHILE);
    for name in TYPES {
        world.log(&format!("ResourceSet {name}: {}", world.set_condition(name)));
    }
}

/// Waits until everything has recovered.
pub(super) fn recover(world: &mut World) {
    world.force_polls();
    until_providers_report(world, READY);
    world.force_sets();
    world.until_converged();
}

fn api_down(world: &mut World) {
    without_losses(world, |world| {
        world.kill_api();
        until_providers_report(world, "giving up after");
        endure(world);
    });
    world.start_api();
    recover(world);
}

fn api_restarted(world: &mut World) {
    without_losses(world, |world| {
        for _ in 0..5 {
            world.kill_api();
            world.force_polls();
            world.start_api();
        }
        world.log("now a server that runs but has not loaded its fleet");
        let cold = world.start_api_without_fleet("sqlite://not-there-yet.db?mode=rw");
        world.force_polls();
        until_providers_report(world, "HTTP 503");
        endure(world);
        drop(cold);
        world.start_api();
        recover(world);
    });
}

fn operator_killed(world: &mut World) {
    without_losses(world, |world| {
        world.kill_api();
        world.stack.kill(OPERATOR);
        world.log("the operator is killed");
        world.kubectl().run(&["label", "namespace", "podinfo", "app=changed-by-hand", "--overwrite"]);
        world.stack.start_again(OPERATOR);
        world.log("the operator is started again");
        until_providers_report(world, "giving up after");
        endure(world);
        world.until("what was changed by hand is corrected, although the API is down", |kubectl| {
            kubectl.get(&["namespace", "podinfo"])["metadata"]["labels"]["app"] == "podinfo"
        });
    });
    world.start_api();
    recover(world);
}

fn unknown_dns(world: &mut World) {
    without_losses(world, |world| {
        world.identify(&json!({"cluster_dns": "demo-cluster-10.k8s.example.com"}));
        until_providers_report(world, "HTTP 404");
        endure(world);
    });
    world.identify(&json!({"cluster_dns": DNS}));
    recover(world);
}

fn wrong_token(world: &mut World) {
    let set = |world: &World, token: &str| {
        let patch = json!({"stringData": {"token": token}}).to_string();
        world.kubectl().run(&["-n", "flux-system", "patch", "secret", "internal-api-token", "-p", &patch]);
    };
    without_losses(world, |world| {
        set(world, "wrong");
        until_providers_report(world, "HTTP 401");
        endure(world);
    });
    set(world, harness::READ);
    recover(world);
}

fn delete_refused(world: &mut World) {
    without_losses(world, |world| {
        for (ty, id) in [("component", "podinfo"), ("namespace", "podinfo"), ("rolebinding", "platform-admins")] {
            let output = world.attempt(&[ty, "delete", id, "--yes"]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            world.log(&format!("$ flux-resourceset-cli {ty} delete {id} --yes\n{error}"));
            assert_eq!(output.status.code(), Some(4), "it is refused as a conflict");
            assert!(error.contains(CLUSTER), "the error names the cluster that refers to it");
        }
        world.force_polls();
        endure(world);
        world.log(&format!("provider namespaces: {}", world.provider_condition("namespaces")));
    });
}

fn store_lost(world: &mut World) {
    without_losses(world, |world| {
        let blank = world.start_api_without_fleet("sqlite://new.db?mode=rwc");
        world.log("a server with a new database and without a seed answers");
        until_providers_report(world, "HTTP 404");
        endure(world);
        drop(blank);
    });
    world.start_api();
    recover(world);
}

fn identity_recreated(world: &mut World) {
    without_losses(world, |world| {
        world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", "cluster-identity"]);
        world.force("resourceset", "phone-home");
        world.until("phone-home reports that it has no identity", |kubectl| {
            condition(&kubectl.flux("resourceset", "phone-home"), "Ready").contains("cluster-identity not found")
        });
        world.log(&format!("ResourceSet phone-home: {}", world.set_condition("phone-home")));
        world.bootstrap();
        world.force("resourceset", "phone-home");
        endure(world);
        recover(world);
    });
}

fn bare_empty_list(world: &mut World) {
    compared::install(world, UNGUARDED, compared::Guard::None);
    let unguarded = ["-n", "flux-system", "configmap", "unguarded-podinfo"];
    world.until_exists(&unguarded);
    without_losses(world, |world| {
        let server = world.replace_api(Answers::Always(StatusCode::OK, br#"{"inputs":[]}"#.to_vec()));
        world.until("every ResourceSet reports that it got no record", |kubectl| {
            TYPES.iter().all(|name| condition(&kubectl.flux("resourceset", name), "Ready").contains(compared::REFUSAL))
        });
        world.log("a ResourceSet without a guard, for comparison:");
        world.until_deleted(&unguarded);
        endure(world);
        until_providers_report(world, READY);
        drop(server);
    });
    compared::remove(world, UNGUARDED);
    world.start_api();
    recover(world);
}

fn answer_too_large(world: &mut World) {
    let large = "x".repeat(950_000);
    without_losses(world, |world| {
        let body = json!({"patches": {"podinfo": {"ui.message": large}}});
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.patch(format!("{}/clusters/{CLUSTER}", world.url()));
        let request = request.header("authorization", format!("Bearer {WRITE}"));
        let mut answer = request.content_type("application/merge-patch+json").send(body.to_string()).unwrap();
        assert_eq!(answer.status(), 422, "ours is refused when it is written");
        let problem: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        world.log(&format!("our API refuses it when it is written: {}", problem["detail"]));

        let inputs = json!({"inputs": [{"id": "podinfo", "text": large}]}).to_string().into_bytes();
        let server = world.replace_api(Answers::Always(StatusCode::OK, inputs));
        until_providers_report(world, "exceeds the maximum");
        endure(world);
        drop(server);
    });
    world.start_api();
    recover(world);
}

fn deletions_refused(world: &mut World) {
    const POLICY: &str = "keep-resourcesets";
    let overlay = repository("clusters/protect").display().to_string();
    world.kubectl().run(&["apply", "--server-side", "-k", &overlay]);
    let sets = ["-n", "flux-system", "delete", "resourcesets", "--all"];
    let error_of = |world: &World, arguments: &[&str]| {
        String::from_utf8_lossy(&world.kubectl().attempt(arguments).stderr).into_owned()
    };
    world.until("the policy is in force", |kubectl| {
        let output = kubectl.attempt(&[&sets[..], &["--dry-run=server"]].concat());
        String::from_utf8_lossy(&output.stderr).matches(POLICY).count() >= 4
    });
    without_losses(world, |world| {
        let definition = ["delete", "customresourcedefinition", "resourcesets.fluxcd.controlplane.io"];
        let releases = ["delete", "customresourcedefinition", "helmreleases.helm.toolkit.fluxcd.io"];
        let namespace = ["delete", "namespace", "flux-system"];
        for arguments in [&sets[..], &definition, &releases, &namespace] {
            let message = error_of(world, &[arguments, &["--dry-run=server"]].concat());
            assert!(message.contains(POLICY), "{message}");
            world.log(&format!("$ kubectl {}\n{}", arguments.join(" "), error_of(world, arguments)));
        }
        endure(world);
    });
    let annotate = ["-n", "flux-system", "annotate", "resourceset", "rolebindings"];
    world.kubectl().run(&[&annotate[..], &["flux-resourceset/allow-delete=true"]].concat());
    let allowed = ["-n", "flux-system", "delete", "resourceset", "rolebindings", "--dry-run=server"];
    world.until("a ResourceSet with the annotation may be deleted", |kubectl| {
        kubectl.attempt(&allowed).status.success()
    });
    world.kubectl().run(&[&annotate[..], &["flux-resourceset/allow-delete-"]].concat());
    world.kubectl().run(&["delete", "-k", &overlay]);
}
