//! The demo without Docker: the same steps on this harness.

use std::{
    io::{self, BufRead as _, IsTerminal as _},
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use harness::{READ, WRITE, repository};

use crate::{
    clock::{Stopwatch, pass},
    timeline::Timeline,
    world::{CLUSTER, World, binary, print},
};

pub(crate) fn run(parts: &Path) -> ExitCode {
    print("Bringing up a cluster on this machine …");
    let mut world = World::new(parts);
    world.watch = Stopwatch::start();
    print("\nA new cluster installs its bootstrap, and converges by itself:");
    world.first_boot();

    print("\nA namespace is added through the API:");
    let mut script = Command::new(repository("deploy/demo/cli-demo"));
    script.env("KUBECONFIG", &world.kubectl().config).env("FLUX_API_URL", world.url());
    script.env("FLUX_API_TOKEN", READ).env("FLUX_API_WRITE_TOKEN", WRITE);
    script.env("KUBECTL", &world.kubectl().program).env("CLI", binary("flux-resourceset-cli"));
    if !script.status().is_ok_and(|status| status.success()) {
        return ExitCode::FAILURE;
    }

    print("\nA value is patched through the API, and Flux rolls it out:");
    let timeline = Timeline::start(world.kubectl(), world.watch);
    world.change(&[
        "demo",
        "patch-component",
        CLUSTER,
        "podinfo",
        "--set",
        "replicaCount=3",
        "--set",
        "ui.message=Hello",
    ]);
    world.until("the Deployment has 3 ready replicas", |kubectl| {
        kubectl.get(&["-n", "podinfo", "deployment", "podinfo"])["status"]["readyReplicas"] == 3
    });
    drop(timeline);
    if io::stdin().is_terminal() {
        print(&format!(
            "\nLook around, in another terminal:\n  export KUBECONFIG={}\n  export FLUX_API_URL={} FLUX_API_TOKEN={READ} \
             FLUX_API_WRITE_TOKEN={WRITE}\n  {} get resourcesets,resourcesetinputproviders,helmreleases -A\nEnter ends the demo.",
            world.kubectl().config.display(),
            world.url(),
            world.kubectl().program.display()
        ));
        // Any input, or its end, ends the demo.
        let enter = thread::spawn(|| io::stdin().lock().lines().next());
        while !enter.is_finished() {
            pass(Duration::from_millis(200));
        }
    }
    ExitCode::SUCCESS
}
