//! Reads documents from files: YAML or JSON, several per file, each a body with `kind`, or in the format of a seed
//! file. Each document keeps its file and line, so that errors of the server can name them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    rc::Rc,
};

use api::TypeDescription;
use client::Types;
use model::{
    FieldError, Map, Unambiguous, Value,
    yaml::{self, Located},
};

use crate::{
    failure::{CliError, Result},
    plan::counted,
};

/// A document read from a file.
pub(crate) struct FileDocument<'a> {
    pub(crate) ty: &'a TypeDescription,
    pub(crate) id: String,
    pub(crate) body: Map,
    pub(crate) origin: FileLocation,
}

impl FileDocument<'_> {
    /// `kind/id`
    pub(crate) fn name(&self) -> String {
        self.ty.name(&self.id)
    }
}

/// The position of a document: file, line or number, and JSON pointer.
#[derive(Clone)]
pub(crate) struct FileLocation {
    file: Rc<str>,
    /// The number of the document in the file, from 1; none if it is the only one.
    number: Option<usize>,
    /// The JSON pointer of the document within a list or a seed.
    base: String,
    lines: Option<Rc<Located>>,
}

impl FileLocation {
    /// The position of a field: file and line or, in JSON, file and document.
    pub(crate) fn position(&self, pointer: &str) -> String {
        let pointer = format!("{}{pointer}", self.base);
        match (&self.lines, self.number) {
            (Some(lines), _) => format!("{}:{}", self.file, lines.line(&pointer)),
            (None, Some(number)) => format!("{}, document {number}{}", self.file, self.suffix()),
            (None, None) => format!("{}{}", self.file, self.suffix()),
        }
    }

    /// The pointer within a list or a seed, as text.
    fn suffix(&self) -> String {
        if self.base.is_empty() { String::new() } else { format!(" at {}", self.base) }
    }

    fn at_pointer(&self, base: String) -> Self {
        Self { base, ..self.clone() }
    }
}

/// Reads files and the files of folders; `-` is standard input. All errors are reported together.
pub(crate) fn read<'a>(
    paths: &[PathBuf],
    types: &'a Types,
    progress: impl Fn(u64, u64),
) -> Result<Vec<FileDocument<'a>>> {
    let mut reader = FileReader { types, documents: Vec::new(), errors: Vec::new() };
    let mut files = Vec::new();
    for path in paths {
        list_files(path, &mut files)?;
    }
    for (at, file) in files.iter().enumerate() {
        progress(at as u64, files.len() as u64);
        reader.file(file)?;
    }
    reader.refuse_duplicates();
    let FileReader { documents, errors, .. } = reader;
    if !errors.is_empty() {
        let hint = "each document needs a kind, for example: kind: namespace";
        let message = format!("{} cannot be used", counted(errors.len(), "document"));
        return Err(CliError::failed(message).details(errors).hint(hint));
    }
    if documents.is_empty() {
        return Err(CliError::failed("the files given with -f contain no document")
            .hint("in folders, only files that end in .yaml, .yml or .json are read"));
    }
    Ok(documents)
}

/// The files of a path, sorted by name.
fn list_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
    if path == Path::new("-") || !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    entries.sort();
    for entry in entries {
        let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let extension = entry.extension().map(OsStr::to_ascii_lowercase);
        let is_read =
            extension.is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if !hidden && (is_read || entry.is_dir()) {
            list_files(&entry, files)?;
        }
    }
    Ok(())
}

struct FileReader<'a> {
    types: &'a Types,
    documents: Vec<FileDocument<'a>>,
    errors: Vec<String>,
}

impl<'a> FileReader<'a> {
    fn file(&mut self, path: &Path) -> Result<()> {
        let mut text = String::new();
        let read = if path == Path::new("-") {
            io::stdin().read_to_string(&mut text)
        } else {
            fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
        };
        let file: Rc<str> = if path == Path::new("-") { "stdin".into() } else { path.display().to_string().into() };
        read.map_err(|error| CliError::failed(format!("{file}: {error}")))?;
        match parse(&text) {
            Err((line, message)) => self.errors.push(format!("{file}:{line}: {message}")),
            // An emptied file must not mean "no documents": with --prune that would delete them.
            Ok(documents) if documents.iter().all(|(value, _)| value.is_null()) => {
                self.errors.push(format!("{file}: the file contains no document"));
            }
            Ok(documents) => {
                let several = documents.len() > 1;
                for (at, (value, lines)) in documents.into_iter().enumerate() {
                    let number = several.then_some(at + 1);
                    self.value(value, &FileLocation { file: file.clone(), number, base: String::new(), lines });
                }
            }
        }
        Ok(())
    }

