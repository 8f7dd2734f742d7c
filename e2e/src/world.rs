//! The environment of the scenarios: a cluster, the API that it polls, and the command line tool.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    thread,
    time::Duration,
};

use harness::{READ, Running, WRITE, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    clock::{Stopwatch, eventually},
    inventory::Inventory,
    kubectl::{Kubectl, condition, is_ready},
    packages,
    stack::{Stack, free_port},
    web::{Answers, Web},
};

/// The cluster of the demo's fleet.
pub(crate) const CLUSTER: &str = "demo-cluster-01";
/// The name under which it polls.
pub(crate) const DNS: &str = "demo-cluster-01.k8s.example.com";
/// How often it polls here.
pub(crate) const INTERVAL: &str = "3s";
/// Enough time for several polls and reconciles.
pub(crate) const A_WHILE: Duration = Duration::from_secs(8);
/// The types of the demo.
pub(crate) const TYPES: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

pub(crate) struct World {
    pub(crate) stack: Stack,
    api: Option<Running>,
    /// The folder of the API's database.
    folder: Arc<TempDir>,
    seed: PathBuf,
    port: u16,
    /// Resource types that are added to the built-in ones.
    pub(crate) resources: Option<PathBuf>,
    _charts: Web,
    pub(crate) watch: Stopwatch,
    counter: u64,
    /// The objects that must not be lost at the moment.
    pub(crate) protected: Option<Inventory>,
}

impl World {
    /// A bare cluster, with the demo's fleet behind the API, its charts on loopback and an artifact in the registry.
    pub(crate) fn new(parts: &Path) -> Self {
        let watch = Stopwatch::start();
        let stack = Stack::start(parts);
        let charts_port = free_port();
        let charts = Web::start(charts_port, Answers::Files(packages::chart_repository(&stack, charts_port)));
        eventually("the registry answers", &mut || ureq::get(format!("http://{}/v2/", stack.registry)).call().is_ok());
        packages::push_artifact(&stack, "v1.0.0");
        let seed = stack.root.path().join("seed.json");
        fs::write(&seed, seed_with(charts_port, &stack.registry)).unwrap();
        let folder = Arc::new(TempDir::new().unwrap());
        let port = free_port();
        let (api, resources, counter, protected) = (None, None, 0, None);
        let mut world = Self { stack, api, folder, seed, port, resources, _charts: charts, watch, counter, protected };
        world.start_api();
        world
    }

    pub(crate) fn kubectl(&self) -> &Kubectl {
        &self.stack.kubectl
    }

