//! The command line. What a command takes stands in its module; here they are named and put in order.

use clap::{Args, Parser, Subcommand};

use crate::{
    commands::{
        apply, bootstrap, changes, config, create, delete, demo, diff, edit, explain, export, fleet, history, inputs,
        list, patch, references, render, restore, revert, status, store, types,
    },
    completion,
    session::Global,
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
  FLUX_API_URL          the server's address
  FLUX_API_TOKEN        the token for reading
  FLUX_API_WRITE_TOKEN  the token for changes; where it is not set, the one for reading is used
  FLUX_API_CONFIG       the file of contexts, used where FLUX_API_URL is not set
  NO_COLOR              no colours

Exit codes:
  0  done                       3  not found
  1  failed, refused, differs   4  conflict (409, 412)
  2  used wrongly";

/// Examples for the help of a command, each of which is tried by a test.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("Examples:", $("\n  flux-resourceset-cli ", $line),+)
    };
}

/// The operator's tool of flux-resourceset: look at a fleet of clusters, and change it
#[derive(Parser)]
#[command(name = "flux-resourceset-cli", version, after_help = EXAMPLES, subcommand_value_name = "COMMAND")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// The first word.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Clusters: list, get, create, patch, edit, delete, restore, …
    #[command(subcommand, visible_alias = "clusters")]
    #[command(after_help = examples![
        "cluster list",
        "cluster get demo-cluster-01 -o yaml",
        "cluster create eu-prod-07 --dns eu-prod-07.k8s.example.com --environment prod --label region=eu --assign component=podinfo",
        "cluster delete eu-prod-07 --dry-run",
    ])]
    Cluster(ClusterVerb),
    /// Namespaces: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["namespaces", "ns"])]
    #[command(after_help = examples![
        "namespace create team-sandbox --cluster demo-cluster-01 --label team=sandbox --annotation owner=platform",
        "namespace assign team-sandbox --cluster demo-cluster-01",
        "namespace unassign team-sandbox --cluster demo-cluster-01",
    ])]
    Namespace(DefinitionVerb<create::Namespace>),
    /// Platform components: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["components", "platform-component"])]
    #[command(after_help = examples![
        "component create cert-manager --component-path core/cert-manager/1.14.0 --oci-url oci://registry.example/platform-components --oci-tag v1.0.0 --cluster demo-cluster-01",
        "component patch podinfo --cluster demo-cluster-01 --set replicaCount=3",
        "component assign cert-manager --cluster demo-cluster-01",
    ])]
    Component(DefinitionVerb<create::Component>),
    /// Role bindings: list, get, create, assign, unassign, patch, …
    #[command(subcommand, visible_aliases = ["rolebindings", "rb"])]
    #[command(after_help = examples![
        "rolebinding create dev-admins --role admin --subject Group:dev-team --cluster demo-cluster-01",
        "rolebinding create deployer --role edit --subject ServiceAccount:flux-system/deployer",
    ])]
    Rolebinding(DefinitionVerb<create::Rolebinding>),
    /// List the documents of a type
    #[command(after_help = examples![
        "list clusters --selector environment=dev,region=eu",
        "list network-policies -o name",
        "list clusters --selector platform_components=podinfo --watch",
    ])]
    List(Of<list::List>),
    /// Get documents of a type by id
    #[command(after_help = examples![
        "get cluster demo-cluster-01",
        "get namespace podinfo traefik -o yaml",
        "get platform_component podinfo --revision 1",
    ])]
    Get(Of<list::Get>),
    /// Create a document of a type
    #[command(after_help = examples![
        "create network_policy allow-monitoring --field target_namespace=monitoring --field 'ingress_rules=[{\"port\": 9090}]'",
        "create network_policy -f policy.yaml --cluster demo-cluster-01",
    ])]
    Create(Of<create::Any>),
    /// Change a document of a type, or the values of a component on a cluster
    #[command(after_help = examples![
        "patch cluster demo-cluster-01 -p '{deletion_protection: true}'",
        "patch component podinfo --cluster demo-cluster-01 --set ui.message='Hello, world' --unset ui.color",
    ])]
    Patch(Of<patch::Patch>),
    /// Give clusters a document of a type
    #[command(after_help = examples![
        "assign network_policy allow-monitoring --cluster demo-cluster-01 --cluster demo-cluster-02",
    ])]
    Assign(Of<references::Assign>),
    /// Take a document of a type away from clusters
    #[command(after_help = examples![
        "unassign network_policy allow-monitoring --cluster demo-cluster-01 --dry-run",
    ])]
    Unassign(Of<references::Assign>),
    /// Change a document in your editor
    #[command(after_help = examples![
        "edit cluster demo-cluster-01 --reason 'another tier'",
    ])]
    Edit(Of<edit::Edit>),
    /// Delete a document, or decommission a cluster
    #[command(after_help = examples![
        "delete namespace team-sandbox",
        "delete rolebinding dev-readers --cascade --dry-run",
        "delete cluster demo-cluster-01",
    ])]
    Delete(Of<delete::Delete>),
    /// The changes of a document
    #[command(after_help = examples![
        "history cluster demo-cluster-01",
    ])]
    History(Of<history::History>),
    /// Take a document back to what it said at a revision
    #[command(after_help = examples![
        "revert cluster demo-cluster-01 --to 3",
        "revert namespace podinfo --dry-run",
    ])]
    Revert(Of<revert::Revert>),
    /// Make the fleet say what files say, as one change
    #[command(after_help = examples![
        "apply -f fleet/",
        "apply -f namespaces.yaml --dry-run",
        "apply -f fleet/ --prune --selector team=web",
        "export | flux-resourceset-cli --context staging apply -f -",
    ])]
    Apply(apply::Apply),
    /// Show where files and the fleet differ
    #[command(after_help = examples![
        "diff -f fleet/",
    ])]
    Diff(diff::Diff),
    /// Write the fleet to files, one a document
    #[command(after_help = examples![
        "export --output-dir fleet",
        "export clusters --revision 42",
    ])]
    Export(export::Export),
    /// Many clusters at once: patch, assign, unassign, set-version, versions
    #[command(subcommand)]
    #[command(after_help = examples![
        "fleet versions cert-manager",
        "fleet set-version cert-manager --oci-tag v1.0.0-1 --selector environment=dev",
        "fleet patch podinfo --selector environment=dev,region=eu --set replicaCount=2",
        "fleet assign component grafana --selector environment=prod --dry-run",
        "fleet unassign namespace team-sandbox --all",
    ])]
    Fleet(fleet::Fleet),
    /// What a cluster is told when it polls
    #[command(after_help = examples![
        "inputs demo-cluster-01",
        "inputs demo-cluster-01 platform-components -o yaml",
        "inputs demo-cluster-01 --revision 1",
    ])]
    Inputs(inputs::Inputs),
    /// The manifests that a cluster makes of it, through flux-operator
    #[command(after_help = examples![
        "render demo-cluster-01",
        "render demo-cluster-01 namespaces",
    ])]
    Render(render::Render),
    /// Everything that a new cluster needs to poll, for kubectl apply --server-side -f -
    #[command(after_help = examples![
        "bootstrap demo-cluster-01 --api-url https://fleet.example.com --token-file token.txt",
        "bootstrap demo-cluster-01 --interval 10m --without-flux-instance",
        "bootstrap demo-cluster-01 --without-token --output-dir clusters/demo-cluster-01",
    ])]
    Bootstrap(bootstrap::Bootstrap),
    /// Where each value of a component on a cluster comes from, and who set it
    #[command(after_help = examples![
        "explain demo-cluster-01 podinfo",
        "explain demo-cluster-01 platform-admins --type rolebinding -o wide",
    ])]
    Explain(explain::Explain),
    /// The audit trail
    #[command(after_help = examples![
        "changes",
        "changes --kind cluster --id demo-cluster-01",
        "changes --follow",
        "changes show 3",
        "changes revert 3 --dry-run",
    ])]
    Changes(changes::Changes),
    /// What is wrong with documents that are already there
    Problems(status::Problems),
    /// The server, its revision and the age of its picture
    #[command(after_help = examples![
        "status",
        "status --watch",
    ])]
    Status(status::Status),
    /// What is served, where the log is, and accepting a log that was put back
    #[command(after_help = examples![
        "store",
        "store accept --dry-run",
        "store accept --reason 'the standby lost its last commits'",
    ])]
    Store(store::Store),
    /// The resource types that the server knows, and accepting that they are served in another way
    #[command(after_help = examples![
        "types",
        "types cluster",
        "types diff",
        "types accept --dry-run",
    ])]
    Types(types::Types),
    /// Commands of the demo
    #[command(subcommand)]
    #[command(after_help = examples![
        "demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you",
        "demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.message=Hello",
        "demo flux-namespaces demo-cluster-01.k8s.example.com",
    ])]
    Demo(demo::Demo),
    /// Servers by name
    #[command(subcommand)]
    #[command(after_help = examples![
        "config set staging --url https://fleet.staging.example.com --token-env STAGING_TOKEN --write-token-command 'pass show fleet/staging'",
        "config use staging",
        "config list",
    ])]
    Config(config::Config),
    /// A script that completes commands, types and ids in your shell
    Completions(config::Completions),
    /// Manual pages
    #[command(after_help = examples![
        "man --output-dir man/man1",
    ])]
    Man(config::Man),
}

