//! The tables, and which version of them this program knows.
//!
//! The caller's transaction creates everything that is missing, in plain statements: of several processes that start
//! together one creates the tables, and the others fail, retry, and find them. This takes no advisory lock, and no session
//! state that a pooler could lose.

use super::{COUNT_TABLES, Connection, MIGRATIONS, column, query, rows, run};
use crate::StoreError;

/// Whether our tables exist, of any version.
pub(super) async fn exists(connection: &mut Connection) -> Result<bool, StoreError> {
    let tables = query(COUNT_TABLES).fetch_one(connection).await?;
    Ok(column::<i64>(&tables, "tables")? > 0)
}

/// The version of the tables; zero if there are none.
async fn version(connection: &mut Connection) -> Result<usize, StoreError> {
    if !exists(connection).await? {
        return Ok(0);
    }
    let row = query("SELECT max(version) AS version FROM fleet_schema").fetch_one(connection).await?;
    let version = column::<Option<i64>>(&row, "version")?.unwrap_or(0);
    usize::try_from(version).map_err(|_| StoreError::Corrupt(format!("{version} is not a version of its tables")))
}

/// Whether the tables are of this program's version; an error if they are newer.
pub(super) async fn is_current(connection: &mut Connection) -> Result<bool, StoreError> {
    let (found, known) = (version(connection).await?, MIGRATIONS.len());
    if found > known {
        return Err(StoreError::Foreign(format!(
            "its tables are of version {found}, made by a newer version of this program, which knows {known}"
        )));
    }
    Ok(found == known)
}

/// Creates the tables, or brings them up to date.
pub(super) async fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = version(connection).await?;
    if found == 0 {
        query("CREATE TABLE fleet_schema (version BIGINT PRIMARY KEY)").execute(&mut *connection).await?;
    }
    for (version, statements) in (1_u64..).zip(MIGRATIONS).skip(found) {
        run(connection, statements).await?;
        query("INSERT INTO fleet_schema (version) VALUES ($1)")
            .bind(rows::to_i64(version))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