    /// Prints what happens, with the time since the scenario began.
    pub(crate) fn log(&self, text: &str) {
        print_with_time(self.watch, text);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts the server on the port that the cluster calls, and waits until it has loaded the fleet.
    pub(crate) fn start_api(&mut self) {
        let (seed, resources) = (self.seed.display().to_string(), self.resources.clone());
        let resources = resources.as_ref().map(|path| path.display().to_string());
        let mut settings = vec![("SEED_FILE", &*seed), ("DATABASE_URL", "sqlite://fleet.db?mode=rwc")];
        settings.extend(resources.as_ref().map(|path| ("RESOURCES_DIR", &**path)));
        self.api = Some(self.launch(self.folder.clone(), &settings));
        self.wait_for_api();
    }

    /// Replaces the server by one that does not have the fleet.
    pub(crate) fn start_api_without_fleet(&mut self, database: &str) -> Running {
        self.kill_api();
        let folder = Arc::new(TempDir::new().unwrap());
        self.launch(folder, &[("SEED_FILE", ""), ("DATABASE_URL", database)])
    }

    /// Replaces the server by one whose fleet has the clusters of the demo, but no definitions.
    pub(crate) fn start_api_without_definitions(&mut self) -> Running {
        self.kill_api();
        let mut seed: Value = serde_json::from_str(&fs::read_to_string(&self.seed).unwrap()).unwrap();
        seed.as_object_mut().unwrap().retain(|list, _| list == "clusters");
        let folder = Arc::new(TempDir::new().unwrap());
        fs::write(folder.path().join("seed.json"), seed.to_string()).unwrap();
        let bare = self.launch(folder, &[("SEED_FILE", "seed.json"), ("DATABASE_URL", "sqlite://new.db?mode=rwc")]);
        self.wait_for_api();
        bare
    }

    fn wait_for_api(&self) {
        let ready = format!("{}/ready", self.url());
        eventually("the API is ready", &mut || ureq::get(&ready).call().is_ok());
    }

    /// Starts a second server on the file of the first, with other resource types; returns its URL.
    pub(crate) fn start_replica(&self, resources: &Path) -> (Running, String) {
        let resources = resources.display().to_string();
        let settings =
            [("API_MODE", "read-only"), ("DATABASE_URL", "sqlite://fleet.db?mode=rw"), ("RESOURCES_DIR", &resources)];
        let replica = Running::launch(&binary("flux-resourceset"), self.folder.clone(), &settings);
        let url = format!("http://{}", replica.address());
        eventually("the replica is ready", &mut || ureq::get(format!("{url}/ready")).call().is_ok());
        (replica, url)
    }

    fn launch(&self, folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Running {
        let listen = format!("127.0.0.1:{}", self.port);
        let all = [&[("API_MODE", "crud"), ("LISTEN_ADDR", &listen)], settings].concat();
        Running::launch(&binary("flux-resourceset"), folder, &all)
    }

    /// The API's answer to a poll of the cluster: the status and the body.
    pub(crate) fn poll(&self, dns: &str, path: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{}/api/v2/flux/clusters/{dns}/{path}?empty=explicit", self.url());
        let mut answer = agent.get(url).header("authorization", format!("Bearer {READ}")).call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&body).unwrap())
    }

    /// Ends the server at once.
    pub(crate) fn kill_api(&mut self) {
        drop(self.api.take());
    }

    /// Replaces the server by another one, until the returned value is dropped.
    pub(crate) fn replace_api(&mut self, answers: Answers) -> Web {
        self.kill_api();
        Web::start(self.port, answers)
    }

