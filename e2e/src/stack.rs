//! A cluster on loopback: etcd, the Kubernetes control plane, a simulated node (kwok), the real Flux Operator and the real Flux
//! controllers, each as a process of its own.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use axum::http::StatusCode;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    clock::{Stopwatch, eventually},
    kubectl::Kubectl,
    peer::Peer,
    web::{Answers, Web},
};

/// The name of the operator's process.
pub(crate) const OPERATOR: &str = "flux-operator";
/// The token of the cluster's administrator.
const ADMIN: &str = "admin-token";
/// The parts of Flux.
const CONTROLLERS: [&str; 4] =
    ["source-controller", "kustomize-controller", "helm-controller", "notification-controller"];

pub(crate) struct Stack {
    pub(crate) kubectl: Kubectl,
    /// The folder of the programs.
    parts: PathBuf,
    peers: BTreeMap<String, Peer>,
    /// The port on which the notification controller receives events. Until it runs, `sink` does, because the operator waits for it.
    events: u16,
    sink: Option<Web>,
    /// The registry of artifacts: host and port.
    pub(crate) registry: String,
    // Last, so that the peers have ended before their folders go.
    pub(crate) root: TempDir,
}

/// A free port, below those that the system gives to clients.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Runs side by side begin at different places.
    let begin = u16::try_from(std::process::id() % 100).unwrap() * 100;
    let candidates = (0..10_000).map(|_| 20_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    candidates.into_iter().find(free).unwrap()
}

impl Stack {
    /// Brings up a bare cluster with the operator, from the folder in which `e2e/build` has put the parts. Flux itself comes
    /// later: its definitions, by the operator or by hand, and then [its controllers](Self::start_controllers).
    pub(crate) fn start(parts: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("flux-resourceset-e2e-").tempdir().unwrap();
        let api_server = free_port();
        let config = root.path().join("kubeconfig");
        fs::write(&config, kubeconfig(api_server)).unwrap();
        let kubectl = Kubectl { program: parts.join("kubernetes/kubectl"), config };
        let registry = format!("127.0.0.1:{}", free_port());
        let mut stack = Self {
            kubectl,
            parts: parts.to_owned(),
            peers: BTreeMap::new(),
            events: free_port(),
            sink: None,
            registry,
            root,
        };
        stack.control_plane(api_server);
        stack.workloads();
        stack.operator();
        stack
    }

    fn control_plane(&mut self, api_server: u16) {
        let (client, peer) = (free_port(), free_port());
        let path = |name: &str| self.root.path().join(name).display().to_string();
        let etcd = self.peer("etcd", "etcd/etcd").arguments("--unsafe-no-fsync --log-level=warn");
        let etcd = etcd.argument(format!("--data-dir={}", path("etcd"))).arguments(&format!(
            "--listen-client-urls=http://127.0.0.1:{client} --advertise-client-urls=http://127.0.0.1:{client} \
             --listen-peer-urls=http://127.0.0.1:{peer} --initial-advertise-peer-urls=http://127.0.0.1:{peer} \
             --initial-cluster=default=http://127.0.0.1:{peer}"
        ));

        let key = path("service-accounts.key");
        let made = Command::new("openssl").args(["genpkey", "-quiet", "-algorithm", "RSA", "-out", &key]).status();
        assert!(made.is_ok_and(|status| status.success()), "openssl cannot make a key");
        fs::write(path("tokens"), format!("{ADMIN},admin,admin,system:masters\n")).unwrap();
        let server = self.peer("kube-apiserver", "kubernetes/kube-apiserver").arguments(&format!(
            "--etcd-servers=http://127.0.0.1:{client} --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
             --secure-port={api_server} --cert-dir={} --service-account-issuer=https://kubernetes.default.svc \
             --service-account-signing-key-file={key} --service-account-key-file={key} \
             --service-cluster-ip-range=10.0.0.0/24 --token-auth-file={} --authorization-mode=RBAC \
             --endpoint-reconciler-type=none --disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            path("certificates"),
            path("tokens"),
        ));
        self.run("etcd", etcd);
        self.run("kube-apiserver", server);
        self.wait("the API server answers", &mut |stack| {
            stack.kubectl.attempt(&["get", "--raw", "/readyz"]).status.success()
        });
    }

