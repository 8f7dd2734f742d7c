//! The files of `clusters/`: what every cluster installs, the same for the whole fleet.

use model::{Registry, yaml};
use serde_json::{Value, json};

use crate::{
    ApiUrl, Bootstrap, Identity, Interval,
    bootstrap::flux_instance,
    phone_home::phone_home,
    provider::{ProviderValues, provider},
    resource_set, types_with_template,
};

/// A file of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the tree.
    pub path: String,
    /// Its content.
    pub text: String,
}

const GENERATED: &str = "# Generated from the resource types; do not edit. See clusters/README.md.\n";

/// The variables that a Flux Kustomization takes from the `ConfigMap` `cluster-identity`.
const VARIABLES: ProviderValues<'static> = ProviderValues {
    api_url: "${INTERNAL_API_URL}",
    dns: "${CLUSTER_DNS}",
    every: "${RECONCILE_EVERY:=5m}",
    insecure: "${INTERNAL_API_INSECURE:=false}",
};

/// All files of the tree.
pub fn tree(registry: &Registry) -> Result<Vec<File>, yaml::EmitError> {
    let mut files = Vec::new();
    let mut put = |path: String, objects: &[Value]| -> Result<(), yaml::EmitError> {
        let mut text = GENERATED.to_owned();
        for (at, object) in objects.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "---\n" });
            text.push_str(&yaml::write(object)?);
        }
        files.push(File { path, text });
        Ok(())
    };
    let mut sets = Vec::new();
    for (ty, template) in types_with_template(registry) {
        let name = format!("{}.yaml", ty.path);
        put(format!("resourcesets/{name}"), &[resource_set::for_type(ty, template)])?;
        sets.push(name);
    }
    put("resourcesets/kustomization.yaml".to_owned(), &[kustomization(sets)])?;

    put("with-operator/phone-home.yaml".to_owned(), &[phone_home(registry)])?;
    let parts = ["../resourcesets", "phone-home.yaml"].map(str::to_owned);
    put("with-operator/kustomization.yaml".to_owned(), &[kustomization(parts.to_vec())])?;

    let providers: Vec<Value> = types_with_template(registry).map(|(ty, _)| provider(&ty.path, &VARIABLES)).collect();
    put("with-kustomization/providers.yaml".to_owned(), &providers)?;
    let parts = ["../resourcesets", "providers.yaml"].map(str::to_owned);
    put("with-kustomization/kustomization.yaml".to_owned(), &[kustomization(parts.to_vec())])?;
    put("with-kustomization/example/flux-instance.yaml".to_owned(), &[syncing_flux_instance()])?;

    let [config_map, static_provider] = example().identity();
    put("with-kustomization/example/cluster-identity.yaml".to_owned(), &[config_map])?;
    put("with-operator/example/cluster-identity.yaml".to_owned(), &[static_provider])?;
    Ok(files)
}

/// The identity in the examples; only the identity differs between clusters.
fn example() -> Bootstrap {
    Bootstrap {
        identity: Identity {
            name: "us-east-prod-01".to_owned(),
            dns: "us-east-prod-01.k8s.internal.example.com".to_owned(),
            environment: "prod".to_owned(),
        },
        api_url: ApiUrl::example(),
        interval: Interval::default(),
        cert_secret: None,
        flux_instance: false,
    }
}

fn kustomization(resources: Vec<String>) -> Value {
    json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources})
}

/// A `FluxInstance` that syncs an artifact with this tree, and substitutes the identity.
fn syncing_flux_instance() -> Value {
    let mut instance = flux_instance();
    instance["spec"]["sync"] = json!({
        "kind": "OCIRepository", "url": "oci://registry.example/fleet", "ref": "latest", "path": "with-kustomization"
    });
    let post_build = format!(
        "- op: add\n  path: /spec/postBuild\n  value:\n    substituteFrom:\n      - kind: ConfigMap\n        name: {}\n",
        crate::IDENTITY
    );
    instance["spec"]["kustomize"] = json!({
        "patches": [{"target": {"kind": "Kustomization", "name": "flux-system"}, "patch": post_build}]
    });
    instance
}
