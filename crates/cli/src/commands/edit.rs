//! `edit`: a document in an editor. It is replaced only if nobody changed it meanwhile, and nothing that was typed is
//! lost: where it cannot be saved, the file stays.

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
    consent::{Asked, Consent, Deed},
    failure::{Failure, Outcome, Result},
    output,
    session::Session,
};

#[derive(Args)]
pub(crate) struct Edit {
    /// Which
    #[arg(add = completion::of(completion::ids))]
    id: String,
    #[command(flatten)]
    consent: Consent,
}

impl Edit {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        let fetched = session.about(ty, &self.id, session.client.get(ty, &self.id, None))?;
        let name = ty.name(&self.id);
        let heading = format!(
            "# {name}. Lines that begin with # at the top are left out.\n\
             # Save to change it; leave it as it is, or empty, to change nothing.\n"
        );
        let path = draft(&heading, &fetched.body)?;
        let (mut shown, mut typed) = (fs::read_to_string(&path)?, false);
        loop {
            open_editor(&path)?;
            let text = fs::read_to_string(&path)?;
            let unchanged = text == shown || text.trim().is_empty();
            if unchanged && !typed {
                fs::remove_file(&path)?;
                session.say(&format!("{name} was not changed"));
                return Ok(ExitCode::SUCCESS);
            }
            if unchanged {
                return Err(kept(Failure::failed(format!("{name} was not changed")), &path));
            }
            typed = true;
            let saved = read(&text).and_then(|body| self.save(session, ty, &fetched.etag, &fetched.body, body));
            match saved {
                Ok(()) if self.consent.dry_run => {
                    session.say(&format!("what you wrote is in {}", path.display()));
                    return Ok(ExitCode::SUCCESS);
                }
                Ok(()) => {
                    fs::remove_file(&path)?;
                    return Ok(ExitCode::SUCCESS);
                }
                // Another try cannot mend these.
                Err(failure) if failure.declined || !failure.is(Outcome::Failed) => return Err(kept(failure, &path)),
                Err(failure) => {
                    // The editor opens again, with what is wrong at the top; saving that unchanged gives up.
                    let told = failure.text();
                    let told = anstream::adapter::strip_str(told.trim_end()).to_string();
                    shown = format!("{heading}{}{}", commented(&told), uncommented(&text));
                    fs::write(&path, &shown)?;
                    if !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
                        return Err(kept(failure, &path));
                    }
                }
            }
        }
    }

    fn save(&self, session: &Session, ty: &TypeDescription, etag: &str, before: &Map, body: Map) -> Result<()> {
        let name = ty.name(&self.id);
        if body == *before {
            return session.out.done(&format!("{name} was not changed"), &[name], &Value::Object(body));
        }
        let change = Change::replace(ty, &self.id, body).if_match(etag);
        let (asked, done) = (Asked::IfSomethingGoes, format!("{name} changed"));
        let deed = Deed { edit: change, asked, done, names: vec![name], named: Vec::new() };
        self.consent.perform(session, deed).map(drop)
    }
}

/// A file with the document, which outlives this process.
fn draft(heading: &str, body: &Map) -> Result<PathBuf> {
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
        return Err(Failure::usage(format!("EDITOR is no command: {editor}")));
    };
    let status = Command::new(program).args(arguments).arg(path).status();
    let status = status.map_err(|error| {
        Failure::failed(format!("the editor {program} cannot be started: {error}"))
            .hint("set EDITOR to one that you have")
    })?;
    if status.success() { Ok(()) } else { Err(kept(Failure::failed(format!("the editor ended with {status}")), path)) }
}

fn kept(failure: Failure, path: &Path) -> Failure {
    failure.and_hint(format!("what you wrote is in {}", path.display()))
}

fn read(text: &str) -> Result<Map> {
    let located = yaml::read(text).map_err(|error| Failure::failed(format!("line {}: {error}", error.line)))?;
    match located.value {
        Value::Object(body) => Ok(body),
        _ => Err(Failure::failed("a document is an object")),
    }
}

fn commented(text: &str) -> String {
    text.lines().flat_map(|line| ["# ", line, "\n"]).collect()
}

/// The text without the comments at its top.
fn uncommented(text: &str) -> String {
    text.lines().skip_while(|line| line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}
