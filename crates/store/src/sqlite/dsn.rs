//! The address of a SQLite file: `sqlite://data/flux-resourceset.db?mode=rwc`.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use percent_encoding::percent_decode_str;

/// A text that is not a valid database address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDsn(pub(crate) String);

/// The path of the file and how to open it.
#[derive(Clone, Debug)]
pub struct SqliteDsn {
    path: PathBuf,
    pub(super) mode: OpenMode,
}

/// The `mode` of the address, as SQLite names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// `ro`: for reading only.
    Read,
    /// `rw`, the default: the file must exist.
    ReadWrite,
    /// `rwc`: the file and its folder are created if they are missing.
    Create,
}

impl SqliteDsn {
    /// Whether the file is opened for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.mode == OpenMode::Read
    }

    /// The same file, for reading only.
    #[must_use]
    pub fn for_reading(self) -> Self {
        Self { mode: OpenMode::Read, ..self }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for SqliteDsn {
    type Err = InvalidDsn;

    fn from_str(text: &str) -> Result<Self, InvalidDsn> {
        let Some(rest) = text.strip_prefix("sqlite:") else {
            return Err(InvalidDsn("the address of a SQLite file starts with \"sqlite:\"".to_owned()));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = percent_decode_str(path).decode_utf8().map_err(|error| InvalidDsn(error.to_string()))?;
        let mut mode = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("mode", value)) => mode = Some(value),
                _ => return Err(InvalidDsn(format!("\"{pair}\" is unknown: the address of a file has a mode only"))),
            }
        }
        let mode = match mode {
            Some("ro") => OpenMode::Read,
            Some("rwc") => OpenMode::Create,
            None | Some("rw") => OpenMode::ReadWrite,
            Some(other) => return Err(InvalidDsn(format!("the mode \"{other}\" is not ro, rw or rwc"))),
        };
        if path.trim_matches('/').is_empty() || path.contains(":memory:") {
            return Err(InvalidDsn("the address names no file".to_owned()));
        }
        Ok(Self { path: path.into_owned().into(), mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_and_the_file_are_read() {
        let dsn: SqliteDsn = "sqlite://data/flux-resourceset.db?mode=rwc".parse().unwrap();
        assert_eq!((dsn.path(), dsn.mode), (Path::new("data/flux-resourceset.db"), OpenMode::Create));
        let dsn: SqliteDsn = "sqlite:///var/lib/x.db?mode=ro".parse().unwrap();
        assert_eq!((dsn.path(), dsn.mode), (Path::new("/var/lib/x.db"), OpenMode::Read));
        assert_eq!("sqlite:x.db".parse::<SqliteDsn>().unwrap().mode, OpenMode::ReadWrite);
    }

    #[test]
    fn an_address_without_a_file_is_refused() {
        for text in
            ["", "mysql://x", "sqlite:", "sqlite://", "sqlite::memory:", "sqlite://x?mode=memory", "sqlite://x?a=b"]
        {
            assert!(text.parse::<SqliteDsn>().is_err(), "{text}");
        }
    }
}
