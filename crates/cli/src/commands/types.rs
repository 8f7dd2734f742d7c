//! `types`: the resource types of a server. `types diff` and `types accept`: where its files and the change log differ on how
//! types are served, and serving them as the files say.
//!
//! A type that moved its kind, list, path, key or a default is not served, because clusters would get other inputs or none. A
//! person who has seen what clusters would lose accepts it.

use std::{fmt::Write as _, process::ExitCode};

use clap::{Args, Subcommand};
use client::{Edit, ResourceType};
use model::{TypeChange, TypeChangeKind, TypeRecord};

use crate::{
    consent::{Asked, Consent},
    failure::{Failure, Result},
    output::Shown,
    plan,
    session::Session,
    table::Table,
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Types {
    #[command(subcommand)]
    verb: Option<TypesVerb>,
    /// One type, with its fields
    #[arg(value_name = "TYPE")]
    ty: Option<String>,
}

#[derive(Subcommand)]
enum TypesVerb {
    /// Where the server's files and the change log differ, and what clusters would lose; exits with 1 if they do
    Diff,
    /// Serve the types as the server's files say from now on
    Accept(Consent),
}

impl Types {
    pub(crate) fn writes(&self) -> bool {
        matches!(self.verb, Some(TypesVerb::Accept(_)))
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let shown = match (&self.verb, &self.ty) {
            (Some(TypesVerb::Diff), _) => return diff(session),
            (Some(TypesVerb::Accept(consent)), _) => return accept(session, *consent),
            (None, Some(name)) => fields(session.ty(name)?)?,
            (None, None) => all(&session.types()?.iter().collect::<Vec<_>>())?,
        };
        session.out.show(&shown)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn diff(session: &Session) -> Result<ExitCode> {
    let found = session.client.type_changes()?;
    let column = |of: fn(&TypeChange) -> String| found.changes.iter().map(of).collect::<Vec<_>>();
    let names =
        column(|it| it.declared.as_ref().or(it.recorded.as_ref()).map_or_else(String::new, |it| it.kind.to_string()));
    let table = if found.changes.is_empty() {
        Table::default().note("The server's files and the change log agree.")
    } else {
        Table::default()
            .key("KIND", names.clone())
            .column("CHANGE", column(|it| described(it.change).to_owned()))
            .column("CHANGE LOG", column(|it| recorded(it.recorded.as_ref())))
            .column("FILES", column(|it| recorded(it.declared.as_ref())))
            .note(plan::text(&found.plan).trim_end())
    };
    let is_same = found.changes.is_empty();
    session.out.show(&Shown { value: serde_json::to_value(&found)?, names, table })?;
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn described(change: TypeChangeKind) -> &'static str {
    match change {
        TypeChangeKind::Added => "added, served",
        TypeChangeKind::Changed => "changed, not served",
        TypeChangeKind::Removed => "removed",
    }
}

fn recorded(record: Option<&TypeRecord>) -> String {
    let text = |TypeRecord { list, path, key, defaults, fields, nest, fixed, ordered_by, retired, .. }: &TypeRecord| {
        let mut text = format!("path={path} list={list} key={key}");
        for (name, value) in defaults {
            let _ = write!(text, " {name}={value}");
        }
        if let Some(fields) = fields {
            let fields: Vec<_> = fields.iter().map(String::as_str).collect();
            let _ = write!(text, " fields={}", fields.join(","));
        }
        if let Some(fixed) = fixed {
            let fixed: Vec<_> = fixed.iter().map(String::as_str).collect();
            let _ = write!(text, " fixed={}", fixed.join(","));
        }
        for (name, fields) in nest {
            let fields: Vec<_> = fields.iter().map(String::as_str).collect();
            let _ = write!(text, " {name}={{{}}}", fields.join(","));
        }
        if let Some(name) = ordered_by {
            let _ = write!(text, " ordered_by={name}");
        }
        if *retired {
            text.push_str(" retired");
        }
        text
    };
    record.map_or_else(|| "-".to_owned(), text)
}

fn accept(session: &Session, consent: Consent) -> Result<ExitCode> {
    let think = || Ok((Edit::accept_types(&session.client.type_changes()?.digest), Asked::Always));
    let made = consent.carry_out_anew(session, think)?;
    if let Some(made) = made {
        let done = format!("the types are served as the files of {} say (revision {})", session.name(), made.revision);
        session.out.done(&done, &[made.revision.to_string()], &made.body)?;
    }
    Ok(ExitCode::SUCCESS)
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
