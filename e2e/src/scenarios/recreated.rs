//! Providers that are deleted and made anew: for a moment they have no records, and that is no command.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Scenario,
    compared::{self, Guard, REFUSAL},
    never_collected::{endure, kept, recover},
    scenario,
};
use crate::{
    clock::pass,
    inventory::UNGUARDED,
    kubectl::condition,
    world::{TYPES, World},
};

pub(super) const SCENARIOS: [Scenario; 1] =
    [scenario("providers-recreated", "providers are made anew 60 times, under forced reconciles", providers_recreated)];

/// A ResourceSet with the guard and nothing else; what it makes is compared as ours is.
const GUARDED: &str = "guard-alone";

/// In each, five providers are made anew.
const ROUNDS: u64 = 12;

fn providers_recreated(world: &mut World) {
    // Ours have two guards. One of them alone, and none, for comparison.
    compared::install(world, GUARDED, Guard::Alone);
    compared::install(world, UNGUARDED, Guard::None);
    for name in [GUARDED, UNGUARDED] {
        world.until_there(&["-n", "flux-system", "configmap", &format!("{name}-podinfo")]);
    }
    let (mut recreated, mut lost, mut refusals) = (0, 0, 0);
    let mut unguarded = uid(world);
    kept(world, |world| {
        for round in 0..ROUNDS {
            for name in TYPES.into_iter().chain([GUARDED, UNGUARDED]) {
                recreated += u64::from(recreate(world, name, Duration::from_millis(round * 37 % 150)));
            }
            // It may be gone at the moment, or there again as another object.
            let now = uid(world);
            lost += u64::from(now != unguarded);
            if !now.is_null() {
                unguarded = now;
            }
        }
        endure(world);
        refusals = world.times_said(GUARDED, REFUSAL);
        a_provider_that_cannot_poll(world);
    });
    world.say(&format!("{recreated} providers were made anew"));
    world.say(&format!("a ResourceSet without a guard had lost its objects in {lost} of {ROUNDS} rounds"));
    world.say(&format!("meanwhile the guard alone said {refusals} times: {REFUSAL}"));
    assert_eq!(recreated, 5 * ROUNDS, "three of ours, and those of the two others");
    assert!(lost > 0, "it was put to the test");
    for name in [GUARDED, UNGUARDED] {
        compared::remove(world, name);
    }
    recover(world);
}

/// Without a token it has no records for as long as one likes: the guard must refuse, and nothing else keeps the objects.
fn a_provider_that_cannot_poll(world: &mut World) {
    world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", GUARDED]);
    let mut provider = compared::provider(world, GUARDED);
    provider["spec"]["secretRef"]["name"] = json!("not-there");
    world.kubectl().apply(&provider.to_string());
    world.until("the guard refuses", |kubectl| {
        condition(&kubectl.flux("resourceset", GUARDED), "Ready").contains(REFUSAL)
    });
    world.say(&format!("ResourceSet {GUARDED}: {}", world.set_says(GUARDED)));
}

/// Deletes a provider and makes it anew, while its ResourceSet is made to look; whether it is another object afterwards.
fn recreate(world: &mut World, name: &str, pause: Duration) -> bool {
    let before = world.kubectl().flux("resourcesetinputprovider", name);
    world.force("resourceset", name);
    pass(pause);
    world.kubectl().run(&["-n", "flux-system", "delete", "resourcesetinputprovider", name]);
    // The operator may have been faster: phone-home brings a provider of ours back.
    world.kubectl().feed(&["create", "-f", "-"], &manifest_of(&before).to_string());
    world.force("resourceset", name);
    let after = world.kubectl().flux("resourcesetinputprovider", name)["metadata"]["uid"].clone();
    after != before["metadata"]["uid"] && !after.is_null()
}

/// An object of the ResourceSet without a guard.
fn uid(world: &World) -> Value {
    world.kubectl().flux("configmap", &format!("{UNGUARDED}-podinfo"))["metadata"]["uid"].clone()
}

/// An object as somebody would keep it in a file.
fn manifest_of(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| ["name", "namespace", "annotations", "labels"].contains(&field.as_str()));
    object.as_object_mut().unwrap().remove("status");
    object
}
