//! The steps of a change, from the API to the pods, and when each happened.

use std::{
    io::BufReader,
    process::Child,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use serde_json::{Deserializer, Value};

use crate::{
    clock::{Stopwatch, eventually},
    kubectl::{Kubectl, condition},
    world::{World, print_with_time},
};

/// The arguments of `kubectl`, and the description of each state.
type Watched<'a> = (Vec<&'a str>, fn(&Value) -> String);

/// Watches the cluster until it is dropped, and prints every step once.
pub(crate) struct Timeline {
    watches: Vec<(Child, JoinHandle<()>)>,
    steps: Arc<Mutex<Vec<(f64, String)>>>,
}

impl Timeline {
    /// Watches the component `podinfo`.
    pub(crate) fn start(kubectl: &Kubectl, since: Stopwatch) -> Self {
        let flux = ["-n", "flux-system"];
        let podinfo = "--field-selector=metadata.name=platform-podinfo";
        let components = "--field-selector=metadata.name=platform-components";
        let watched: [Watched<'_>; 4] = [
            ([&flux[..], &["resourcesetinputprovider", components]].concat(), |it| {
                format!("provider    has inputs {}", short(&it["status"]["lastExportedRevision"]))
            }),
            ([&flux[..], &["resourceset", components]].concat(), |it| {
                format!("ResourceSet {}", condition(it, "Ready"))
            }),
            ([&flux[..], &["helmrelease", podinfo]].concat(), |it| {
                let release = &it["status"]["history"][0];
                format!(
                    "HelmRelease wants replicaCount {}, has release v{} ({})",
                    it["spec"]["values"]["replicaCount"],
                    release["version"],
                    release["status"].as_str().unwrap_or("none"),
                )
            }),
            (vec!["-n", "podinfo", "deployments"], |it| {
                format!(
                    "Deployment  wants {} replicas, {} ready",
                    it["spec"]["replicas"], it["status"]["readyReplicas"]
                )
            }),
        ];
        let steps = Arc::new(Mutex::new(Vec::new()));
        let mut watches = Vec::new();
        for (arguments, describe) in watched {
            let mut child = kubectl.watch(&arguments);
            let states = Deserializer::from_reader(BufReader::new(child.stdout.take().unwrap())).into_iter::<Value>();
            let steps = steps.clone();
            let thread = thread::spawn(move || {
                let mut last = String::new();
                for state in states.map_while(Result::ok) {
                    let text = describe(&state);
                    if text != last {
                        print_with_time(since, &text);
                        steps.lock().unwrap().push((since.seconds(), text.clone()));
                        last = text;
                    }
                }
            });
            watches.push((child, thread));
        }
        Self { watches, steps }
    }

    /// When a step was first seen, if it was.
    pub(crate) fn time_of(&self, part: &str) -> Option<f64> {
        self.steps.lock().unwrap().iter().find(|(_, text)| text.contains(part)).map(|(time, _)| *time)
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        for (mut watch, thread) in self.watches.drain(..) {
            let _ = watch.kill();
            let _ = watch.wait();
            // It ends with what it reads.
            let _ = thread.join();
        }
    }
}

/// Waits for the first poll of the components after a count of them; prints and returns its time.
pub(crate) fn time_of_poll_after(world: &World, before: u64) -> f64 {
    eventually("the cluster polls", &mut || world.polls("platform-components") > before);
    world.log("poll        of platform-components came");
    world.watch.seconds()
}

fn short(revision: &Value) -> &str {
    revision.as_str().map_or("none", |text| &text[..text.len().min(15)])
}
