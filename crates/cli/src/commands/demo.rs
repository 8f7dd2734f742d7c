//! `demo`: the commands of the demo. They are shortcuts for other commands.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::{
    commands::{create, inputs, patch},
    completion,
    consent::ConsentArgs,
    failure::Result,
    session::Session,
    values::{KeyValue, ValueArgs},
};

#[derive(Subcommand)]
pub(crate) enum DemoCommand {
    /// Create a namespace and assign it to a cluster
    AddNamespace {
        /// Cluster id
        #[arg(add = completion::completer(completion::clusters))]
        cluster: String,
        /// Name of the namespace
        namespace: String,
        /// Label; repeat the flag for several labels
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<KeyValue>,
        /// Annotation; repeat the flag for several annotations
        #[arg(long, value_name = "KEY=VALUE")]
        annotation: Vec<KeyValue>,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Patch the Helm values of a component on a cluster
    PatchComponent {
        /// Cluster id
        #[arg(add = completion::completer(completion::clusters))]
        cluster: String,
        /// Component id
        #[arg(add = completion::completer(completion::components))]
        component: String,
        #[command(flatten)]
        values: ValueArgs,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Show the answer to Flux Operator's poll for namespaces
    FluxNamespaces {
        /// DNS name of the cluster
        dns: String,
    },
}

impl DemoCommand {
    pub(crate) fn run(self, session: &Session) -> Result<ExitCode> {
        match self {
            Self::AddNamespace { cluster, namespace, label, annotation, consent } => {
                let namespace = create::CreateNamespaceArgs::new(namespace, label, annotation, cluster, consent);
                create::create_from_flags(session, "namespace", &namespace)
            }
            Self::PatchComponent { cluster, component, values, consent } => {
                patch::patch_values(session, &cluster, &component, &values, consent)
            }
            Self::FluxNamespaces { dns } => {
                let answer: Value = session.client.poll(&dns, "namespaces")?;
                session.show_or_watch(false, || {
                    Ok(inputs::command_output(vec![("namespaces".to_owned(), answer.clone())], true))
                })
            }
        }
    }
}
