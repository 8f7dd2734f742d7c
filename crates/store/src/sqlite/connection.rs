//! A connection to a file, and the words in which the text that all databases share speaks to it.
//!
//! SQLite is a library: what is asked is answered on the thread that asks. A driver that gives it a thread of its own sends
//! a message there and back for every statement and every row, which took longer than the commit itself. So the words are
//! asynchronous, as those of a database over a network must be, and what is behind them waits for nobody but the disk.

use std::{borrow::Cow, iter, sync::Arc};

use rusqlite::{
    CachedStatement, Row as Found, ToSql,
    types::{ToSqlOutput, Value, ValueRef},
};

use crate::{StoreError, pieces::aside};

/// A connection to a file.
#[derive(Debug)]
pub(super) struct Connection(rusqlite::Connection);

/// A statement with its parameters.
pub(super) struct Query<'q> {
    text: &'static str,
    parameters: Vec<Parameter<'q>>,
}

/// A row that was found.
pub(super) struct Row {
    names: Arc<[Box<str>]>,
    values: Vec<Value>,
}

/// What a statement did.
pub(super) struct Done(usize);

impl Connection {
    pub(super) fn new(connection: rusqlite::Connection) -> Self {
        Self(connection)
    }

    /// Runs statements that answer nothing, on this thread.
    pub(super) fn run(&mut self, statements: &str) -> Result<(), StoreError> {
        Ok(self.0.execute_batch(statements)?)
    }

    /// A statement that is kept for the next time.
    pub(super) fn statement(&self, text: &str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.0.prepare_cached(text)?)
    }

    /// Gives it up.
    pub(super) fn close(self) -> Result<(), StoreError> {
        Ok(self.0.close().map_err(|(_, error)| error)?)
    }
}

/// Runs statements that answer nothing.
pub(super) async fn run(connection: &mut Connection, statements: &'static str) -> Result<(), StoreError> {
    aside(|| connection.run(statements))
}

/// Asks for something.
pub(super) fn query<'q>(text: &'static str) -> Query<'q> {
    Query { text, parameters: Vec::new() }
}

impl<'q> Query<'q> {
    /// The next parameter.
    pub(super) fn bind(mut self, parameter: impl Into<Parameter<'q>>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    pub(super) async fn execute(self, connection: &mut Connection) -> Result<Done, StoreError> {
        aside(|| self.run(connection)).map(Done)
    }

    /// Does it on this thread; says how many rows it was about.
    pub(super) fn run(self, connection: &Connection) -> Result<usize, StoreError> {
        Ok(self.prepared(connection)?.raw_execute()?)
    }

    pub(super) async fn fetch_all(self, connection: &mut Connection) -> Result<Vec<Row>, StoreError> {
        aside(|| self.read(connection, |rows| rows.collect()))
    }

    pub(super) async fn fetch_optional(self, connection: &mut Connection) -> Result<Option<Row>, StoreError> {
        Ok(self.fetch_all(connection).await?.into_iter().next())
    }

    pub(super) async fn fetch_one(self, connection: &mut Connection) -> Result<Row, StoreError> {
        let nothing = || StoreError::Corrupt("a row is missing".to_owned());
        self.fetch_optional(connection).await?.ok_or_else(nothing)
    }

    /// Goes through the rows as they are found, on this thread.
    pub(super) fn read<T>(
        self,
        connection: &Connection,
        read: impl FnOnce(&mut dyn Iterator<Item = Result<Row, StoreError>>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut statement = self.prepared(connection)?;
        let names: Arc<[_]> = statement.column_names().map(Box::from).collect();
        let mut found = statement.raw_query();
        read(&mut iter::from_fn(|| found.next().map_err(StoreError::from).transpose().map(|row| Row::of(row?, &names))))
    }

    /// The statement with its parameters, which are called `$1` and so on.
    pub(super) fn prepared(self, connection: &Connection) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = connection.statement(self.text)?;
        for at in 1..=statement.parameter_count() {
            let number = statement.parameter_name(at).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let parameter = number.and_then(|number| self.parameters.get(number.checked_sub(1)?));
            statement.raw_bind_parameter(at, parameter)?;
        }
        Ok(statement)
    }
}

impl Row {
    fn of(found: &Found<'_>, names: &Arc<[Box<str>]>) -> Result<Self, StoreError> {
        let values = (0..names.len()).map(|at| found.get(at)).collect::<Result<_, _>>()?;
        Ok(Self { names: names.clone(), values })
    }
}

impl Done {
    pub(super) fn rows_affected(&self) -> usize {
        self.0
    }
}

/// What a row says in a column.
pub(super) fn column<'r, T: Read<'r>>(row: &'r Row, name: &str) -> Result<T, StoreError> {
    let value = row.names.iter().position(|it| **it == *name).and_then(|at| row.values.get(at));
    let wrong = || StoreError::Corrupt(format!("{name} is not what was written"));
    value.and_then(T::read).ok_or_else(wrong)
}

/// What can be read of a row.
pub(super) trait Read<'r>: Sized {
    /// Nothing, if something else is there.
    fn read(value: &'r Value) -> Option<Self>;
}

impl Read<'_> for i64 {
    fn read(value: &Value) -> Option<Self> {
        if let Value::Integer(number) = value { Some(*number) } else { None }
    }
}

impl<'r> Read<'r> for &'r str {
    fn read(value: &'r Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl Read<'_> for String {
    fn read(value: &Value) -> Option<Self> {
        <&str>::read(value).map(ToOwned::to_owned)
    }
}

impl<'r> Read<'r> for &'r [u8] {
    fn read(value: &'r Value) -> Option<Self> {
        if let Value::Blob(bytes) = value { Some(bytes) } else { None }
    }
}

impl<'r, T: Read<'r>> Read<'r> for Option<T> {
    fn read(value: &'r Value) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { T::read(value).map(Some) }
    }
}

/// A parameter of a statement.
pub(super) enum Parameter<'q> {
    Nothing,
    Number(i64),
    Text(Cow<'q, str>),
    Bytes(&'q [u8]),
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Nothing => ValueRef::Null,
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
        parameter.map_or(Self::Nothing, Into::into)
    }
}