/// A type and what is asked of it.
#[derive(Args)]
pub(crate) struct Of<T: Args> {
    /// A resource type: its kind, its plural or its path
    #[arg(value_name = "TYPE", add = completion::of(completion::types))]
    pub(crate) ty: String,
    #[command(flatten)]
    pub(crate) rest: T,
}

/// What can be asked of documents of every type.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List them
    List(list::List),
    /// Get some by id
    Get(list::Get),
    /// Change one, or the values of a component on a cluster
    Patch(patch::Patch),
    /// Change one in your editor
    Edit(edit::Edit),
    /// Delete one; a cluster is decommissioned
    Delete(delete::Delete),
    /// The changes of one
    History(history::History),
    /// Take one back to what it said at a revision
    Revert(revert::Revert),
}

/// What can be asked of definitions.
#[derive(Subcommand)]
pub(crate) enum DefinitionVerb<C: Args> {
    #[command(flatten)]
    Any(Verb),
    /// Create one and, with --cluster, give it to clusters in the same change
    Create(C),
    /// Give one to clusters
    Assign(references::Assign),
    /// Take one away from clusters
    Unassign(references::Assign),
}

/// What can be asked of clusters.
#[derive(Subcommand)]
pub(crate) enum ClusterVerb {
    #[command(flatten)]
    Any(Verb),
    /// Create one
    Create(create::Cluster),
    /// Put a decommissioned one in force again, as it was
    Restore(restore::Restore),
    /// Forget a decommissioned one: its name is unknown again
    Purge(restore::Purge),
    /// Release a DNS name that one had before: it no longer answers to it, and another cluster may take it
    #[command(after_help = examples![
        "cluster release-dns eu-prod-07 old-name.k8s.example.com --dry-run",
    ])]
    ReleaseDns(restore::ReleaseDns),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The examples in the help of a command and of those below it.
    fn examples(command: &clap::Command, found: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        found.extend(lines.filter(|line| line.starts_with("flux-resourceset-cli")).map(str::to_owned));
        command.get_subcommands().for_each(|below| examples(below, found));
    }

    #[test]
    fn the_command_line_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_example_of_the_help_is_understood() {
        let mut found = Vec::new();
        examples(&Arguments::command(), &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for example in found {
            // What is behind a pipe is another command.
            for part in example.split(" | ") {
                let words = shlex::split(part).unwrap_or_else(|| panic!("{part}"));
                if let Err(error) = Arguments::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }
}