    /// The number of polls of a type that the API has counted.
    pub(crate) fn polls(&self, path: &str) -> u64 {
        let text = ureq::get(format!("{}/metrics", self.url())).call().unwrap().body_mut().read_to_string().unwrap();
        let name = format!("flux_resourceset_polls_total{{cluster=\"{CLUSTER}\",type=\"{path}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    }

    /// Runs the command line tool; it may fail.
    pub(crate) fn attempt(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary("flux-resourceset-cli"));
        command.env_clear().env("HOME", self.stack.root.path()).env("FLUX_API_URL", self.url());
        command.env("FLUX_API_TOKEN", READ).env("FLUX_API_WRITE_TOKEN", WRITE).args(arguments);
        command.output().unwrap()
    }

    /// Runs the command line tool; it must succeed.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let output = self.attempt(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "flux-resourceset-cli {}: {error}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs it, and prints the command.
    pub(crate) fn change(&self, arguments: &[&str]) {
        self.log(&format!("$ flux-resourceset-cli {}", arguments.join(" ")));
        self.cli(arguments);
    }

    /// A document from the API.
    pub(crate) fn document(&self, ty: &str, id: &str) -> Value {
        serde_json::from_str(&self.cli(&["get", ty, id, "-o", "json"])).unwrap()
    }

    /// Creates or replaces a document.
    pub(crate) fn put(&self, kind: &str, document: &Value) {
        let mut document = document.clone();
        document["kind"] = json!(kind);
        let file = self.stack.root.path().join("document.json");
        fs::write(&file, document.to_string()).unwrap();
        self.cli(&["apply", "-f", file.to_str().unwrap(), "--yes"]);
    }

    /// Changes the cluster.
    pub(crate) fn patch_cluster(&self, patch: &Value) {
        self.change(&["cluster", "patch", CLUSTER, "-p", &patch.to_string(), "--yes"]);
    }

    /// Applies the bootstrap manifests that the command line tool prints.
    pub(crate) fn bootstrap(&self) {
        let arguments = ["bootstrap", CLUSTER, "--interval", INTERVAL, "--quiet"];
        let apply = "kubectl apply --server-side --force-conflicts -f -";
        self.log(&format!("$ flux-resourceset-cli {} | {apply}", arguments.join(" ")));
        self.kubectl().apply(&self.cli(&arguments));
    }

    /// Bootstraps a bare cluster, and waits until it has converged.
    pub(crate) fn first_boot(&mut self) {
        self.bootstrap();
        self.until_exists(&["namespace", "podinfo"]);
        self.log(&format!("ResourceSet platform-components: {}", self.set_condition("platform-components")));
        self.until("the FluxInstance reports that Flux is installed", |kubectl| {
            is_ready(&kubectl.flux("fluxinstance", "flux"))
        });
        self.stack.start_controllers();
        self.until_converged();
    }

    /// Waits, and prints for how long. Meanwhile it checks that no protected object is lost: a loss ends the scenario at once,
    /// and not after a timeout.
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&Kubectl) -> bool) {
        let protected = self.protected.take();
        let mut last_check = Stopwatch::start();
        let time = self.stack.wait(what, &mut |stack| {
            if let Some(protected) = protected.as_ref().filter(|_| last_check.time() > CHECK_INTERVAL) {
                assert_nothing_lost(protected, &Inventory::read(&stack.kubectl));
                last_check = Stopwatch::start();
            }
            is(&stack.kubectl)
        });
        self.protected = protected;
        self.log(&format!("{what} (after {:.1} s)", time.as_secs_f64()));
    }

    /// Waits for an object.
    pub(crate) fn until_exists(&mut self, arguments: &[&str]) {
        let what = format!("{} exists", arguments.join(" "));
        self.until(&what, |kubectl| !kubectl.get(arguments).is_null());
    }

    /// Waits until an object does not exist any more.
    pub(crate) fn until_deleted(&mut self, arguments: &[&str]) {
        let what = format!("{} is deleted", arguments.join(" "));
        self.until(&what, |kubectl| kubectl.get(arguments).is_null());
    }

    /// Waits until the demo's fleet is on the cluster, and all objects that Flux creates from it are ready.
    pub(crate) fn until_converged(&mut self) {
        self.until("every ResourceSet, release and Kustomization is ready, and so are the pods", |kubectl| {
            let all_ready = |kind: &str, least: usize| {
                let items = kubectl.list(&["-n", "flux-system", kind]);
                items.len() >= least && items.iter().all(is_ready)
            };
            let podinfo = kubectl.get(&["-n", "podinfo", "deployment", "podinfo"]);
            let replicas = podinfo["spec"]["replicas"].as_u64();
            all_ready("resourcesets", 3)
                && all_ready("helmreleases", 3)
                && all_ready("kustomizations.kustomize.toolkit.fluxcd.io", 1)
                && replicas.is_some()
                && podinfo["status"]["readyReplicas"].as_u64() == replicas
        });
    }

    /// The objects on the cluster that come from the API.
    pub(crate) fn inventory(&self) -> Inventory {
        Inventory::read(self.kubectl())
    }

    /// Makes Flux Operator reconcile an object now; returns the mark with which the operator confirms it.
    pub(crate) fn force(&mut self, kind: &str, name: &str) -> String {
        self.counter += 1;
        let mark = format!("e2e-{}", self.counter);
        let annotation = format!("reconcile.fluxcd.io/requestedAt={mark}");
        self.kubectl().run(&["-n", "flux-system", "annotate", "--overwrite", kind, name, &annotation]);
        mark
    }

    /// Makes all providers poll now.
    pub(crate) fn force_polls(&mut self) {
        for name in TYPES {
            self.force("resourcesetinputprovider", name);
        }
    }

    /// Makes the operator render all ResourceSets again, and waits until it has tried.
    pub(crate) fn force_sets(&mut self) {
        let marks = TYPES.map(|name| (name, self.force("resourceset", name)));
        self.until("every ResourceSet was rendered again", |kubectl| {
            marks.iter().all(|(name, mark)| {
                kubectl.flux("resourceset", name)["status"]["lastHandledReconcileAt"].as_str() == Some(mark)
            })
        });
    }

    /// The condition that the operator reports for a provider.
    pub(crate) fn provider_condition(&self, name: &str) -> String {
        condition(&self.kubectl().flux("resourcesetinputprovider", name), "Ready")
    }

    /// The condition that the operator reports for a ResourceSet.
    pub(crate) fn set_condition(&self, name: &str) -> String {
        condition(&self.kubectl().flux("resourceset", name), "Ready")
    }

    /// How often the operator has reported a message about a ResourceSet, by its events. Kubernetes drops some events of an object
    /// that has many.
    pub(crate) fn count_events(&self, set: &str, message: &str) -> u64 {
        let of_set = format!("--field-selector=involvedObject.kind=ResourceSet,involvedObject.name={set}");
        let events = self.kubectl().list(&["-n", "flux-system", "events", &of_set]);
        let matching =
            events.iter().filter(|event| event["message"].as_str().is_some_and(|text| text.contains(message)));
        matching.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
    }

    /// Changes the cluster's identity, as an operator might by mistake.
    pub(crate) fn identify(&self, values: &Value) {
        let patch = json!({"spec": {"defaultValues": values}}).to_string();
        let change =
            ["-n", "flux-system", "patch", "resourcesetinputprovider", "cluster-identity", "--type=merge", "-p"];
        self.log(&format!("$ kubectl patch resourcesetinputprovider cluster-identity --type=merge -p '{patch}'"));
        self.kubectl().run(&[&change[..], &[&patch]].concat());
    }
}

