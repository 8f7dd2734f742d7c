//! `export`: writes the fleet to files for Git, one per document, in a stable order. Applying an export changes
//! nothing.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::TypeDescription;
use clap::Args;
use model::{Map, Value, yaml};
use serde_json::json;

use crate::{
    completion, documents,
    failure::{CliError, Result},
    files::{self, Privacy},
    output,
    plan::{counted, shortened},
    session::Session,
};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// Export only documents of these resource types [default: all]
    #[arg(value_name = "TYPE", add = completion::completer(completion::types))]
    types: Vec<String>,
    /// Folder for the files, TYPE/ID.yaml [default: print all documents]
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Delete exported files whose documents do not exist any more
    #[arg(long, requires = "output_dir")]
    prune: bool,
    /// Export the fleet as it was at this revision
    #[arg(long)]
    revision: Option<u64>,
}

impl ExportArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let types: Vec<&TypeDescription> = if self.types.is_empty() {
            session.types()?.iter().collect()
        } else {
            self.types.iter().map(|name| session.resource_type(name)).collect::<Result<_>>()?
        };
        // All documents come from one revision, even if the fleet changes meanwhile.
        let revision = match self.revision {
            Some(revision) => revision,
            None => session.client.ready()?.revision.0,
        };
        let query = [("revision".to_owned(), revision.to_string())];
        let mut count = 0;
        if let Some(ty) = types.iter().find(|ty| ty.field("kind").is_some()) {
            let message =
                format!("a {} cannot be exported: it has a field named kind, which files use for the type", ty.kind);
            return Err(CliError::failed(message).hint("list the types to export, without this one"));
        }
        for ty in types {
            let documents = session.client.list(ty, &query)?;
            count += documents.len();
            match &self.output_dir {
                Some(folder) => self.write(session, &folder.join(&ty.plural), ty, documents)?,
                None => documents
                    .into_iter()
                    .try_for_each(|document| output::print(&format!("---\n{}", text(ty, document)?)))?,
            }
        }
        session.message(&format!("exported {} of revision {revision}", counted(count, "document")));
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, session: &Session, folder: &Path, ty: &TypeDescription, documents: Vec<Map>) -> Result<()> {
        let failed = |path: &Path, error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let bar = session.progress_bar(&ty.plural, documents.len() as u64);
        let mut written = BTreeSet::new();
        for document in documents {
            let path = folder.join(file_name(documents::id(&document)));
            files::write(&path, &text(ty, document)?, Privacy::Public)?;
            written.insert(path);
            bar.inc(1);
        }
        bar.finish_and_clear();
        let mut stale = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
            let path = entry.map_err(|error| failed(folder, error))?.path();
            if !written.contains(&path) && is_exported(&path, ty) {
                stale.push(path);
            }
        }
        stale.sort();
        if self.prune {
            stale.iter().try_for_each(|path| fs::remove_file(path).map_err(|error| failed(path, error)))?;
        }
        if !stale.is_empty() {
            let what = if self.prune { "deleted" } else { "kept (--prune deletes them)" };
            let names: Vec<_> = stale.iter().map(|path| path.display().to_string()).collect();
            session.message(&format!("files of documents that do not exist, {what}: {}", shortened(&names, 5)));
        }
        Ok(())
    }
}

fn text(ty: &TypeDescription, document: Map) -> Result<String> {
    let mut body = Map::from_iter([("kind".to_owned(), json!(ty.kind))]);
    body.extend(document);
    output::as_yaml(&Value::Object(body))
}

/// Whether an export wrote the file: it contains a document of the type, and its name is that of the id.
fn is_exported(path: &Path, ty: &TypeDescription) -> bool {
    let document = fs::read_to_string(path).ok().and_then(|text| yaml::read(&text).ok()).map(|read| read.value);
    document.is_some_and(|document| {
        let name = document["id"].as_str().map(file_name);
        document["kind"] == ty.kind && name.as_deref() == path.file_name().and_then(|name| name.to_str())
    })
}

/// A file name for every file system: ids that differ only in case get different files, and colons are escaped.
fn file_name(id: &str) -> String {
    let escaped = id
        .chars()
        .map(|c| if c == ':' || c.is_ascii_uppercase() { format!("%{:02X}", u32::from(c)) } else { c.to_string() });
    format!("{}.yaml", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ids_have_different_file_names_on_every_file_system() {
        assert_eq!(file_name("platform-admins"), "platform-admins.yaml");
        assert_eq!(file_name("system:Admins"), "system%3A%41dmins.yaml");
    }
}
