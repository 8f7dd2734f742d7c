//! The command line: names, order, help and examples of all commands. The arguments of a command are declared in its
//! module under [`commands`](crate::commands).

use clap::{Args, Parser, Subcommand};

use crate::{
    commands::{
        apply, bootstrap, changes, config, create, delete, demo, diff, edit, explain, export, fleet, history, inputs,
        list, patch, references, render, restore, revert, status, store, types,
    },
    completion,
    session::GlobalArgs,
};

const EXAMPLES: &str = "\
Examples:
  flux-resourceset-cli cluster list
  flux-resourceset-cli namespace create team-sandbox --cluster demo-cluster-01 --label team=sandbox
  flux-resourceset-cli component patch podinfo --cluster demo-cluster-01 --set replicaCount=3
  flux-resourceset-cli fleet set-version cert-manager --oci-tag v1.0.0-1 --selector environment=dev
  flux-resourceset-cli apply -f fleet/ --dry-run
  flux-resourceset-cli explain demo-cluster-01 podinfo

Environment:
  FLUX_API_URL          URL of the server
  FLUX_API_TOKEN        read token
  FLUX_API_WRITE_TOKEN  write token [default: FLUX_API_TOKEN]
  FLUX_API_CONFIG       contexts file, used if FLUX_API_URL is not set
  NO_COLOR              disables colours

Exit codes:
  0  success
  1  failure, change not confirmed, or differences found
  2  wrong usage
  3  not found (404, 410)
  4  conflict (409, 412)";

/// Examples for the help of a command. A test parses each of them.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("Examples:", $("\n  flux-resourceset-cli ", $line),+)
    };
}

