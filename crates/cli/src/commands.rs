//! The commands, one module each: the arguments and what the command does.

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
    arguments::{Arguments, ClusterCommand, CommonCommand, DefinitionCommand, TopCommand, WithType},
    failure::Result,
    session::{Access, GlobalArgs, Session},
};

/// Runs the command of the command line.
pub(crate) fn run(Arguments { global, command }: Arguments) -> Result<ExitCode> {
    let reader = || Session::open(&global, Access::Read);
    let writer = || Session::open(&global, Access::Write);
    match command {
        TopCommand::Cluster(verb) => run_cluster(&global, verb),
        TopCommand::Namespace(verb) => run_definition(&global, "namespace", verb),
        TopCommand::Component(verb) => run_definition(&global, "platform_component", verb),
        TopCommand::Rolebinding(verb) => run_definition(&global, "rolebinding", verb),
        TopCommand::List(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::List(rest)),
        TopCommand::Get(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::Get(rest)),
        TopCommand::Patch(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::Patch(rest)),
        TopCommand::Edit(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::Edit(rest)),
        TopCommand::Delete(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::Delete(rest)),
        TopCommand::History(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::History(rest)),
        TopCommand::Revert(WithType { ty, rest }) => run_common(&global, &ty, CommonCommand::Revert(rest)),
        TopCommand::Create(WithType { ty, rest }) => rest.run(&writer()?, &ty),
        TopCommand::Assign(WithType { ty, rest }) => rest.assign(&writer()?, &ty),
        TopCommand::Unassign(WithType { ty, rest }) => rest.unassign(&writer()?, &ty),
        TopCommand::Apply(apply) => apply.run(&writer()?),
        TopCommand::Diff(diff) => diff.run(&reader()?),
        TopCommand::Export(export) => export.run(&reader()?),
        TopCommand::Fleet(fleet::FleetCommand::Versions(versions)) => versions.run(&reader()?),
        TopCommand::Fleet(fleet) => fleet.run(&writer()?),
        TopCommand::Inputs(inputs) => inputs.run(&reader()?),
        TopCommand::Render(render) => render.run(&reader()?),
        TopCommand::Bootstrap(bootstrap) => bootstrap.run(&global),
        TopCommand::Explain(explain) => explain.run(&reader()?),
        TopCommand::Changes(changes) if changes.writes() => changes.run(&writer()?),
        TopCommand::Changes(changes) => changes.run(&reader()?),
        TopCommand::Problems(problems) => problems.run(&reader()?),
        TopCommand::Status(status) => status.run(&reader()?),
        TopCommand::Store(store) if store.writes() => store.run(&writer()?),
        TopCommand::Store(store) => store.run(&reader()?),
        TopCommand::Types(types) if types.writes() => types.run(&writer()?),
        TopCommand::Types(types) => types.run(&reader()?),
        TopCommand::Demo(demo @ demo::DemoCommand::FluxNamespaces { .. }) => demo.run(&reader()?),
        TopCommand::Demo(demo) => demo.run(&writer()?),
        TopCommand::Config(config) => config.run(&global),
        TopCommand::Completions(completions) => completions.run(),
        TopCommand::Man(man) => man.run(),
    }
}

fn run_common(global: &GlobalArgs, ty: &str, verb: CommonCommand) -> Result<ExitCode> {
    let session = |access| Session::open(global, access);
    match verb {
        CommonCommand::List(list) => list.run(&session(Access::Read)?, ty),
        CommonCommand::Get(get) => get.run(&session(Access::Read)?, ty),
        CommonCommand::History(history) => history.run(&session(Access::Read)?, ty),
        CommonCommand::Patch(patch) => patch.run(&session(Access::Write)?, ty),
        CommonCommand::Edit(edit) => edit.run(&session(Access::Write)?, ty),
        CommonCommand::Delete(delete) => delete.run(&session(Access::Write)?, ty),
        CommonCommand::Revert(revert) => revert.run(&session(Access::Write)?, ty),
    }
}

fn run_cluster(global: &GlobalArgs, verb: ClusterCommand) -> Result<ExitCode> {
    let writer = || Session::open(global, Access::Write);
    match verb {
        ClusterCommand::Common(verb) => run_common(global, model::ResourceType::CLUSTER, verb),
        ClusterCommand::Create(create) => create.run(&writer()?),
        ClusterCommand::Restore(restore) => restore.run(&writer()?),
        ClusterCommand::Purge(purge) => purge.run(&writer()?),
        ClusterCommand::ReleaseDns(release) => release.run(&writer()?),
    }
}

fn run_definition<C: Args + create::DocumentArgs>(
    global: &GlobalArgs,
    ty: &str,
    verb: DefinitionCommand<C>,
) -> Result<ExitCode> {
    let writer = || Session::open(global, Access::Write);
    match verb {
        DefinitionCommand::Common(verb) => run_common(global, ty, verb),
        DefinitionCommand::Create(create) => create::create_from_flags(&writer()?, ty, &create),
        DefinitionCommand::Assign(assign) => assign.assign(&writer()?, ty),
        DefinitionCommand::Unassign(assign) => assign.unassign(&writer()?, ty),
    }
}
