//! The tables, and which version of them this program knows.
//!
//! All that is missing is made in one transaction of the caller, in plain statements: of several processes that start
//! together one makes the tables, and the others fail, try again, and find them made. No lock, and no session that a
//! pooler could split.

use super::{Connection, MIGRATIONS, TABLES, column, query, rows, run};
use crate::StoreError;

/// Whether there are tables of ours.
pub(super) async fn is_there(connection: &mut Connection) -> Result<bool, StoreError> {
    let tables = query(TABLES).fetch_one(connection).await?;
    Ok(column::<i64>(&tables, "tables")? > 0)
}

/// Which version of the tables is there; zero for none.
async fn version(connection: &mut Connection) -> Result<usize, StoreError> {
    if !is_there(connection).await? {
        return Ok(0);
    }
    let row = query("SELECT max(version) AS version FROM fleet_schema").fetch_one(connection).await?;
    let version = column::<Option<i64>>(&row, "version")?.unwrap_or(0);
    usize::try_from(version).map_err(|_| StoreError::Corrupt(format!("{version} is no version of its tables")))
}

/// Whether the tables are what this program works with; refuses those of a newer one.
pub(super) async fn is_current(connection: &mut Connection) -> Result<bool, StoreError> {
    let (found, known) = (version(connection).await?, MIGRATIONS.len());
    if found > known {
        return Err(StoreError::Foreign(format!(
            "its tables are of version {found}, made by a newer version of this program, which knows {known}"
        )));
    }
    Ok(found == known)
}

/// Makes what is missing.
pub(super) async fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = version(connection).await?;
    if found == 0 {
        query("CREATE TABLE fleet_schema (version BIGINT PRIMARY KEY)").execute(&mut *connection).await?;
    }
    for (version, statements) in (1_u64..).zip(MIGRATIONS).skip(found) {
        run(connection, statements).await?;
        query("INSERT INTO fleet_schema (version) VALUES ($1)")
            .bind(rows::number(version))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
