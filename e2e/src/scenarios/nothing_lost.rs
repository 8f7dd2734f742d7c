//! Whatever happens to the API, to its answers or to what polls: nothing that a live cluster has is collected.
//!
//! Each shows the objects before and after, by uid, since what is deleted and made anew is lost too; and what the operator
//! itself says of it. One has a ResourceSet without our guard beside ours, which does lose its objects.

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
    world::{A_WHILE, CLUSTER, DNS, TYPES, World, assert_kept},
};

pub(super) const SCENARIOS: [Scenario; 11] = [
    scenario("api-down", "the API is down", api_down),
    scenario("api-restarted", "the API is killed again and again, and comes back cold", api_restarted),
    scenario("operator-killed", "the operator is killed while the API is down", operator_killed),
    scenario("unknown-dns", "the cluster's DNS name is misspelt", unknown_dns),
    scenario("wrong-token", "the cluster's token is wrong", wrong_token),
    scenario("delete-refused", "somebody deletes a definition that the cluster still refers to", delete_refused),
    scenario("store-lost", "the API's volume is lost, and a blank server answers", store_lost),
    scenario("identity-recreated", "the identity is deleted and made anew", identity_recreated),
    scenario("bare-empty-list", "a foreign server answers with a bare empty list", bare_empty_list),
    scenario("answer-too-large", "an answer is larger than Flux reads", answer_too_large),
    scenario("deletions-refused", "somebody deletes what takes all with it, with clusters/protect", deletions_refused),
];

/// What a provider says when all is well.
pub(super) const READY: &str = "Ready=True";

/// Does something bad, and compares: at the end, and whenever something is waited for on the way.
pub(super) fn kept(world: &mut World, trouble: impl FnOnce(&mut World)) {
    let before = world.inventory();
    assert!(before.len() >= 20, "there is something to lose: {}", before.text());
    world.say(&format!("before  {}", before.text()));
    world.kept = Some(before.clone());
    trouble(world);
    world.kept = None;
    let after = world.inventory();
    world.say(&format!("after   {}", after.text()));
    assert_kept(&before, &after);
}

/// Waits until every provider says something, and repeats what one of them says.
pub(super) fn until_providers_say(world: &mut World, words: &str) {
    world.until(&format!("every provider says \"{words}\""), |kubectl| {
        TYPES.iter().all(|name| condition(&kubectl.flux("resourcesetinputprovider", name), "Ready").contains(words))
    });
    world.say(&format!("provider namespaces: {}", world.provider_says("namespaces")));
}

/// Renders everything again, lets time pass, and repeats what the ResourceSets say.
pub(super) fn endure(world: &mut World) {
    world.force_sets();
    pass(A_WHILE);
    for name in TYPES {
        world.say(&format!("ResourceSet {name}: {}", world.set_says(name)));
    }
}

/// Everything is as it should be again.
pub(super) fn recover(world: &mut World) {
    world.force_polls();
    until_providers_say(world, READY);
    world.force_sets();
    world.until_converged();
}

fn api_down(world: &mut World) {
    kept(world, |world| {
        world.kill_api();
        until_providers_say(world, "giving up after");
        endure(world);
    });
    world.start_api();
    recover(world);
}

fn api_restarted(world: &mut World) {
    kept(world, |world| {
        for _ in 0..5 {
            world.kill_api();
            world.force_polls();
            world.start_api();
        }
        world.say("now one that is up and has not loaded its fleet");
        let cold = world.start_api_without_fleet("sqlite://not-there-yet.db?mode=rw");
        world.force_polls();
        until_providers_say(world, "HTTP 503");
        endure(world);
        drop(cold);
        world.start_api();
        recover(world);
    });
}

fn operator_killed(world: &mut World) {
    kept(world, |world| {
        world.kill_api();
        world.stack.kill(OPERATOR);
        world.say("the operator is killed");
        world.kubectl().run(&["label", "namespace", "podinfo", "app=changed-by-hand", "--overwrite"]);
        world.stack.start_again(OPERATOR);
        world.say("the operator is started again");
        until_providers_say(world, "giving up after");
        endure(world);
        world.until("what was changed by hand is corrected, although the API is down", |kubectl| {
            kubectl.get(&["namespace", "podinfo"])["metadata"]["labels"]["app"] == "podinfo"
        });
    });
    world.start_api();
    recover(world);
}

