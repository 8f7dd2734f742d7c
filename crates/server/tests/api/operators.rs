//! The operator's API.

mod audit;
mod bulk;
mod concurrency;
mod crud;
mod deletes;
mod explain;
mod validation;

use model::Value;
use serde_json::json;

pub(crate) const DEMO: &str = "demo-cluster-01.k8s.example.com";

/// A fleet of some clusters that all have the namespace `shared` and the components `base` and `app`.
pub(crate) fn fleet_of(count: usize) -> Value {
    let clusters: Vec<_> = (0..count)
        .map(|at| {
            let environment = if at % 2 == 0 { "dev" } else { "prod" };
            json!({
                "id": format!("c{at:05}"), "cluster_name": format!("c{at:05}"), "cluster_dns": format!("c{at:05}.example"),
                "environment": environment, "labels": {"region": if at % 3 == 0 { "eu" } else { "us" }},
                "platform_components": [{"id": "base"}, {"id": "app"}], "namespaces": [{"id": "shared"}]
            })
        })
        .collect();
    json!({
        "clusters": clusters,
        "namespaces": [{"id": "shared"}, {"id": "unused"}],
        "platform_components": [
            {"id": "base", "component_path": "base", "oci_url": "https://charts.example"},
            {"id": "app", "component_path": "app", "oci_url": "https://charts.example", "depends_on": ["base"]}
        ]
    })
}
