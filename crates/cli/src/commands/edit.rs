//! `edit`: edits a document in an editor. The document is replaced only if it was not changed meanwhile
//! (compare-and-swap). If it cannot be saved, the edited file is kept.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use api::TypeDescription;
use clap::Args;
use client::Edit as Change;
use model::{Map, Value, yaml};

use crate::{
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    failure::{CliError, CliErrorKind, Result},
    output,
    session::Session,
};

#[derive(Args)]
pub(crate) struct EditArgs {
    /// Id of the document
    #[arg(add = completion::completer(completion::ids))]
    id: String,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl EditArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let fetched = session.with_suggestion(ty, &self.id, session.client.get(ty, &self.id, None))?;
        let name = ty.name(&self.id);
        let heading = format!(
            "# {name}. Comment lines at the top are ignored.\n\
             # Save changes to update the document. Save no changes, or an empty file, to cancel.\n"
        );
        let path = write_draft(&heading, &fetched.body)?;
        let (mut original, mut has_edits) = (fs::read_to_string(&path)?, false);
        loop {
            open_editor(&path)?;
            let text = fs::read_to_string(&path)?;
            let unchanged = text == original || text.trim().is_empty();
            if unchanged && !has_edits {
                fs::remove_file(&path)?;
                session.message(&format!("{name} was not changed"));
                return Ok(ExitCode::SUCCESS);
            }
            if unchanged {
                return Err(with_draft_path(CliError::failed(format!("{name} was not changed")), &path));
            }
            has_edits = true;
            let saved = read(&text).and_then(|body| self.save(session, ty, &fetched.etag, &fetched.body, body));
            match saved {
                Ok(()) if self.consent.dry_run => {
                    session.message(&format!("your edits are in {}", path.display()));
                    return Ok(ExitCode::SUCCESS);
                }
                Ok(()) => {
                    fs::remove_file(&path)?;
                    return Ok(ExitCode::SUCCESS);
                }
                // Editing again cannot fix these errors.
                Err(error) if error.declined || !error.is(CliErrorKind::Failed) => {
                    return Err(with_draft_path(error, &path));
                }
                Err(error) => {
                    // The editor opens again with the error at the top. Saving that file unchanged cancels.
                    let error_text = error.text();
                    let error_text = anstream::adapter::strip_str(error_text.trim_end()).to_string();
                    original = format!("{heading}{}{}", commented(&error_text), uncommented(&text));
                    fs::write(&path, &original)?;
                    if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
                        return Err(with_draft_path(error, &path));
                    }
                }
            }
        }
    }

    fn save(&self, session: &Session, ty: &TypeDescription, etag: &str, before: &Map, body: Map) -> Result<()> {
        let name = ty.name(&self.id);
        if body == *before {
            return session.out.report_done(&format!("{name} was not changed"), &[name], &Value::Object(body));
        }
        let change = Change::replace(ty, &self.id, body).if_match(etag);
        let (confirm, done) = (Confirm::OnLoss, format!("{name} changed"));
        let request = ChangeRequest { edit: change, confirm, done, names: vec![name], named: Vec::new() };
        self.consent.perform(session, request).map(drop)
    }
}

/// Writes the document to a temporary file, which is not deleted when this process ends.
fn write_draft(heading: &str, body: &Map) -> Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("flux-resourceset-").suffix(".yaml").tempfile()?;
    write!(file, "{heading}{}", output::as_yaml(&Value::Object(body.clone()))?)?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

fn open_editor(path: &Path) -> Result<()> {
    let chosen =
        ["VISUAL", "EDITOR"].iter().find_map(|name| env::var(name).ok().filter(|editor| !editor.trim().is_empty()));
    let editor = chosen.unwrap_or_else(|| "vi".to_owned());
    let words = shlex::split(&editor).unwrap_or_default();
    let [program, arguments @ ..] = words.as_slice() else {
        return Err(CliError::usage(format!("VISUAL or EDITOR is not a valid command: {editor}")));
    };
    let status = Command::new(program).args(arguments).arg(path).status();
    let status = status.map_err(|error| {
        CliError::failed(format!("the editor {program} cannot be started: {error}"))
            .hint("set EDITOR to an installed editor")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(with_draft_path(CliError::failed(format!("the editor failed: {status}")), path))
    }
}

/// Adds the path of the kept file to an error.
fn with_draft_path(error: CliError, path: &Path) -> CliError {
    error.add_hint(format!("your edits are in {}", path.display()))
}

fn read(text: &str) -> Result<Map> {
    let located = yaml::read(text).map_err(|error| CliError::failed(format!("line {}: {error}", error.line)))?;
    match located.value {
        Value::Object(body) => Ok(body),
        _ => Err(CliError::failed("a document must be an object")),
    }
}

fn commented(text: &str) -> String {
    text.lines().flat_map(|line| ["# ", line, "\n"]).collect()
}

/// The text without the comments at its top.
fn uncommented(text: &str) -> String {
    text.lines().skip_while(|line| line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}