impl Drop for World {
    /// Prints the logs that help most after a failure.
    fn drop(&mut self) {
        if thread::panicking() {
            let api = self.api.as_ref().map(Running::log).unwrap_or_default();
            let api: Vec<_> = api.lines().rev().take(8).collect();
            let api: Vec<_> = api.into_iter().rev().collect();
            print(&format!("{}--- the API\n{}", self.stack.last_lines(), api.join("\n")));
        }
    }
}

/// How often a wait checks that no protected object is lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Asserts that no object was deleted, or replaced by another one of the same name.
pub(crate) fn assert_nothing_lost(before: &Inventory, now: &Inventory) {
    let lost = before.lost_in(now);
    assert!(lost.is_empty(), "LOST by the inventory comparison: {}", lost.join(", "));
    assert_eq!(before, now, "no object was added");
}

/// Prints a text, with the time since a start.
pub(crate) fn print_with_time(since: Stopwatch, text: &str) {
    print(&format!("  {:7.2} s  {}", since.seconds(), text.trim_end().replace('\n', "\n             ")));
}

#[expect(clippy::print_stdout, reason = "the log is what a run is for")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

/// A program of this workspace, from the folder of this one.
pub(crate) fn binary(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

/// The demo's fleet, with its charts on loopback, and with a component that comes from an artifact.
fn seed_with(charts: u16, registry: &str) -> String {
    let mut seed: Value = serde_json::from_str(&fs::read_to_string(repository("data/seed.json")).unwrap()).unwrap();
    let components = seed["platform_components"].as_array_mut().unwrap();
    for component in components.iter_mut() {
        component["oci_url"] = json!(format!("http://127.0.0.1:{charts}"));
    }
    components.push(json!({
        "id": "agent", "oci_url": format!("oci://{registry}/platform"), "oci_tag": "v1.0.0", "oci_insecure": true,
        "component_path": "core/agent/1.0.0", "cluster_env_enabled": true
    }));
    seed["clusters"][0]["platform_components"].as_array_mut().unwrap().push(json!({"id": "agent"}));
    seed.to_string()
}
