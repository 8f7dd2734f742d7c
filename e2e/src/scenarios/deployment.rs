//! A real API server accepts the manifests of the service and of clusters.

use std::process::Command;

use harness::repository;

use super::{Scenario, scenario};
use crate::{packages::succeed, world::World};

pub(super) const SCENARIOS: [Scenario; 1] =
    [scenario("manifests", "all of deploy/, the rendered chart and clusters/ pass a server-side dry run", manifests)];

fn manifests(world: &mut World) {
    let tool = |program: &str| world.stack.parts().join(program);
    let mut check = Command::new(repository("deploy/check"));
    check.env("KUBECONFIG", &world.kubectl().config).env("HOME", world.stack.root.path());
    check.env("KUBECTL", tool("kubernetes/kubectl")).env("HELM", tool("helm/helm"));
    world.log(&succeed(check));
    for (folder, how) in [
        ("clusters/with-operator", "-k"),
        ("clusters/with-operator/example", "-f"),
        ("clusters/with-kustomization/example", "-f"),
        ("clusters/protect", "-k"),
    ] {
        let path = repository(folder).display().to_string();
        let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", how, &path];
        let output = world.kubectl().run(&apply);
        world.log(&format!("{folder}: {} objects are accepted", output.lines().count()));
    }
}
