//! A connection to a SQLite file, with the functions that the shared statements of `src/sql` call.
//!
//! SQLite is a library: it answers on the calling thread. A driver that gives it a thread of its own sends a message there and
//! back for every statement and every row, which took longer than the commit itself. So the functions are asynchronous, as
//! those of a database over a network must be, but wait for nothing except the disk.

use std::{borrow::Cow, iter, sync::Arc};

use rusqlite::{
    CachedStatement, Row as DriverRow, ToSql,
    types::{ToSqlOutput, Value, ValueRef},
};

use crate::{StoreError, chunks::run_blocking};

/// A connection to a file.
#[derive(Debug)]
pub(super) struct SqliteConnection(rusqlite::Connection);

/// A statement with its parameters.
pub(super) struct SqliteQuery<'q> {
    text: &'static str,
    parameters: Vec<Parameter<'q>>,
}

/// A row of a result.
pub(super) struct SqliteRow {
    names: Arc<[Box<str>]>,
    values: Vec<Value>,
}

/// The result of a statement that returns no rows.
pub(super) struct ExecuteResult(usize);

impl SqliteConnection {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        Self(connection)
    }

    /// Runs statements that return no rows, on this thread.
    pub(super) fn run(&mut self, statements: &str) -> Result<(), StoreError> {
        Ok(self.0.execute_batch(statements)?)
    }

    /// A prepared statement, from the cache or new.
    pub(super) fn statement(&self, text: &str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.0.prepare_cached(text)?)
    }

    /// Closes the connection.
    pub(super) fn close(self) -> Result<(), StoreError> {
        Ok(self.0.close().map_err(|(_, error)| error)?)
    }
}

/// Runs statements that return no rows.
pub(super) async fn run(connection: &mut SqliteConnection, statements: &'static str) -> Result<(), StoreError> {
    run_blocking(|| connection.run(statements))
}

/// A statement without parameters yet.
pub(super) fn query<'q>(text: &'static str) -> SqliteQuery<'q> {
    SqliteQuery { text, parameters: Vec::new() }
}

impl<'q> SqliteQuery<'q> {
    /// Adds the next parameter.
    pub(super) fn bind(mut self, parameter: impl Into<Parameter<'q>>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    pub(super) async fn execute(self, connection: &mut SqliteConnection) -> Result<ExecuteResult, StoreError> {
        run_blocking(|| self.run(connection)).map(ExecuteResult)
    }

    /// Executes it on this thread; returns how many rows it changed.
    pub(super) fn run(self, connection: &SqliteConnection) -> Result<usize, StoreError> {
        Ok(self.prepared(connection)?.raw_execute()?)
    }

    pub(super) async fn fetch_all(self, connection: &mut SqliteConnection) -> Result<Vec<SqliteRow>, StoreError> {
        run_blocking(|| self.read(connection, |rows| rows.collect()))
    }

    pub(super) async fn fetch_optional(
        self,
        connection: &mut SqliteConnection,
    ) -> Result<Option<SqliteRow>, StoreError> {
        Ok(self.fetch_all(connection).await?.into_iter().next())
    }

    pub(super) async fn fetch_one(self, connection: &mut SqliteConnection) -> Result<SqliteRow, StoreError> {
        let missing = || StoreError::Corrupt("a row is missing".to_owned());
        self.fetch_optional(connection).await?.ok_or_else(missing)
    }

    /// Passes the rows to a function as they are found, on this thread.
    pub(super) fn read<T>(
        self,
        connection: &SqliteConnection,
        read: impl FnOnce(&mut dyn Iterator<Item = Result<SqliteRow, StoreError>>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut statement = self.prepared(connection)?;
        let names: Arc<[_]> = statement.column_names().map(Box::from).collect();
        let mut rows = statement.raw_query();
        read(&mut iter::from_fn(|| {
            rows.next().map_err(StoreError::from).transpose().map(|row| SqliteRow::copy(row?, &names))
        }))
    }

    /// The statement with its parameters bound; they are named `$1` and so on.
    pub(super) fn prepared(self, connection: &SqliteConnection) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = connection.statement(self.text)?;
        for at in 1..=statement.parameter_count() {
            let number = statement.parameter_name(at).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let parameter = number.and_then(|number| self.parameters.get(number.checked_sub(1)?));
            statement.raw_bind_parameter(at, parameter)?;
        }
        Ok(statement)
    }
}

impl SqliteRow {
    fn copy(row: &DriverRow<'_>, names: &Arc<[Box<str>]>) -> Result<Self, StoreError> {
        let values = (0..names.len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        Ok(Self { names: names.clone(), values })
    }
}

impl ExecuteResult {
    pub(super) fn rows_affected(&self) -> usize {
        self.0
    }
}

/// The value of a column.
pub(super) fn column<'r, T: FromColumn<'r>>(row: &'r SqliteRow, name: &str) -> Result<T, StoreError> {
    let value = row.names.iter().position(|it| **it == *name).and_then(|at| row.values.get(at));
    let wrong = || StoreError::Corrupt(format!("the column {name} is missing or has a value of another type"));
    value.and_then(T::from_column).ok_or_else(wrong)
}

/// A type that a column can be read as.
pub(super) trait FromColumn<'r>: Sized {
    /// None if the value has another type.
    fn from_column(value: &'r Value) -> Option<Self>;
}

impl FromColumn<'_> for i64 {
    fn from_column(value: &Value) -> Option<Self> {
        if let Value::Integer(number) = value { Some(*number) } else { None }
    }
}

impl<'r> FromColumn<'r> for &'r str {
    fn from_column(value: &'r Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl FromColumn<'_> for String {
    fn from_column(value: &Value) -> Option<Self> {
        <&str>::from_column(value).map(ToOwned::to_owned)
    }
}

impl<'r> FromColumn<'r> for &'r [u8] {
    fn from_column(value: &'r Value) -> Option<Self> {
        if let Value::Blob(bytes) = value { Some(bytes) } else { None }
    }
}

impl<'r, T: FromColumn<'r>> FromColumn<'r> for Option<T> {
    fn from_column(value: &'r Value) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { T::from_column(value).map(Some) }
    }
}

/// A parameter of a statement.
pub(super) enum Parameter<'q> {
    Null,
    Number(i64),
    Text(Cow<'q, str>),
    Bytes(&'q [u8]),
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<i64> for Parameter<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<'q> From<&'q str> for Parameter<'q> {
    fn from(text: &'q str) -> Self {
        Self::Text(text.into())
    }
}

impl<'q> From<&'q String> for Parameter<'q> {
    fn from(text: &'q String) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Parameter<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'q> From<Cow<'q, str>> for Parameter<'q> {
    fn from(text: Cow<'q, str>) -> Self {
        Self::Text(text)
    }
}

impl<'q> From<&'q [u8]> for Parameter<'q> {
    fn from(bytes: &'q [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'q> From<&'q Option<String>> for Parameter<'q> {
    fn from(text: &'q Option<String>) -> Self {
        text.as_deref().into()
    }
}

impl<'q, T: Into<Parameter<'q>>> From<Option<T>> for Parameter<'q> {
    fn from(parameter: Option<T>) -> Self {
        parameter.map_or(Self::Null, Into::into)
    }
}
