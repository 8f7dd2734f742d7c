//! `export`: the fleet as files for Git, one a document, in a stable order. Applying an export changes nothing.

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
    failure::{Failure, Result},
    files::{self, Privacy},
    output,
    plan::{counted, shortened},
    session::Session,
};

#[derive(Args)]
pub(crate) struct Export {
    /// Only documents of this type; may stand several times
    #[arg(value_name = "TYPE", add = completion::of(completion::types))]
    types: Vec<String>,
    /// Where to write them, as TYPE/ID.yaml; without it, all are printed
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Remove files of documents that are not there any more
    #[arg(long, requires = "output_dir")]
    prune: bool,
    /// The fleet as it was at this revision
    #[arg(long)]
    revision: Option<u64>,
}

impl Export {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let types: Vec<&TypeDescription> = if self.types.is_empty() {
            session.types()?.iter().collect()
        } else {
            self.types.iter().map(|name| session.ty(name)).collect::<Result<_>>()?
        };
        // All of it is as it was at one revision, whatever is changed meanwhile.
        let revision = match self.revision {
            Some(revision) => revision,
            None => session.client.ready()?.revision.0,
        };
        let query = [("revision".to_owned(), revision.to_string())];
        let mut count = 0;
        if let Some(ty) = types.iter().find(|ty| ty.field("kind").is_some()) {
            let message = format!("a {} has a field of its own named kind: no file can hold it", ty.kind);
            return Err(Failure::failed(message).hint("name the types to export, without this one"));
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
        session.say(&format!("exported {} of revision {revision}", counted(count, "document")));
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, session: &Session, folder: &Path, ty: &TypeDescription, documents: Vec<Map>) -> Result<()> {
        let failed = |path: &Path, error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let bar = session.counting(&ty.plural, documents.len() as u64);
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
            if !written.contains(&path) && is_ours(&path, ty) {
                stale.push(path);
            }
        }
        stale.sort();
        if self.prune {
            stale.iter().try_for_each(|path| fs::remove_file(path).map_err(|error| failed(path, error)))?;
        }
        if !stale.is_empty() {
            let what = if self.prune { "removed" } else { "left as they are (--prune removes them)" };
            let names: Vec<_> = stale.iter().map(|path| path.display().to_string()).collect();
            session.say(&format!("files of documents that are not in the fleet, {what}: {}", shortened(&names, 5)));
        }
        Ok(())
    }
}

fn text(ty: &TypeDescription, document: Map) -> Result<String> {
    let mut body = Map::from_iter([("kind".to_owned(), json!(ty.kind))]);
    body.extend(document);
    output::as_yaml(&Value::Object(body))
}

/// Whether a file is one that an export has written: a document of the type, under the name of its id.
fn is_ours(path: &Path, ty: &TypeDescription) -> bool {
    let document = fs::read_to_string(path).ok().and_then(|text| yaml::read(&text).ok()).map(|read| read.value);
    document.is_some_and(|document| {
        let name = document["id"].as_str().map(file_name);
        document["kind"] == ty.kind && name.as_deref() == path.file_name().and_then(|name| name.to_str())
    })
}

/// A name for every file system: ids that differ only in case must not share a file, and a colon is not for all.
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
    fn ids_that_differ_have_files_that_differ_on_every_file_system() {
        assert_eq!(file_name("platform-admins"), "platform-admins.yaml");
        assert_eq!(file_name("system:Admins"), "system%3A%41dmins.yaml");
    }
}
