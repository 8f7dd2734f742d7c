//! The manifests of a new cluster, in order: everything except the token.

use std::{fmt::Write as _, str::FromStr};

use model::{Registry, yaml};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    ApiUrl, IDENTITY, Interval, NAMESPACE, OPERATOR, PROVIDER, phone_home::phone_home, resource_set,
    types_with_template,
};

/// The identity of a cluster.
#[derive(Clone, Debug, Deserialize)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// The DNS name under which it polls.
    pub dns: String,
    /// Its environment.
    pub environment: String,
}

/// The name of a Secret on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName(String);

/// A text that is not such a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{0}\" is not the name of a Secret: a-z, 0-9, '-' and '.'")]
pub struct InvalidSecretName(String);

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(text: &str) -> Result<Self, InvalidSecretName> {
        if model::is_dns_name(text) { Ok(Self(text.to_owned())) } else { Err(InvalidSecretName(text.to_owned())) }
    }
}

/// The settings of a new cluster.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Its identity.
    pub identity: Identity,
    /// The URL of the API.
    pub api_url: ApiUrl,
    /// About how often it polls.
    pub interval: Interval,
    /// The Secret for TLS: with a `ca.crt`, or with a client certificate and its key.
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
            // Writing to a string cannot fail.
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
        objects.extend(types_with_template(registry).map(|(ty, template)| resource_set::for_type(ty, template)));
        objects.extend(self.flux_instance.then(flux_instance));
        objects
    }

    /// The identity twice: as a ConfigMap, for operators and other programs, and as a Static provider, for Flux Operator.
    pub(crate) fn identity(&self) -> [Value; 2] {
        let Identity { name, dns, environment } = &self.identity;
        let (api_url, every) = (self.api_url.to_string(), self.interval.for_cluster(dns).to_string());
        let metadata = json!({"name": IDENTITY, "namespace": NAMESPACE});
        // A Kustomization that substitutes its values reconciles at once when they change.
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
