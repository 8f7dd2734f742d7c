//! The commands, one a module: what it takes, and what it does.

pub(crate) mod apply;
pub(crate) mod bootstrap;
pub(crate) mod changes;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod inputs;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod references;
pub(crate) mod render;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod types;
pub(crate) mod versions;

use std::process::ExitCode;

use clap::Args;

use crate::{
    arguments::{Arguments, ClusterVerb, Command, DefinitionVerb, Of, Verb},
    failure::Result,
    session::{Access, Global, Session},
};

/// Does what the command line says.
pub(crate) fn run(Arguments { global, command }: Arguments) -> Result<ExitCode> {
    let reading = || Session::open(&global, Access::Read);
    let writing = || Session::open(&global, Access::Write);
    match command {
        Command::Cluster(verb) => cluster(&global, verb),
        Command::Namespace(verb) => definition(&global, "namespace", verb),
        Command::Component(verb) => definition(&global, "platform_component", verb),
        Command::Rolebinding(verb) => definition(&global, "rolebinding", verb),
        Command::List(Of { ty, rest }) => any(&global, &ty, Verb::List(rest)),
        Command::Get(Of { ty, rest }) => any(&global, &ty, Verb::Get(rest)),
        Command::Patch(Of { ty, rest }) => any(&global, &ty, Verb::Patch(rest)),
        Command::Edit(Of { ty, rest }) => any(&global, &ty, Verb::Edit(rest)),
        Command::Delete(Of { ty, rest }) => any(&global, &ty, Verb::Delete(rest)),
        Command::History(Of { ty, rest }) => any(&global, &ty, Verb::History(rest)),
        Command::Revert(Of { ty, rest }) => any(&global, &ty, Verb::Revert(rest)),
        Command::Create(Of { ty, rest }) => rest.run(&writing()?, &ty),
        Command::Assign(Of { ty, rest }) => rest.assign(&writing()?, &ty),
        Command::Unassign(Of { ty, rest }) => rest.unassign(&writing()?, &ty),
        Command::Apply(apply) => apply.run(&writing()?),
        Command::Diff(diff) => diff.run(&reading()?),
        Command::Export(export) => export.run(&reading()?),
        Command::Fleet(fleet::Fleet::Versions(versions)) => versions.run(&reading()?),
        Command::Fleet(fleet) => fleet.run(&writing()?),
        Command::Inputs(inputs) => inputs.run(&reading()?),
        Command::Render(render) => render.run(&reading()?),
        Command::Bootstrap(bootstrap) => bootstrap.run(&global),
        Command::Explain(explain) => explain.run(&reading()?),
        Command::Changes(changes) if changes.writes() => changes.run(&writing()?),
        Command::Changes(changes) => changes.run(&reading()?),
        Command::Problems(problems) => problems.run(&reading()?),
        Command::Status(status) => status.run(&reading()?),
        Command::Store(store) if store.writes() => store.run(&writing()?),
        Command::Store(store) => store.run(&reading()?),
        Command::Types(types) if types.writes() => types.run(&writing()?),
        Command::Types(types) => types.run(&reading()?),
        Command::Demo(demo @ demo::Demo::FluxNamespaces { .. }) => demo.run(&reading()?),
        Command::Demo(demo) => demo.run(&writing()?),
        Command::Config(config) => config.run(&global),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}

fn any(global: &Global, ty: &str, verb: Verb) -> Result<ExitCode> {
    let session = |access| Session::open(global, access);
    match verb {
        Verb::List(list) => list.run(&session(Access::Read)?, ty),
        Verb::Get(get) => get.run(&session(Access::Read)?, ty),
        Verb::History(history) => history.run(&session(Access::Read)?, ty),
        Verb::Patch(patch) => patch.run(&session(Access::Write)?, ty),
        Verb::Edit(edit) => edit.run(&session(Access::Write)?, ty),
        Verb::Delete(delete) => delete.run(&session(Access::Write)?, ty),
        Verb::Revert(revert) => revert.run(&session(Access::Write)?, ty),
    }
}

fn cluster(global: &Global, verb: ClusterVerb) -> Result<ExitCode> {
    let writing = || Session::open(global, Access::Write);
    match verb {
        ClusterVerb::Any(verb) => any(global, model::ResourceType::CLUSTER, verb),
        ClusterVerb::Create(create) => create.run(&writing()?),
        ClusterVerb::Restore(restore) => restore.run(&writing()?),
        ClusterVerb::Purge(purge) => purge.run(&writing()?),
        ClusterVerb::ReleaseDns(release) => release.run(&writing()?),
    }
}

fn definition<C: Args + create::Describe>(global: &Global, ty: &str, verb: DefinitionVerb<C>) -> Result<ExitCode> {
    let writing = || Session::open(global, Access::Write);
    match verb {
        DefinitionVerb::Any(verb) => any(global, ty, verb),
        DefinitionVerb::Create(create) => create::described(&writing()?, ty, &create),
        DefinitionVerb::Assign(assign) => assign.assign(&writing()?, ty),
        DefinitionVerb::Unassign(assign) => assign.unassign(&writing()?, ty),
    }
}