    fn workloads(&mut self) {
        let config = self.kubectl.config.display().to_string();
        let manager = self.peer("kube-controller-manager", "kubernetes/kube-controller-manager").arguments(&format!(
            "--kubeconfig={config} --leader-elect=false --use-service-account-credentials=false \
             --secure-port={} --cert-dir={} --kube-api-qps=500 --kube-api-burst=1000 --concurrent-namespace-syncs=50 \
             --controllers=namespace-controller,garbage-collector-controller,deployment-controller,\
             replicaset-controller,endpointslice-controller,clusterrole-aggregation-controller,job-controller,\
             statefulset-controller,daemonset-controller",
            free_port(),
            self.root.path().join("manager-certificates").display(),
        ));
        let scheduler = self.peer("kube-scheduler", "kubernetes/kube-scheduler").arguments(&format!(
            "--kubeconfig={config} --leader-elect=false --authentication-kubeconfig= --authorization-kubeconfig= \
             --secure-port={} --cert-dir={}",
            free_port(),
            self.root.path().join("scheduler-certificates").display(),
        ));
        let kwok = self.peer("kwok", "kwok/kwok").arguments(&format!(
            "--kubeconfig={config} --config={} --manage-all-nodes=true --server-address=127.0.0.1:{}",
            self.parts.join("kwok/stages/stages.yaml").display(),
            free_port(),
        ));
        let registry = self.peer("registry", "crane/crane");
        let registry = registry.arguments(&format!("registry serve --address {}", self.registry));
        for (name, peer) in [
            ("kube-controller-manager", manager),
            ("kube-scheduler", scheduler),
            ("kwok", kwok),
            ("registry", registry),
        ] {
            self.run(name, peer);
        }
        let room = json!({"cpu": "1000", "memory": "1000Gi", "pods": "10000"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "nowhere",
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
            },
            "status": {"allocatable": room, "capacity": room}
        });
        self.kubectl.apply(&node.to_string());
    }

    fn operator(&mut self) {
        for part in ["operator", "prometheus-operator-crds"] {
            self.define(part);
        }
        self.kubectl.run(&["create", "namespace", "flux-system"]);
        let operator = self.peer(OPERATOR, "operator/operator").arguments(&format!(
            "--enable-leader-election=false --web-server-port=0 --metrics-addr=127.0.0.1:{} --health-addr=127.0.0.1:{} \
             --storage-path={}",
            free_port(),
            free_port(),
            self.parts.join("operator/data").display(),
        ));
        let operator = self.in_cluster(operator).environment("GODEBUG", "fips140=on");
        self.sink = Some(Web::start(self.events, Answers::Always(StatusCode::ACCEPTED, Vec::new())));
        let address = format!("http://127.0.0.1:{}/", self.events);
        self.run(OPERATOR, operator.environment("NOTIFICATION_CONTROLLER_ADDRESS", address));
    }

    /// Installs the definitions of a part.
    fn define(&self, part: &str) {
        let folder = self.parts.join(part).join("crds").display().to_string();
        self.kubectl.run(&["apply", "--server-side", "-f", &folder]);
    }

    /// Installs the definitions of Flux by hand, where no `FluxInstance` does.
    pub(crate) fn define_flux(&self) {
        for name in CONTROLLERS {
            self.define(name);
        }
    }

    /// Starts the controllers of Flux, in the place of the pods that do not run.
    pub(crate) fn start_controllers(&mut self) {
        self.sink = None;
        for name in CONTROLLERS {
            let peer = self.controller(name);
            self.run(name, peer);
        }
    }

    fn controller(&self, name: &str) -> Peer {
        let events = self.events;
        let peer = self.in_cluster(self.peer(name, &format!("{name}/{name}"))).arguments(&format!(
            "--metrics-addr=127.0.0.1:{} --health-addr=127.0.0.1:{}",
            free_port(),
            free_port()
        ));
        match name {
            "notification-controller" => {
                peer.arguments(&format!("--events-addr=127.0.0.1:{events} --receiverAddr=127.0.0.1:{}", free_port()))
            }
            "source-controller" => {
                let storage = free_port();
                let folder = self.root.path().join("artifacts");
                fs::create_dir_all(&folder).unwrap();
                peer.arguments(&format!(
                    "--events-addr=http://127.0.0.1:{events}/ --storage-path={} --storage-addr=127.0.0.1:{storage} \
                     --storage-adv-addr=127.0.0.1:{storage}",
                    folder.display()
                ))
            }
            // Dependencies are checked every 30 s by default, which is too slow for these scenarios.
            _ => peer.arguments(&format!("--events-addr=http://127.0.0.1:{events}/ --requeue-dependency=2s")),
        }
    }

    fn peer(&self, name: &str, program: &str) -> Peer {
        Peer::new(name, self.parts.join(program), self.root.path())
    }

    fn in_cluster(&self, peer: Peer) -> Peer {
        peer.environment("KUBECONFIG", self.kubectl.config.display()).environment("RUNTIME_NAMESPACE", "flux-system")
    }

    fn run(&mut self, name: &str, peer: Peer) {
        self.peers.insert(name.to_owned(), peer.started());
    }

    /// The folder of the programs.
    pub(crate) fn parts(&self) -> &Path {
        &self.parts
    }

    /// A tool that is built with the peers, without the caller's environment.
    pub(crate) fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(self.parts.join(program));
        command.env_clear().env("HOME", self.root.path()).env("KUBECONFIG", &self.kubectl.config);
        command
    }

    pub(crate) fn kill(&mut self, name: &str) {
        self.peers.get_mut(name).unwrap().kill();
    }

    pub(crate) fn start_again(&mut self, name: &str) {
        self.peers.get_mut(name).unwrap().start();
    }

    /// Waits, as long as all peers are alive.
    pub(crate) fn wait(&mut self, what: &str, is: &mut dyn FnMut(&Self) -> bool) -> Duration {
        let watch = Stopwatch::start();
        eventually(what, &mut || {
            if let Some(ended) = self.peers.values_mut().find_map(Peer::ended) {
                panic!("{ended}");
            }
            is(self)
        });
        watch.time()
    }

    /// The last lines of the logs that help most when something has failed.
    pub(crate) fn last_lines(&self) -> String {
        let names = [OPERATOR, "helm-controller", "kustomize-controller", "source-controller"];
        names.iter().filter_map(|name| Some(format!("--- {name}\n{}\n", self.peers.get(*name)?.last_lines()))).collect()
    }
}

fn kubeconfig(port: u16) -> String {
    let cluster = json!({"server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": ADMIN}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
        "current-context": "e2e"
    })
    .to_string()
}
