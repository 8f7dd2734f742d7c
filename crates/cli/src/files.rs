//! Documents from files: YAML or JSON, many a file, each its body plus `kind`; the format of a seed file is understood
//! too. Every document remembers where it came from, because the server's objections should name the line.

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
    failure::{Failure, Result},
    plan::counted,
};

/// A document of a file.
pub(crate) struct Found<'a> {
    pub(crate) ty: &'a TypeDescription,
    pub(crate) id: String,
    pub(crate) body: Map,
    pub(crate) origin: Origin,
}

impl Found<'_> {
    /// `kind/id`
    pub(crate) fn name(&self) -> String {
        self.ty.name(&self.id)
    }
}

/// Where a document stands.
#[derive(Clone)]
pub(crate) struct Origin {
    file: Rc<str>,
    /// Which document of the file, counted from one; none where the file has only this.
    number: Option<usize>,
    /// Where in that it begins.
    base: String,
    lines: Option<Rc<Located>>,
}

impl Origin {
    /// The place of a field: file and line or, in JSON, file and document.
    pub(crate) fn place(&self, pointer: &str) -> String {
        let pointer = format!("{}{pointer}", self.base);
        match (&self.lines, self.number) {
            (Some(lines), _) => format!("{}:{}", self.file, lines.line(&pointer)),
            (None, Some(number)) => format!("{}, document {number}{}", self.file, self.inside()),
            (None, None) => format!("{}{}", self.file, self.inside()),
        }
    }

    /// Which part of a list or of a seed it is.
    fn inside(&self) -> String {
        if self.base.is_empty() { String::new() } else { format!(" at {}", self.base) }
    }

    fn inner(&self, base: String) -> Self {
        Self { base, ..self.clone() }
    }
}

/// Reads files and the files of folders; `-` is standard input. All that is wrong is told at once.
pub(crate) fn read<'a>(paths: &[PathBuf], types: &'a Types, each: impl Fn(u64, u64)) -> Result<Vec<Found<'a>>> {
    let mut reader = Reader { types, found: Vec::new(), wrong: Vec::new() };
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    for (at, file) in files.iter().enumerate() {
        each(at as u64, files.len() as u64);
        reader.file(file)?;
    }
    reader.refuse_twins();
    let Reader { found, wrong, .. } = reader;
    if !wrong.is_empty() {
        let hint = "a document is its body plus kind, as in: kind: namespace";
        let message = format!("{} cannot be used", counted(wrong.len(), "document"));
        return Err(Failure::failed(message).details(wrong).hint(hint));
    }
    if found.is_empty() {
        return Err(Failure::failed("there is no document in what was given with -f"));
    }
    Ok(found)
}

/// The files of a path, in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    if path == Path::new("-") || !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    entries.sort();
    for entry in entries {
        let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let end = entry.extension().map(OsStr::to_ascii_lowercase);
        let known = end.is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if !hidden && (known || entry.is_dir()) {
            collect(&entry, files)?;
        }
    }
    Ok(())
}

struct Reader<'a> {
    types: &'a Types,
    found: Vec<Found<'a>>,
    wrong: Vec<String>,
}

impl<'a> Reader<'a> {
    fn file(&mut self, path: &Path) -> Result<()> {
        let mut text = String::new();
        let read = if path == Path::new("-") {
            io::stdin().read_to_string(&mut text)
        } else {
            fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
        };
        let file: Rc<str> = if path == Path::new("-") { "stdin".into() } else { path.display().to_string().into() };
        read.map_err(|error| Failure::failed(format!("{file}: {error}")))?;
        match parse(&text) {
            Err((line, message)) => self.wrong.push(format!("{file}:{line}: {message}")),
            // Where files say what should be there, one that was emptied must not read as "nothing".
            Ok(documents) if documents.iter().all(|(value, _)| value.is_null()) => {
                self.wrong.push(format!("{file}: there is no document in it"));
            }
            Ok(documents) => {
                let several = documents.len() > 1;
                for (at, (value, lines)) in documents.into_iter().enumerate() {
                    let number = several.then_some(at + 1);
                    self.value(value, &Origin { file: file.clone(), number, base: String::new(), lines });
                }
            }
        }
        Ok(())
    }

