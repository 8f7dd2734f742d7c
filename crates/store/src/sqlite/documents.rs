//! The documents of a whole fleet, as they are found.

use super::{Connection, Query, aside, rows};
use crate::{StoreError, pieces::Pieces};

/// Hands over the documents that a query finds, in no order; says how many there are.
pub(super) async fn read(found: Query<'_>, connection: &mut Connection, to: &Pieces) -> Result<usize, StoreError> {
    aside(|| found.read(connection, |rows| to.hand_over(rows.map(|row| rows::document(&row?)))))
}