    /// A document, a list of documents, or a seed.
    fn value(&mut self, value: Value, origin: &FileLocation) {
        match value {
            // An empty document between two separators is skipped.
            Value::Null => {}
            Value::Array(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    self.value(item, &origin.at_pointer(format!("{}/{at}", origin.base)));
                }
            }
            Value::Object(mut fields) => match fields.shift_remove("kind") {
                Some(Value::String(kind)) => match self.types.by_name(&kind) {
                    Some(ty) => self.document(ty, fields, origin.clone()),
                    None => self.refuse(origin, "/kind", format!("there is no resource type \"{kind}\"")),
                },
                Some(_) => self.refuse(origin, "/kind", "kind must be the name of a resource type".to_owned()),
                None => self.seed(fields, origin),
            },
            _ => self.refuse(origin, "", "a document must be an object".to_owned()),
        }
    }

    /// A seed: an object with a list for each type.
    fn seed(&mut self, lists: Map, origin: &FileLocation) {
        let is_seed = lists.iter().all(|(name, list)| list.is_array() && self.types.by_name(name).is_some());
        if lists.is_empty() || !is_seed {
            self.refuse(origin, "", "the document has no kind".to_owned());
            return;
        }
        for (name, list) in lists {
            let (Some(ty), Value::Array(documents)) = (self.types.by_name(&name), list) else { continue };
            for (at, document) in documents.into_iter().enumerate() {
                let origin = origin.at_pointer(format!("{}/{at}", yaml::child(&origin.base, &name)));
                match document {
                    Value::Object(fields) => self.document(ty, fields, origin),
                    _ => self.refuse(&origin, "", "a document must be an object".to_owned()),
                }
            }
        }
    }

    fn document(&mut self, ty: &'a TypeDescription, fields: Map, origin: FileLocation) {
        match model::with_id_first(fields, ty.is_cluster()) {
            Err(FieldError { pointer, message, .. }) => self.refuse(&origin, &pointer, message),
            Ok(body) => match body.get("id").and_then(Value::as_str) {
                Some(id) if !id.is_empty() => {
                    let id = id.to_owned();
                    self.documents.push(FileDocument { ty, id, body, origin });
                }
                _ => self.refuse(&origin, "/id", format!("a {} needs an id", ty.kind)),
            },
        }
    }

    fn refuse(&mut self, origin: &FileLocation, pointer: &str, message: String) {
        self.errors.push(format!("{}: {message}", origin.position(pointer)));
    }

    /// Refuses two documents with the same kind and id, since one of them would be lost.
    fn refuse_duplicates(&mut self) {
        let mut known: BTreeMap<String, &FileLocation> = BTreeMap::new();
        for document in &self.documents {
            if let Some(other) = known.insert(document.name(), &document.origin) {
                let (here, there) = (document.origin.position(""), other.position(""));
                self.errors.push(format!("{here}: {} is also in {there}", document.name()));
            }
        }
    }
}

type ParsedDocuments = Vec<(Value, Option<Rc<Located>>)>;

/// The documents of a text: JSON values one after the other, or else YAML with line numbers.
fn parse(text: &str) -> Result<ParsedDocuments, (usize, String)> {
    if text.trim_start().starts_with(['{', '[']) {
        let values: Result<Vec<Unambiguous>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
        match values {
            Ok(values) => return Ok(values.into_iter().map(|Unambiguous(value)| (value, None)).collect()),
            // JSON with a repeated key must not be read again as YAML.
            Err(error) if error.is_data() => return Err((error.line(), error.to_string())),
            Err(_) => {}
        }
    }
    let documents = yaml::read_all(text).map_err(|error| (error.line, error.message))?;
    let located = |document: Located| {
        let document = Rc::new(document);
        (document.value.clone(), Some(document))
    };
    Ok(documents.into_iter().map(located).collect())
}

/// Who may read a written file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privacy {
    Public,
    Secret,
}

/// Writes a file and creates its folders. A file with the same content is not touched. A secret is written atomically,
/// readable only by its owner.
pub(crate) fn write(path: &Path, text: &str, privacy: Privacy) -> Result<()> {
    let failed = |error: io::Error| CliError::failed(format!("{}: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    match privacy {
        Privacy::Public if fs::read_to_string(path).is_ok_and(|known| known == text) => Ok(()),
        Privacy::Public => fs::write(path, text).map_err(failed),
        Privacy::Secret => {
            let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            file.persist(path).map(drop).map_err(|error| failed(error.error))
        }
    }
}