    /// A document, a list of documents, or a seed.
    fn value(&mut self, value: Value, origin: &Origin) {
        match value {
            // An empty document between two separators says nothing.
            Value::Null => {}
            Value::Array(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    self.value(item, &origin.inner(format!("{}/{at}", origin.base)));
                }
            }
            Value::Object(mut fields) => match fields.shift_remove("kind") {
                Some(Value::String(kind)) => match self.types.by_name(&kind) {
                    Some(ty) => self.document(ty, fields, origin.clone()),
                    None => self.refuse(origin, "/kind", format!("there is no resource type \"{kind}\"")),
                },
                Some(_) => self.refuse(origin, "/kind", "kind is the name of a resource type".to_owned()),
                None => self.seed(fields, origin),
            },
            _ => self.refuse(origin, "", "a document is an object".to_owned()),
        }
    }

    /// An object with a list for each type.
    fn seed(&mut self, lists: Map, origin: &Origin) {
        let is_seed = lists.iter().all(|(name, list)| list.is_array() && self.types.by_name(name).is_some());
        if lists.is_empty() || !is_seed {
            self.refuse(origin, "", "it has no kind".to_owned());
            return;
        }
        for (name, list) in lists {
            let (Some(ty), Value::Array(documents)) = (self.types.by_name(&name), list) else { continue };
            for (at, document) in documents.into_iter().enumerate() {
                let origin = origin.inner(format!("{}/{at}", yaml::child(&origin.base, &name)));
                match document {
                    Value::Object(fields) => self.document(ty, fields, origin),
                    _ => self.refuse(&origin, "", "a document is an object".to_owned()),
                }
            }
        }
    }

    fn document(&mut self, ty: &'a TypeDescription, fields: Map, origin: Origin) {
        match model::with_id_first(fields, ty.is_cluster()) {
            Err(FieldError { pointer, message, .. }) => self.refuse(&origin, &pointer, message),
            Ok(body) => match body.get("id").and_then(Value::as_str) {
                Some(id) if !id.is_empty() => {
                    let id = id.to_owned();
                    self.found.push(Found { ty, id, body, origin });
                }
                _ => self.refuse(&origin, "/id", format!("a {} needs an id", ty.kind)),
            },
        }
    }

    fn refuse(&mut self, origin: &Origin, pointer: &str, message: String) {
        self.wrong.push(format!("{}: {message}", origin.place(pointer)));
    }

    /// One of two documents with one name would be lost.
    fn refuse_twins(&mut self) {
        let mut known: BTreeMap<String, &Origin> = BTreeMap::new();
        for found in &self.found {
            if let Some(other) = known.insert(found.name(), &found.origin) {
                let (here, there) = (found.origin.place(""), other.place(""));
                self.wrong.push(format!("{here}: {} is also in {there}", found.name()));
            }
        }
    }
}

type Parsed = Vec<(Value, Option<Rc<Located>>)>;

/// The values of a text: JSON, one after the other, or else YAML, which remembers its lines.
fn parse(text: &str) -> Result<Parsed, (usize, String)> {
    if text.trim_start().starts_with(['{', '[']) {
        let values: Result<Vec<Unambiguous>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
        match values {
            Ok(values) => return Ok(values.into_iter().map(|Unambiguous(value)| (value, None)).collect()),
            // What is JSON and says something twice is not better YAML.
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

/// Who may read a file that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privacy {
    Public,
    Secret,
}

/// Writes a file, with the folders that lead to it; one that says it already keeps its time. A secret is written wholly or
/// not at all, and nobody else can read it.
pub(crate) fn write(path: &Path, text: &str, privacy: Privacy) -> Result<()> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
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
