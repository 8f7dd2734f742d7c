//! What every cluster installs: its identity, the providers that poll for it, and one guarded ResourceSet for each type.
//!
//! Everything follows from the resource types: a type brings its template, and `resource_set` puts around every template
//! what keeps an absence from deleting anything. There are two ways in. With the operator alone, a Static provider holds the
//! identity and the ResourceSet `phone-home` makes the providers from it; that is what a [`Bootstrap`] writes, for one
//! cluster. With a Flux Kustomization, the identity is a `ConfigMap` whose values are put into the providers; [`tree()`] has
//! both, for all clusters.

mod api_url;
mod bootstrap;
mod interval;
mod phone_home;
mod provider;
mod resource_set;
mod tree;

pub use api_url::{ApiUrl, InvalidApiUrl};
pub use bootstrap::{Bootstrap, Identity, InvalidSecretName, SecretName};
pub use interval::{Interval, InvalidInterval};
pub use tree::{File, tree};

/// The namespace of everything that is installed.
pub(crate) const NAMESPACE: &str = "flux-system";

/// The API of Flux Operator.
pub(crate) const OPERATOR: &str = "fluxcd.controlplane.io/v1";

/// The kind of what polls.
pub(crate) const PROVIDER: &str = "ResourceSetInputProvider";

/// The object that says who the cluster is, whichever kind it has.
pub(crate) const IDENTITY: &str = "cluster-identity";

/// The Secret with the token that clusters send.
pub(crate) const TOKEN_SECRET: &str = "internal-api-token";

/// The types that reach a cluster: those with a template. Of another one it could make nothing.
pub(crate) fn rendered(registry: &model::Registry) -> impl Iterator<Item = (&model::ResourceType, &str)> {
    registry.definitions().filter_map(|ty| Some((ty, ty.template.as_deref()?)))
}
