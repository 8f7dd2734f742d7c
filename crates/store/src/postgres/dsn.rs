//! The address of a database: `postgres://user:password@host:5432/name?sslmode=verify-full`.

use std::{fmt, str::FromStr};

use sqlx::postgres::PgConnectOptions;

use crate::sqlite::InvalidDsn;

/// How to reach the database and log in. Its `Debug` text has no password.
#[derive(Clone)]
pub struct PostgresDsn {
    pub(super) options: PgConnectOptions,
}

impl PostgresDsn {
    /// Whether a text has the scheme of such an address.
    #[must_use]
    pub fn has_scheme(text: &str) -> bool {
        let scheme = text.split(':').next().unwrap_or_default();
        ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    }
}

impl fmt::Debug for PostgresDsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (options, database) = (&self.options, self.options.get_database().unwrap_or_default());
        write!(f, "postgres://{}@{}:{}/{database}", options.get_username(), options.get_host(), options.get_port())
    }
}

impl FromStr for PostgresDsn {
    type Err = InvalidDsn;

    fn from_str(text: &str) -> Result<Self, InvalidDsn> {
        if !Self::has_scheme(text) {
            return Err(InvalidDsn("the address of a database starts with \"postgres://\"".to_owned()));
        }
        let options = PgConnectOptions::from_str(text).map_err(|error| {
            // The error may be shown; the text, which holds the password, may not.
            let what = error.to_string().replace('\n', " ");
            InvalidDsn(if what.contains(text) { "it cannot be read".to_owned() } else { what })
        })?;
        // No statement is prepared for later, and poolers do not support the setting `extra_float_digits`.
        let options = options.statement_cache_capacity(0).extra_float_digits(None);
        let named = options.get_application_name().is_some();
        Ok(Self { options: if named { options } else { options.application_name("flux-resourceset") } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_errors_show_the_password() {
        let dsn: PostgresDsn = "postgres://me:secret@db.example:6432/fleet?sslmode=require".parse().unwrap();
        assert_eq!(format!("{dsn:?}"), "postgres://me@db.example:6432/fleet");
        for bad in ["mysql://me:secret@db/fleet", "postgres://me:secret@db:port/fleet", "postgres://me:secret@:1:2/x"] {
            let error = bad.parse::<PostgresDsn>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!("postgres://db/fleet?sslmode=maybe".parse::<PostgresDsn>().is_err());
    }
}
