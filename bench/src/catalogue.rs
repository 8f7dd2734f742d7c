//! The definitions that clusters refer to: 60 components, 40 namespaces and 25 role bindings, the same for fleets of every size.

use serde_json::{Value, json};

use crate::fleet::Style;

pub(crate) const COMPONENTS: usize = 60;
pub(crate) const NAMESPACES: usize = 40;
pub(crate) const ROLEBINDINGS: usize = 25;

/// The component that others depend on; every cluster has it.
pub(crate) const BASE: usize = 0;

const PRODUCTS: [(&str, &str); 20] = [
    ("security", "cert-manager"),
    ("networking", "external-dns"),
    ("networking", "ingress-nginx"),
    ("networking", "traefik"),
    ("security", "kyverno"),
    ("security", "falco"),
    ("storage", "velero"),
    ("observability", "kube-prometheus-stack"),
    ("observability", "grafana"),
    ("observability", "loki"),
    ("observability", "tempo"),
    ("observability", "alloy"),
    ("security", "vault"),
    ("security", "external-secrets"),
    ("delivery", "argo-rollouts"),
    ("scaling", "keda"),
    ("networking", "istio-base"),
    ("networking", "cilium"),
    ("observability", "metrics-server"),
    ("scaling", "cluster-autoscaler"),
];

const TEAMS: [&str; 8] = ["platform", "payments", "search", "identity", "checkout", "data", "mobile", "risk"];
const ROLES: [&str; 3] = ["view", "edit", "admin"];

pub(crate) fn component_id(number: usize) -> String {
    format!("{}-{number:02}", PRODUCTS[number % PRODUCTS.len()].1)
}

pub(crate) fn namespace_id(number: usize) -> String {
    format!("{}-apps-{number:02}", TEAMS[number % TEAMS.len()])
}

pub(crate) fn rolebinding_id(number: usize) -> String {
    format!("{}-members-{number:02}", TEAMS[number % TEAMS.len()])
}

/// Whether a component is a Helm chart. The others are manifests, and patches are their variables.
pub(crate) fn is_chart(number: usize) -> bool {
    number.is_multiple_of(2)
}

pub(crate) fn tag(number: usize) -> String {
    format!("v{}.{}.{}", 1 + number % 4, number % 20, number % 7)
}

pub(crate) fn components(style: Style) -> Vec<Value> {
    if style == Style::Troubled {
        let own = (0..COMPONENTS).map(troubled_component);
        return own.chain([json!({"id": NOWHERE, "component_path": NOWHERE, "oci_url": REGISTRY})]).collect();
    }
    (0..COMPONENTS).map(component).collect()
}

/// A component that no cluster has; in a troubled fleet, many others depend on it.
const NOWHERE: &str = "cluster-baseline";

const REGISTRY: &str = "oci://registry.example.com/platform-components";

/// Turns a component into one from an artifact; three of five depend on a component that no cluster has.
fn troubled_component(number: usize) -> Value {
    let mut component = component(number);
    component["oci_url"] = REGISTRY.into();
    component["depends_on"] = if number % 5 < 3 { json!([NOWHERE]) } else { json!([]) };
    component
}

fn component(number: usize) -> Value {
    let (area, product) = PRODUCTS[number % PRODUCTS.len()];
    let version = format!("{}.{}.{}", 1 + number % 4, number % 20, number % 7);
    let (path, url) = if is_chart(number) {
        (product.to_owned(), format!("https://charts.example.com/{area}"))
    } else {
        (format!("{area}/{product}/{version}"), REGISTRY.to_owned())
    };
    let depends_on = if number != BASE && number.is_multiple_of(10) { vec![component_id(BASE)] } else { vec![] };
    json!({
        "id": component_id(number),
        "component_path": path,
        "component_version": version,
        "cluster_env_enabled": number % 4 == 1,
        "oci_url": url,
        "oci_tag": tag(number),
        "depends_on": depends_on,
    })
}

pub(crate) fn namespaces() -> Vec<Value> {
    let namespace = |number: usize| {
        let team = TEAMS[number % TEAMS.len()];
        json!({
            "id": namespace_id(number),
            "labels": {
                "team": team,
                "cost-center": format!("cc-{:04}", 1_000 + number * 17),
                "pod-security.kubernetes.io/enforce": "restricted",
            },
            "annotations": {"example.com/owner": format!("{team}@example.com"), "example.com/tier": "gold"},
        })
    };
    (0..NAMESPACES).map(namespace).collect()
}

pub(crate) fn rolebindings() -> Vec<Value> {
    let rolebinding = |number: usize| {
        let team = TEAMS[number % TEAMS.len()];
        json!({
            "id": rolebinding_id(number),
            "role": ROLES[number % ROLES.len()],
            "subjects": [
                {"kind": "Group", "name": format!("{team}-engineers"), "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "deployer", "namespace": namespace_id(number)},
            ],
        })
    };
    (0..ROLEBINDINGS).map(rolebinding).collect()
}
