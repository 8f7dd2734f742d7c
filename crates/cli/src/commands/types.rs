//! `types`: the resource types of a server. `types diff` compares the type files with the change log, and `types
//! accept` serves the types as the files declare them.
//!
//! A type whose file changed kind, list, path, key or a default is not served, because clusters would get other inputs
//! or none. An operator accepts the change after checking which inputs clusters would lose.

use std::{fmt::Write as _, process::ExitCode};

use api::TypeDescription;
use clap::{Args, Subcommand};
use client::Edit;
use model::{TypeChange, TypeChangeKind, TypeRecord};

use crate::{
    consent::{Confirm, ConsentArgs},
    failure::{CliError, Result},
    output::CommandOutput,
    plan,
    session::Session,
    table::TextTable,
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TypesArgs {
    #[command(subcommand)]
    command: Option<TypesCommand>,
    /// Show the fields of this resource type
    #[arg(value_name = "TYPE")]
    ty: Option<String>,
}

#[derive(Subcommand)]
enum TypesCommand {
    /// Show how the type files differ from the change log, and which inputs clusters would lose; exit code 1 if they differ
    Diff,
    /// Serve the types as the files of the server declare them
    Accept(ConsentArgs),
}

impl TypesArgs {
    pub(crate) fn writes(&self) -> bool {
        matches!(self.command, Some(TypesCommand::Accept(_)))
    }

    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let output = match (&self.command, &self.ty) {
            (Some(TypesCommand::Diff), _) => return diff(session),
            (Some(TypesCommand::Accept(consent)), _) => return accept(session, *consent),
            (None, Some(name)) => fields_output(session.resource_type(name)?)?,
            (None, None) => types_output(&session.types()?.iter().collect::<Vec<_>>())?,
        };
        session.out.show(&output)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn diff(session: &Session) -> Result<ExitCode> {
    let type_changes = session.client.type_changes()?;
    let column = |cell: fn(&TypeChange) -> String| type_changes.changes.iter().map(cell).collect::<Vec<_>>();
    let names =
        column(|it| it.declared.as_ref().or(it.recorded.as_ref()).map_or_else(String::new, |it| it.kind.to_string()));
    let table = if type_changes.changes.is_empty() {
        TextTable::default().note("The type files of the server match the change log.")
    } else {
        TextTable::default()
            .key("KIND", names.clone())
            .column("CHANGE", column(|it| change_text(it.change).to_owned()))
            .column("CHANGE LOG", column(|it| record_text(it.recorded.as_ref())))
            .column("FILES", column(|it| record_text(it.declared.as_ref())))
            .note(plan::text(&type_changes.plan).trim_end())
    };
    let is_same = type_changes.changes.is_empty();
    session.out.show(&CommandOutput { value: serde_json::to_value(&type_changes)?, names, table })?;
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn change_text(change: TypeChangeKind) -> &'static str {
    match change {
        TypeChangeKind::Added => "added, served",
        TypeChangeKind::Changed => "changed, not served",
        TypeChangeKind::Removed => "removed",
    }
}

fn record_text(record: Option<&TypeRecord>) -> String {
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

fn accept(session: &Session, consent: ConsentArgs) -> Result<ExitCode> {
    let prepare = || Ok((Edit::accept_types(&session.client.type_changes()?.digest), Confirm::OnChange));
    let change = consent.confirm_and_retry(session, prepare)?;
    if let Some(change) = change {
        let done =
            format!("the type files of {} are accepted (revision {})", session.server_description(), change.revision);
        session.out.report_done(&done, &[change.revision.to_string()], &change.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn types_output(types: &[&TypeDescription]) -> Result<CommandOutput> {
    let column = |cell: fn(&TypeDescription) -> String| types.iter().map(|ty| cell(ty)).collect::<Vec<_>>();
    let table = TextTable::default()
        .key("KIND", column(|ty| ty.kind.clone()))
        .key("PLURAL", column(|ty| ty.plural.clone()))
        .key("PATH", column(|ty| ty.path.clone()))
        .column("DESCRIPTION", column(|ty| ty.description.clone()));
    Ok(CommandOutput { value: serde_json::to_value(types)?, names: column(|ty| ty.kind.clone()), table })
}

fn fields_output(ty: &TypeDescription) -> Result<CommandOutput> {
    let properties =
        ty.properties().ok_or_else(|| CliError::failed(format!("the type {} declares no fields", ty.kind)))?;
    let required = |name: &str| ty.schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    let text = |name: &str, member: &str| properties[name][member].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = properties.keys().cloned().collect();
    let column = |cell: &dyn Fn(&str) -> String| names.iter().map(|name| cell(name)).collect::<Vec<_>>();
    let table = TextTable::default()
        .key("FIELD", names.clone())
        .column("TYPE", column(&|name| text(name, "type")))
        .column("REQUIRED", column(&|name| if required(name) { "yes".to_owned() } else { "no".to_owned() }))
        .column("DESCRIPTION", column(&|name| text(name, "description")));
    Ok(CommandOutput { value: serde_json::to_value(ty)?, names, table })
}
