//! Whatever happens to the API, to its answers or to what polls: nothing that a live cluster has is collected.
//!
//! Each shows the objects before and after, by uid, since what is deleted and made anew is lost too; and what the operator
//! itself says of it. Two have ResourceSets without our guard beside ours, which do lose their objects.

use std::{collections::BTreeMap, time::Duration};

use axum::http::StatusCode;
use harness::{WRITE, repository};
use serde_json::{Value, json};

use super::{Scenario, scenario};
use crate::{
    clock::pass,
    kubectl::condition,
    stack::OPERATOR,
    web::Answers,
    world::{A_WHILE, CLUSTER, DNS, INTERVAL, TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 12] = [
    scenario("api-down", "the API is down", api_down),
    scenario("api-restarted", "the API is killed again and again, and comes back cold", api_restarted),
    scenario("operator-killed", "the operator is killed while the API is down", operator_killed),
    scenario("unknown-dns", "the cluster's DNS name is misspelt", unknown_dns),
    scenario("wrong-token", "the cluster's token is wrong", wrong_token),
    scenario("delete-refused", "somebody deletes a definition that the cluster still refers to", delete_refused),
    scenario("store-lost", "the API's volume is lost, and a blank server answers", store_lost),
    scenario("providers-recreated", "providers are made anew 60 times, under forced reconciles", providers_recreated),
    scenario("identity-recreated", "the identity is deleted and made anew", identity_recreated),
    scenario("bare-empty-list", "a foreign server answers with a bare empty list", bare_empty_list),
    scenario("answer-too-large", "an answer is larger than Flux reads", answer_too_large),
    scenario("deletions-refused", "somebody deletes what takes all with it, with clusters/protect", deletions_refused),
];

/// What a provider says when all is well.
const READY: &str = "Ready=True";

/// Does something bad, and compares.
fn kept(world: &mut World, trouble: impl FnOnce(&mut World)) {
    let before = world.inventory();
    assert!(before.len() >= 20, "there is something to lose: {}", before.text());
    world.say(&format!("before  {}", before.text()));
    trouble(world);
    let after = world.inventory();
    world.say(&format!("after   {}", after.text()));
    assert_eq!(before, after);
}

/// Waits until every provider says something, and repeats what one of them says.
fn until_providers_say(world: &mut World, words: &str) {
    world.until(&format!("every provider says \"{words}\""), |kubectl| {
        TYPES.iter().all(|name| condition(&kubectl.flux("resourcesetinputprovider", name), "Ready").contains(words))
    });
    world.say(&format!("provider namespaces: {}", world.provider_says("namespaces")));
}

/// Renders everything again, lets time pass, and repeats what the ResourceSets say.
fn endure(world: &mut World) {
    world.force_sets();
    pass(A_WHILE);
    for name in TYPES {
        world.say(&format!("ResourceSet {name}: {}", world.set_says(name)));
    }
}

/// Everything is as it should be again.
fn recover(world: &mut World) {
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

fn providers_recreated(world: &mut World) {
    // Ours have two guards. One of them alone, and none, for comparison.
    let guard = "<<- $in := inputs.namespaces >>\n\
                 <<- if ne $in.provider.kind \"ResourceSetInputProvider\" >><< fail \"no record\" >><< end >>\n";
    let template = |guard: &str, id: &str, name: &str| {
        format!(
            "{guard}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-<< {id} >>\n  namespace: flux-system\n"
        )
    };
    let permute = json!({"inputStrategy": {"name": "Permute"}, "inputs": [{"guard": true}]});
    compare_with(world, "guard-alone", "namespaces", &template(guard, "$in.id", "guard-alone"), permute);
    compare_with(world, "unguarded", "namespaces", &template("", "inputs.id", "unguarded"), json!({}));
    for name in ["guard-alone", "unguarded"] {
        world.until_there(&["-n", "flux-system", "configmap", &format!("{name}-podinfo")]);
    }
    let uid = |world: &World, name: &str| world.kubectl().flux("configmap", name)["metadata"]["uid"].clone();
    let guarded = uid(world, "guard-alone-podinfo");

    let mut said: BTreeMap<String, u32> = BTreeMap::new();
    let (mut recreated, mut lost) = (0, 0);
    let mut unguarded = uid(world, "unguarded-podinfo");
    kept(world, |world| {
        for round in 0..20 {
            for name in TYPES {
                let provider = manifest_of(&world.kubectl().flux("resourcesetinputprovider", name));
                let before = world.kubectl().flux("resourcesetinputprovider", name)["metadata"]["uid"].clone();
                for set in [name, "guard-alone", "unguarded"] {
                    world.force("resourceset", set);
                }
                pass(Duration::from_millis(round * 37 % 150));
                world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", name]);
                // The operator may have been faster: phone-home brings a provider back.
                world.kubectl().feed(&["create", "-f", "-"], &provider.to_string());
                for set in [name, "guard-alone", "unguarded"] {
                    world.force("resourceset", set);
                }
                let after = world.kubectl().flux("resourcesetinputprovider", name)["metadata"]["uid"].clone();
                recreated += u32::from(after != before && !after.is_null());
                for set in [name, "guard-alone"] {
                    let words = world.set_says(set);
                    let (reason, _) = words.split_once(':').unwrap_or((&words, ""));
                    *said.entry(reason.to_owned()).or_default() += 1;
                }
            }
            let now = uid(world, "unguarded-podinfo");
            if !now.is_null() {
                lost += u32::from(now != unguarded);
                unguarded = now;
            }
        }
        endure(world);
    });
    world.say(&format!("{recreated} providers were made anew; afterwards the ResourceSets said: {said:?}"));
    world.say(&format!("a ResourceSet without a guard had lost its objects in {lost} of 20 rounds"));
    assert_eq!(recreated, 60);
    assert!(lost > 0, "it was put to the test");
    assert_eq!(uid(world, "guard-alone-podinfo"), guarded, "the guard alone is enough");
    for name in ["guard-alone", "unguarded"] {
        world.kubectl().run(&["-n", "flux-system", "delete", "resourceset", name]);
    }
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
    let url = format!("{}/api/v2/flux/clusters/{DNS}/namespaces", world.url());
    let provider = json!({
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSetInputProvider",
        "metadata": {
            "name": "unguarded", "namespace": "flux-system",
            "annotations": {"fluxcd.controlplane.io/reconcileEvery": INTERVAL}
        },
        "spec": {
            "type": "ExternalService", "insecure": true, "secretRef": {"name": "internal-api-token"}, "url": url
        }
    });
    world.kubectl().apply(&provider.to_string());
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: unguarded-<< inputs.id >>\n  namespace: flux-system\n";
    compare_with(world, "unguarded", "unguarded", template, json!({}));
    let unguarded = ["-n", "flux-system", "configmap", "unguarded-podinfo"];
    world.until_there(&unguarded);
    kept(world, |world| {
        let server = world.replace_api(Answers::Always(StatusCode::OK, br#"{"inputs":[]}"#.to_vec()));
        world.until("every ResourceSet says that it was given no record", |kubectl| {
            TYPES.iter().all(|name| condition(&kubectl.flux("resourceset", name), "Ready").contains("no record"))
        });
        world.say("a ResourceSet without a guard, for comparison:");
        world.until_gone(&unguarded);
        endure(world);
        until_providers_say(world, READY);
        drop(server);
    });
    world.kubectl().run(&["-n", "flux-system", "delete", "resourceset,resourcesetinputprovider", "unguarded"]);
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

/// A ResourceSet that is not ours, to show what would be seen if ours lost something.
fn compare_with(world: &World, name: &str, provider: &str, template: &str, mut spec: Value) {
    spec["inputsFrom"] = json!([{"name": provider}]);
    spec["resourcesTemplate"] = json!(template);
    let metadata = json!({"name": name, "namespace": "flux-system"});
    let set =
        json!({"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSet", "metadata": metadata, "spec": spec});
    world.kubectl().apply(&set.to_string());
}

/// An object as somebody would keep it in a file.
fn manifest_of(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| ["name", "namespace", "annotations", "labels"].contains(&field.as_str()));
    object.as_object_mut().unwrap().remove("status");
    object
}
