//! What every cluster installs: its identity, the providers that poll for it, and one guarded ResourceSet for each type.
//!
//! Everything follows from the resource types: each type has a template, and `resource_set` wraps every template in a guard, so
//! that missing data never deletes anything. There are two ways to install. With the operator alone, a Static provider holds the
//! identity, and the ResourceSet `phone-home` creates the providers from it; a [`Bootstrap`] writes these manifests for one
//! cluster. With a Flux Kustomization, the identity is a `ConfigMap` whose values Flux substitutes in the providers; [`tree()`]
//! has both ways, for all clusters.

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

/// The kind of the objects that poll.
pub(crate) const PROVIDER: &str = "ResourceSetInputProvider";

/// The name of the object with the cluster's identity, of either kind.
pub(crate) const IDENTITY: &str = "cluster-identity";

/// The Secret with the token that clusters send.
pub(crate) const TOKEN_SECRET: &str = "internal-api-token";

/// The types that reach a cluster: those with a template.
pub(crate) fn types_with_template(registry: &model::Registry) -> impl Iterator<Item = (&model::ResourceType, &str)> {
    registry.definitions().filter_map(|ty| Some((ty, ty.template.as_deref()?)))
}
