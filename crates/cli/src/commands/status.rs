//! `status`, `problems` and `types`: the server itself.

use std::process::ExitCode;

use clap::Args;
use client::{DocumentProblem, ResourceType};
use serde_json::json;

use crate::{
    failure::{Failure, Result},
    output::Shown,
    session::Session,
    table::Table,
};

#[derive(Args)]
pub(crate) struct Status {
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

impl Status {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        session.present(self.watch, || {
            let ready = session.client.ready()?;
            let age = format!("{:.1} s", ready.age_seconds);
            let store = match &*ready.store {
                "diverged" => "diverged: flux-resourceset-cli store says more".to_owned(),
                status => status.to_owned(),
            };
            let mut told = vec![
                ("server", session.client.url().to_owned()),
                ("chosen by", session.origin.clone()),
                ("version", ready.version.clone()),
                ("revision", ready.revision.to_string()),
                ("age of the picture", age),
                ("store", store),
            ];
            // Problems need a good token; without one, the rest is still worth telling.
            let problems = session.client.problems().map(|problems| problems.len());
            told.push(match &problems {
                Ok(count) => ("problems", count.to_string()),
                Err(error) => ("problems", format!("unknown: {error}")),
            });
            let value = json!({
                "server": session.client.url(), "origin": session.origin, "version": ready.version,
                "revision": ready.revision, "age_seconds": ready.age_seconds, "store": ready.store,
                "problems": problems.ok()
            });
            Ok(Shown { value, names: vec![session.client.url().to_owned()], table: Table::default().facts(&told) })
        })
    }
}

#[derive(Args)]
pub(crate) struct Problems {
    /// Show them again whenever they change
    #[arg(short, long)]
    watch: bool,
}

impl Problems {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        session.present(self.watch, || {
            let problems = session.client.problems()?;
            let column = |of: fn(&DocumentProblem) -> String| problems.iter().map(of).collect::<Vec<_>>();
            let names = column(|problem| format!("{}/{}", problem.kind, problem.id));
            let table = if problems.is_empty() {
                Table::default().note("There are no problems.")
            } else {
                Table::default()
                    .key("DOCUMENT", names.clone())
                    .column("RULE", column(|problem| problem.rule.clone()))
                    .column("PLACE", column(|problem| problem.pointer.clone()))
                    .column("PROBLEM", column(|problem| problem.message.clone()))
            };
            Ok(Shown { value: serde_json::to_value(&problems)?, names, table })
        })
    }
}

#[derive(Args)]
pub(crate) struct Types {
    /// One type, with its fields
    #[arg(value_name = "TYPE")]
    ty: Option<String>,
}

impl Types {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let shown = match &self.ty {
            Some(name) => fields(session.ty(name)?)?,
            None => all(&session.types()?.iter().collect::<Vec<_>>())?,
        };
        session.out.show(&shown)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn all(types: &[&ResourceType]) -> Result<Shown> {
    let column = |of: fn(&ResourceType) -> String| types.iter().map(|ty| of(ty)).collect::<Vec<_>>();
    let table = Table::default()
        .key("KIND", column(|ty| ty.kind.clone()))
        .key("PLURAL", column(|ty| ty.plural.clone()))
        .key("PATH", column(|ty| ty.path.clone()))
        .column("DESCRIPTION", column(|ty| ty.description.clone()));
    Ok(Shown { value: serde_json::to_value(types)?, names: column(|ty| ty.kind.clone()), table })
}

fn fields(ty: &ResourceType) -> Result<Shown> {
    let properties =
        ty.properties().ok_or_else(|| Failure::failed(format!("the type {} declares no fields", ty.kind)))?;
    let required = |name: &str| ty.schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    let text = |name: &str, member: &str| properties[name][member].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = properties.keys().cloned().collect();
    let column = |of: &dyn Fn(&str) -> String| names.iter().map(|name| of(name)).collect::<Vec<_>>();
    let table = Table::default()
        .key("FIELD", names.clone())
        .column("TYPE", column(&|name| text(name, "type")))
        .column("REQUIRED", column(&|name| if required(name) { "yes".to_owned() } else { "no".to_owned() }))
        .column("DESCRIPTION", column(&|name| text(name, "description")));
    Ok(Shown { value: serde_json::to_value(ty)?, names, table })
}
