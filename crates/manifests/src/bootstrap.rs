//! Everything a new cluster needs but the token, in order.

use std::{fmt::Write as _, str::FromStr};

use model::{Registry, yaml};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    ApiUrl, IDENTITY, Interval, NAMESPACE, OPERATOR, PROVIDER, phone_home::phone_home, rendered, resource_set,
};

/// Who a cluster is.
#[derive(Clone, Debug, Deserialize)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// The name under which it polls.
    pub dns: String,
    /// Its tier.
    pub environment: String,
}

/// The name of a Secret on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName(String);

/// Why a text is not such a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{0}\" is not the name of a Secret: a-z, 0-9, '-' and '.'")]
pub struct InvalidSecretName(String);

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(text: &str) -> Result<Self, InvalidSecretName> {
        if model::is_dns_name(text) { Ok(Self(text.to_owned())) } else { Err(InvalidSecretName(text.to_owned())) }
    }
}

/// How a cluster is made to poll.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Who it is.
    pub identity: Identity,
    /// What it calls.
    pub api_url: ApiUrl,
    /// How often, about.
    pub interval: Interval,
    /// The Secret with what it needs for TLS: a `ca.crt`, or a client's pair.
    pub cert_secret: Option<SecretName>,
    /// Whether Flux itself is installed too.
    pub flux_instance: bool,
}

impl Bootstrap {
    /// The manifests, as a stream of YAML documents.
    pub fn write(&self, registry: &Registry) -> Result<String, yaml::EmitError> {
        let mut text = format!(
            "# Cluster {}. Needs the Flux Operator; the token is in the Secret {}.\n",
            self.identity.name,
            crate::TOKEN_SECRET
        );
        for ty in registry.definitions().filter(|ty| ty.template.is_none()) {
            // A text that is written to always takes it.
            let _ = writeln!(text, "# Without {}: the type has no x-flux.template.", ty.path);
        }
        for object in self.objects(registry) {
            text.push_str("---\n");
            text.push_str(&yaml::write(&object)?);
        }
        Ok(text)
    }

    fn objects(&self, registry: &Registry) -> Vec<Value> {
        let mut objects = vec![namespace()];
        objects.extend(self.identity());
        objects.push(phone_home(registry));
        objects.extend(rendered(registry).map(|(ty, template)| resource_set::of_type(ty, template)));
        objects.extend(self.flux_instance.then(flux_instance));
        objects
    }

    /// For the operator, and for people and what else runs on the cluster.
    pub(crate) fn identity(&self) -> [Value; 2] {
        let Identity { name, dns, environment } = &self.identity;
        let (api_url, every) = (self.api_url.to_string(), self.interval.of(dns).to_string());
        let metadata = json!({"name": IDENTITY, "namespace": NAMESPACE});
        // So that a Kustomization that takes values from it does so at once.
        let watched =
            json!({"name": IDENTITY, "namespace": NAMESPACE, "labels": {"reconcile.fluxcd.io/watch": "Enabled"}});
        let insecure = self.api_url.is_plain().to_string();
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": watched,
            "data": {
                "CLUSTER_NAME": name, "CLUSTER_DNS": dns, "ENVIRONMENT": environment, "INTERNAL_API_URL": api_url,
                "INTERNAL_API_INSECURE": insecure, "RECONCILE_EVERY": every
            }
        });
        let mut values = json!({
            "cluster_name": name, "cluster_dns": dns, "environment": environment, "api_url": api_url,
            "reconcile_every": every
        });
        if let Some(secret) = &self.cert_secret {
            values["cert_secret"] = json!(secret.0);
        }
        let provider = json!({
            "apiVersion": OPERATOR,
            "kind": PROVIDER,
            "metadata": metadata,
            "spec": {"type": "Static", "defaultValues": values}
        });
        [map, provider]
    }
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// Flux, with the controllers that the templates of the built-in types need.
pub(crate) fn flux_instance() -> Value {
    json!({
        "apiVersion": OPERATOR,
        "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": NAMESPACE},
        "spec": {
            // The APIs that the templates use came with 2.7.
            "distribution": {"version": "2.x", "registry": "ghcr.io/fluxcd"},
            "components": ["source-controller", "kustomize-controller", "helm-controller", "notification-controller"],
            "cluster": {"type": "kubernetes", "networkPolicy": true}
        }
    })
}
