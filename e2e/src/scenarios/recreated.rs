//! Providers that are deleted and created again: for a moment they have no records, which must not delete anything.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Scenario,
    compared::{self, Guard, REFUSAL},
    nothing_lost::{endure, recover, without_losses},
    scenario,
};
use crate::{
    clock::pass,
    inventory::UNGUARDED,
    kubectl::condition,
    world::{TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 1] = [scenario(
    "providers-recreated",
    "providers are created again 60 times, under forced reconciles",
    providers_recreated,
)];

/// A ResourceSet with the guard and nothing else; its objects must not be lost either.
const GUARDED: &str = "guard-alone";

/// In each, five providers are created again.
const ROUNDS: u64 = 12;

fn providers_recreated(world: &mut World) {
    // Our ResourceSets have two guards. For comparison, one with a single guard, and one without.
    compared::install(world, GUARDED, Guard::Alone);
    compared::install(world, UNGUARDED, Guard::None);
    for name in [GUARDED, UNGUARDED] {
        world.until_exists(&["-n", "flux-system", "configmap", &format!("{name}-podinfo")]);
    }
    let (mut recreated, mut lost, mut refusals) = (0, 0, 0);
    let mut unguarded = uid(world);
    without_losses(world, |world| {
        for round in 0..ROUNDS {
            for name in TYPES.into_iter().chain([GUARDED, UNGUARDED]) {
                recreated += u64::from(recreate(world, name, Duration::from_millis(round * 37 % 150)));
            }
            // It may be deleted at the moment, or exist again as another object.
            let now = uid(world);
            lost += u64::from(now != unguarded);
            if !now.is_null() {
                unguarded = now;
            }
        }
        endure(world);
        refusals = world.count_events(GUARDED, REFUSAL);
        a_provider_that_cannot_poll(world);
    });
    world.log(&format!("{recreated} providers were created again"));
    world.log(&format!("a ResourceSet without a guard had lost its objects in {lost} of {ROUNDS} rounds"));
    world.log(&format!("meanwhile the guard alone reported {refusals} times: {REFUSAL}"));
    assert_eq!(recreated, 5 * ROUNDS, "three of ours, and those of the two others");
    assert!(lost > 0, "the test had an effect");
    for name in [GUARDED, UNGUARDED] {
        compared::remove(world, name);
    }
    recover(world);
}

/// Without a token the provider never has records: the guard must refuse, and nothing else protects the objects.
fn a_provider_that_cannot_poll(world: &mut World) {
    world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", GUARDED]);
    let mut provider = compared::provider(world, GUARDED);
    provider["spec"]["secretRef"]["name"] = json!("not-there");
    world.kubectl().apply(&provider.to_string());
    world.until("the guard refuses", |kubectl| {
        condition(&kubectl.flux("resourceset", GUARDED), "Ready").contains(REFUSAL)
    });
    world.log(&format!("ResourceSet {GUARDED}: {}", world.set_condition(GUARDED)));
}

/// Deletes a provider and creates it again, while its ResourceSet is forced to reconcile. Returns whether it is another object
/// afterwards.
fn recreate(world: &mut World, name: &str, pause: Duration) -> bool {
    let before = world.kubectl().flux("resourcesetinputprovider", name);
    world.force("resourceset", name);
    pass(pause);
    world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", name]);
    // The operator may have been faster: phone-home creates a provider of ours again.
    world.kubectl().feed(&["create", "-f", "-"], &manifest_of(&before).to_string());
    world.force("resourceset", name);
    let after = world.kubectl().flux("resourcesetinputprovider", name)["metadata"]["uid"].clone();
    after != before["metadata"]["uid"] && !after.is_null()
}

/// An object of the ResourceSet without a guard.
fn uid(world: &World) -> Value {
    world.kubectl().flux("configmap", &format!("{UNGUARDED}-podinfo"))["metadata"]["uid"].clone()
}

/// The manifest of an object, without what the cluster has added.
fn manifest_of(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| ["name", "namespace", "annotations", "labels"].contains(&field.as_str()));
    object.as_object_mut().unwrap().remove("status");
    object
}