/// View and change the desired state of a fleet of Kubernetes clusters (flux-resourceset)
#[derive(Parser)]
#[command(name = "flux-resourceset-cli", version, after_help = EXAMPLES, subcommand_value_name = "COMMAND")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: TopCommand,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// The first word of the command line.
#[derive(Subcommand)]
pub(crate) enum TopCommand {
    /// Manage clusters: list, get, create, patch, edit, delete, restore, …
    #[command(subcommand, visible_alias = "clusters")]
    #[command(after_help = examples![
        "cluster list",
        "cluster get demo-cluster-01 -o yaml",
        "cluster create eu-prod-07 --dns eu-prod-07.k8s.example.com --environment prod --label region=eu --assign component=podinfo",
        "cluster delete eu-prod-07 --dry-run",
    ])]
    Cluster(ClusterCommand),
    /// Manage namespaces: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["namespaces", "ns"])]
    #[command(after_help = examples![
        "namespace create team-sandbox --cluster demo-cluster-01 --label team=sandbox --annotation owner=platform",
        "namespace assign team-sandbox --cluster demo-cluster-01",
        "namespace unassign team-sandbox --cluster demo-cluster-01",
    ])]
    Namespace(DefinitionCommand<create::CreateNamespaceArgs>),
    /// Manage platform components: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["components", "platform-component"])]
    #[command(after_help = examples![
        "component create cert-manager --component-path core/cert-manager/1.14.0 --oci-url oci://registry.example/platform-components --oci-tag v1.0.0 --cluster demo-cluster-01",
        "component patch podinfo --cluster demo-cluster-01 --set replicaCount=3",
        "component assign cert-manager --cluster demo-cluster-01",
    ])]
    Component(DefinitionCommand<create::CreateComponentArgs>),
    /// Manage role bindings: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["rolebindings", "rb"])]
    #[command(after_help = examples![
        "rolebinding create dev-admins --role admin --subject Group:dev-team --cluster demo-cluster-01",
        "rolebinding create deployer --role edit --subject ServiceAccount:flux-system/deployer",
    ])]
    Rolebinding(DefinitionCommand<create::CreateRolebindingArgs>),
    /// List documents of a resource type
    #[command(after_help = examples![
        "list clusters --selector environment=dev,region=eu",
        "list network-policies -o name",
        "list clusters --selector platform_components=podinfo --watch",
    ])]
    List(WithType<list::ListArgs>),
    /// Get documents of a resource type by id
    #[command(after_help = examples![
        "get cluster demo-cluster-01",
        "get namespace podinfo traefik -o yaml",
        "get platform_component podinfo --revision 1",
    ])]
    Get(WithType<list::GetArgs>),
    /// Create a document of a resource type
    #[command(after_help = examples![
        "create network_policy allow-monitoring --field target_namespace=monitoring --field 'ingress_rules=[{\"port\": 9090}]'",
        "create network_policy -f policy.yaml --cluster demo-cluster-01",
    ])]
    Create(WithType<create::CreateDocumentArgs>),
    /// Patch a document, or the Helm values of a component on one cluster
    #[command(after_help = examples![
        "patch cluster demo-cluster-01 -p '{deletion_protection: true}'",
        "patch component podinfo --cluster demo-cluster-01 --set ui.message='Hello, world' --unset ui.color",
    ])]
    Patch(WithType<patch::PatchArgs>),
    /// Assign a document to clusters
    #[command(after_help = examples![
        "assign network_policy allow-monitoring --cluster demo-cluster-01 --cluster demo-cluster-02",
    ])]
    Assign(WithType<references::AssignArgs>),
    /// Remove a document from clusters; Flux deletes what it rendered there
    #[command(after_help = examples![
        "unassign network_policy allow-monitoring --cluster demo-cluster-01 --dry-run",
    ])]
    Unassign(WithType<references::AssignArgs>),
    /// Edit a document in your editor
    #[command(after_help = examples![
        "edit cluster demo-cluster-01 --reason 'moved to production'",
    ])]
    Edit(WithType<edit::EditArgs>),
    /// Delete a document; a cluster is decommissioned
    #[command(after_help = examples![
        "delete namespace team-sandbox",
        "delete rolebinding dev-readers --cascade --dry-run",
        "delete cluster demo-cluster-01",
    ])]
    Delete(WithType<delete::DeleteArgs>),
    /// Show the changes of a document
    #[command(after_help = examples![
        "history cluster demo-cluster-01",
    ])]
    History(WithType<history::HistoryArgs>),
    /// Set a document back to its content at an earlier revision
    #[command(after_help = examples![
        "revert cluster demo-cluster-01 --to 3",
        "revert namespace podinfo --dry-run",
    ])]
    Revert(WithType<revert::RevertArgs>),
    /// Apply documents from files to the fleet, as one change
    #[command(after_help = examples![
        "apply -f fleet/",
        "apply -f namespaces.yaml --dry-run",
        "apply -f fleet/ --prune --selector team=web",
        "export | flux-resourceset-cli --context staging apply -f -",
    ])]
    Apply(apply::ApplyArgs),
    /// Show the differences between files and the fleet
    #[command(after_help = examples![
        "diff -f fleet/",
    ])]
    Diff(diff::DiffArgs),
    /// Write the fleet to files, one file per document
    #[command(after_help = examples![
        "export --output-dir fleet",
        "export clusters --revision 42",
    ])]
    Export(export::ExportArgs),
    /// Change many clusters at once: patch, assign, unassign, set-version, versions
    #[command(subcommand)]
    #[command(after_help = examples![
        "fleet versions cert-manager",
        "fleet set-version cert-manager --oci-tag v1.0.0-1 --selector environment=dev",
        "fleet patch podinfo --selector environment=dev,region=eu --set replicaCount=2",
        "fleet assign component grafana --selector environment=prod --dry-run",
        "fleet unassign namespace team-sandbox --all",
    ])]
    Fleet(fleet::FleetCommand),
    /// Show the inputs that a cluster gets when it polls
    #[command(after_help = examples![
        "inputs demo-cluster-01",
        "inputs demo-cluster-01 platform-components -o yaml",
        "inputs demo-cluster-01 --revision 1",
    ])]
    Inputs(inputs::InputsArgs),
    /// Render the Kubernetes manifests of a cluster with the flux-operator program
    #[command(after_help = examples![
        "render demo-cluster-01",
        "render demo-cluster-01 namespaces",
    ])]
    Render(render::RenderArgs),
    /// Print all manifests that a new cluster needs, for kubectl apply --server-side -f -
    #[command(after_help = examples![
        "bootstrap demo-cluster-01 --api-url https://fleet.example.com --token-file token.txt",
        "bootstrap demo-cluster-01 --interval 10m --without-flux-instance",
        "bootstrap demo-cluster-01 --without-token --output-dir clusters/demo-cluster-01",
    ])]
    Bootstrap(bootstrap::BootstrapArgs),
    /// Show where each value of a component on a cluster comes from, and who set it
    #[command(after_help = examples![
        "explain demo-cluster-01 podinfo",
        "explain demo-cluster-01 platform-admins --type rolebinding -o wide",
    ])]
    Explain(explain::ExplainArgs),
    /// Show the audit trail: list, follow, show or revert changes
    #[command(after_help = examples![
        "changes",
        "changes --kind cluster --id demo-cluster-01",
        "changes --follow",
        "changes show 3",
        "changes revert 3 --dry-run",
    ])]
    Changes(changes::ChangesArgs),
    /// Show rule violations in stored documents
    Problems(status::ProblemsArgs),
    /// Show the server, its revision and the age of its snapshot
    #[command(after_help = examples![
        "status",
        "status --watch",
    ])]
    Status(status::StatusArgs),
    /// Show the served snapshot and the change log; accept a diverged change log
    #[command(after_help = examples![
        "store",
        "store accept --dry-run",
        "store accept --reason 'the standby lost its last commits'",
    ])]
    Store(store::StoreArgs),
    /// Show the resource types of the server; accept changed type files
    #[command(after_help = examples![
        "types",
        "types cluster",
        "types diff",
        "types accept --dry-run",
    ])]
    Types(types::TypesArgs),
    /// Run the commands of the demo
    #[command(subcommand)]
    #[command(after_help = examples![
        "demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you",
        "demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.message=Hello",
        "demo flux-namespaces demo-cluster-01.k8s.example.com",
    ])]
    Demo(demo::DemoCommand),
    /// Manage contexts: named servers with their tokens
    #[command(subcommand)]
    #[command(after_help = examples![
        "config set staging --url https://fleet.staging.example.com --token-env STAGING_TOKEN --write-token-command 'pass show fleet/staging'",
        "config use staging",
        "config list",
    ])]
    Config(config::ConfigCommand),
    /// Print a script that completes commands, types and ids in your shell
    Completions(config::CompletionsArgs),
    /// Print or write manual pages
    #[command(after_help = examples![
        "man --output-dir man/man1",
    ])]
    Man(config::ManArgs),
}

