//! Providers: each polls the API for the inputs of one type.

use serde_json::{Value, json};

use crate::{NAMESPACE, OPERATOR, PROVIDER, TOKEN_SECRET};

/// The most inputs that a provider accepts. With its default of 100, it would silently drop the rest.
const LIMIT: u32 = 10_000;

/// How long one poll may take, with the operator's own retries.
const TIMEOUT: &str = "30s";

/// The values that differ between clusters, or variables for them.
pub(crate) struct ProviderValues<'a> {
    /// The API's URL.
    pub(crate) api_url: &'a str,
    /// The cluster's DNS name.
    pub(crate) dns: &'a str,
    /// How often it polls.
    pub(crate) every: &'a str,
    /// Whether the URL may be plain HTTP.
    pub(crate) insecure: &'a str,
}

/// The provider of a type, with these values.
pub(crate) fn provider(path: &str, values: &ProviderValues<'_>) -> Value {
    json!({
        "apiVersion": OPERATOR,
        "kind": PROVIDER,
        "metadata": {
            "name": path,
            "namespace": NAMESPACE,
            "annotations": {
                "fluxcd.controlplane.io/reconcileEvery": values.every,
                "fluxcd.controlplane.io/reconcileTimeout": TIMEOUT,
                "kustomize.toolkit.fluxcd.io/prune": "disabled"
            }
        },
        "spec": {
            "type": "ExternalService",
            "url": format!("{}/api/v2/flux/clusters/{}/{path}?empty=explicit", values.api_url, values.dns),
            "insecure": values.insecure,
            "secretRef": {"name": TOKEN_SECRET},
            "filter": {"limit": LIMIT}
        }
    })
}

/// The template from which `phone-home` creates the provider of each type, `$type`, for the identity `$id`.
pub(crate) fn template() -> String {
    format!(
        r#"---
apiVersion: {OPERATOR}
kind: {PROVIDER}
metadata:
  name: << $type | quote >>
  namespace: {NAMESPACE}
  annotations:
    fluxcd.controlplane.io/reconcileEvery: << $id.reconcile_every | quote >>
    fluxcd.controlplane.io/reconcileTimeout: {TIMEOUT}
    fluxcd.controlplane.io/prune: disabled
spec:
  type: ExternalService
  url: << printf "%s/api/v2/flux/clusters/%s/%s?empty=explicit" (trimSuffix "/" $id.api_url) $id.cluster_dns $type | quote >>
  <<- if hasPrefix "http://" $id.api_url >>
  insecure: true
  <<- end >>
  secretRef:
    name: {TOKEN_SECRET}
  <<- with get $id "cert_secret" >>
  certSecretRef:
    name: << . | quote >>
  <<- end >>
  filter:
    limit: {LIMIT}
"#
    )
}