fn unknown_dns(world: &mut World) {
    kept(world, |world| {
        world.identify(&json!({"cluster_dns": "demo-cluster-10.k8s.example.com"}));
        until_providers_say(world, "HTTP 404");
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
    kept(world, |world| {
        set(world, "wrong");
        until_providers_say(world, "HTTP 401");
        endure(world);
    });
    set(world, harness::READ);
    recover(world);
}

fn delete_refused(world: &mut World) {
    kept(world, |world| {
        for (ty, id) in [("component", "podinfo"), ("namespace", "podinfo"), ("rolebinding", "platform-admins")] {
            let output = world.attempt(&[ty, "delete", id, "--yes"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            world.say(&format!("$ flux-resourceset-cli {ty} delete {id} --yes\n{said}"));
            assert_eq!(output.status.code(), Some(4), "it is refused as a conflict");
            assert!(said.contains(CLUSTER), "it says who refers to it");
        }
        world.force_polls();
        endure(world);
        world.say(&format!("provider namespaces: {}", world.provider_says("namespaces")));
    });
}

fn store_lost(world: &mut World) {
    kept(world, |world| {
        let blank = world.start_api_without_fleet("sqlite://new.db?mode=rwc");
        world.say("a server with a new database and without a seed answers");
        until_providers_say(world, "HTTP 404");
        endure(world);
        drop(blank);
    });
    world.start_api();
    recover(world);
}

fn identity_recreated(world: &mut World) {
    kept(world, |world| {
        world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", "cluster-identity"]);
        world.force("resourceset", "phone-home");
        world.until("phone-home says that it has no identity", |kubectl| {
            condition(&kubectl.flux("resourceset", "phone-home"), "Ready").contains("cluster-identity not found")
        });
        world.say(&format!("ResourceSet phone-home: {}", world.set_says("phone-home")));
        world.bootstrap();
        world.force("resourceset", "phone-home");
        endure(world);
        recover(world);
    });
}

fn bare_empty_list(world: &mut World) {
    compared::install(world, UNGUARDED, compared::Guard::None);
    let unguarded = ["-n", "flux-system", "configmap", "unguarded-podinfo"];
    world.until_there(&unguarded);
    kept(world, |world| {
        let server = world.replace_api(Answers::Always(StatusCode::OK, br#"{"inputs":[]}"#.to_vec()));
        world.until("every ResourceSet says that it was given no record", |kubectl| {
            TYPES.iter().all(|name| condition(&kubectl.flux("resourceset", name), "Ready").contains(compared::REFUSAL))
        });
        world.say("a ResourceSet without a guard, for comparison:");
        world.until_gone(&unguarded);
        endure(world);
        until_providers_say(world, READY);
        drop(server);
    });
    compared::remove(world, UNGUARDED);
    world.start_api();
    recover(world);
}

fn answer_too_large(world: &mut World) {
    let large = "x".repeat(950_000);
    kept(world, |world| {
        let body = json!({"patches": {"podinfo": {"ui.message": large}}});
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.patch(format!("{}/clusters/{CLUSTER}", world.url()));
        let request = request.header("authorization", format!("Bearer {WRITE}"));
        let mut answer = request.content_type("application/merge-patch+json").send(body.to_string()).unwrap();
        assert_eq!(answer.status(), 422, "ours is refused when it is written");
        let told: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        world.say(&format!("our API refuses it when it is written: {}", told["detail"]));

        let inputs = json!({"inputs": [{"id": "podinfo", "text": large}]}).to_string().into_bytes();
        let server = world.replace_api(Answers::Always(StatusCode::OK, inputs));
        until_providers_say(world, "exceeds the maximum");
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
    let said = |world: &World, arguments: &[&str]| {
        String::from_utf8_lossy(&world.kubectl().attempt(arguments).stderr).into_owned()
    };
    world.until("the policy is in force", |kubectl| {
        let output = kubectl.attempt(&[&sets[..], &["--dry-run=server"]].concat());
        String::from_utf8_lossy(&output.stderr).matches(POLICY).count() >= 4
    });
    kept(world, |world| {
        let definition = ["delete", "customresourcedefinition", "resourcesets.fluxcd.controlplane.io"];
        let releases = ["delete", "customresourcedefinition", "helmreleases.helm.toolkit.fluxcd.io"];
        let namespace = ["delete", "namespace", "flux-system"];
        for arguments in [&sets[..], &definition, &releases, &namespace] {
            let words = said(world, &[arguments, &["--dry-run=server"]].concat());
            assert!(words.contains(POLICY), "{words}");
            world.say(&format!("$ kubectl {}\n{}", arguments.join(" "), said(world, arguments)));
        }
        endure(world);
    });
    let annotate = ["-n", "flux-system", "annotate", "resourceset", "rolebindings"];
    world.kubectl().run(&[&annotate[..], &["flux-resourceset/allow-delete=true"]].concat());
    let allowed = ["-n", "flux-system", "delete", "resourceset", "rolebindings", "--dry-run=server"];
    world.until("one that says so itself may be deleted", |kubectl| kubectl.attempt(&allowed).status.success());
    world.kubectl().run(&[&annotate[..], &["flux-resourceset/allow-delete-"]].concat());
    world.kubectl().run(&["delete", "-k", &overlay]);
}