/// A resource type and the arguments of a command on it.
#[derive(Args)]
pub(crate) struct WithType<T: Args> {
    /// Resource type: its kind, its plural or its path, such as namespace
    #[arg(value_name = "TYPE", add = completion::completer(completion::types))]
    pub(crate) ty: String,
    #[command(flatten)]
    pub(crate) rest: T,
}

/// Commands on documents of every type.
#[derive(Subcommand)]
pub(crate) enum CommonCommand {
    /// List documents
    List(list::ListArgs),
    /// Get documents by id
    Get(list::GetArgs),
    /// Patch a document, or the Helm values of a component on one cluster
    Patch(patch::PatchArgs),
    /// Edit a document in your editor
    Edit(edit::EditArgs),
    /// Delete documents; a cluster is decommissioned
    Delete(delete::DeleteArgs),
    /// Show the changes of a document
    History(history::HistoryArgs),
    /// Set a document back to its content at an earlier revision
    Revert(revert::RevertArgs),
}

/// Commands on definitions: documents that clusters refer to.
#[derive(Subcommand)]
pub(crate) enum DefinitionCommand<C: Args> {
    #[command(flatten)]
    Common(CommonCommand),
    /// Create a document and, with --cluster, assign it to clusters in the same change
    Create(C),
    /// Assign a document to clusters
    Assign(references::AssignArgs),
    /// Remove a document from clusters; Flux deletes what it rendered there
    Unassign(references::AssignArgs),
}

/// Commands on clusters.
#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    #[command(flatten)]
    Common(CommonCommand),
    /// Create a cluster
    Create(create::CreateClusterArgs),
    /// Restore a decommissioned cluster as it was
    Restore(restore::RestoreArgs),
    /// Remove a decommissioned cluster for good; the server then answers its polls with 404
    Purge(restore::PurgeArgs),
    /// Release a former DNS name of a cluster: polls under it get 404, and another cluster may use it
    #[command(after_help = examples![
        "cluster release-dns eu-prod-07 old-name.k8s.example.com --dry-run",
    ])]
    ReleaseDns(restore::ReleaseDnsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The examples in the help of a command and of its subcommands.
    fn examples(command: &clap::Command, found: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        found.extend(lines.filter(|line| line.starts_with("flux-resourceset-cli")).map(str::to_owned));
        command.get_subcommands().for_each(|subcommand| examples(subcommand, found));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_example_of_the_help_is_parsed() {
        let mut found = Vec::new();
        examples(&Arguments::command(), &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for example in found {
            // The text after a pipe is another command.
            for part in example.split(" | ") {
                let words = shlex::split(part).unwrap_or_else(|| panic!("{part}"));
                if let Err(error) = Arguments::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }
}
