//! `demo`: the commands of the demo, which are short names for others.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::{
    commands::{create, inputs, patch},
    completion,
    consent::Consent,
    failure::Result,
    session::Session,
    settings::{Pair, Values},
};

#[derive(Subcommand)]
pub(crate) enum Demo {
    /// Create a namespace and give it to a cluster
    AddNamespace {
        /// The cluster
        #[arg(add = completion::of(completion::clusters))]
        cluster: String,
        /// The namespace's name
        namespace: String,
        /// A label; may stand several times
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<Pair>,
        /// An annotation; may stand several times
        #[arg(long, value_name = "KEY=VALUE")]
        annotation: Vec<Pair>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Change the values of a component on a cluster
    PatchComponent {
        /// The cluster
        #[arg(add = completion::of(completion::clusters))]
        cluster: String,
        /// The component
        #[arg(add = completion::of(completion::components))]
        component: String,
        #[command(flatten)]
        values: Values,
        #[command(flatten)]
        consent: Consent,
    },
    /// What Flux Operator is answered about namespaces
    FluxNamespaces {
        /// The cluster's DNS name
        dns: String,
    },
}

impl Demo {
    pub(crate) fn run(self, session: &Session) -> Result<ExitCode> {
        match self {
            Self::AddNamespace { cluster, namespace, label, annotation, consent } => {
                let namespace = create::Namespace::new(namespace, label, annotation, cluster, consent);
                create::described(session, "namespace", &namespace)
            }
            Self::PatchComponent { cluster, component, values, consent } => {
                patch::values(session, &cluster, &component, &values, consent)
            }
            Self::FluxNamespaces { dns } => {
                let answer: Value = session.client.poll(&dns, "namespaces")?;
                session.present(false, || Ok(inputs::shown(vec![("namespaces".to_owned(), answer.clone())], true)))
            }
        }
    }
}
