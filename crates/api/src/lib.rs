//! What is sent: one definition of every request and response body of the HTTP API, and of problem details (RFC 9457).
//!
//! The server's handlers, the client and the CLI use these types, and the schemas of the OpenAPI document are derived from
//! them ([`Schemas`]), so no shape is written twice. Documents are not here: their schemas come from the resource types. Shapes that
//! the fleet computes, such as a [`Plan`] or an [`Explanation`], are defined in `model` and exported from here too.
//!
//! Refused here: logic. A type holds its fields, how they are written as JSON, and no more.

mod batch;
mod change;
mod patch;
mod poll;
mod problem;
mod resource_type;
mod schema;
mod service;
mod store;
mod type_changes;

pub use batch::{Batch, BatchWrite, RevertTarget, WrittenChange};
pub use change::{ChangeDetails, ChangeHeading, ChangeSummary, HistoryEntry, WriteDetails, WriteSummary};
pub use patch::JsonPatch;
pub use poll::{ClusterIdentity, NoneInput};
pub use problem::{DocumentProblem, ProblemCounts, ProblemDetails};
pub use resource_type::TypeDescription;
pub use schema::Schemas;
pub use service::{Health, Readiness};
pub use store::{ChangeLogStatus, StoreAcceptance, StoreState};
pub use type_changes::TypeChanges;

pub use jiff::Timestamp;
pub use model::{
    ClusterPlan, Difference, DocumentPlan, ExplainedField, Explanation, FieldError, HiddenValue, InputPlan, Plan,
    Point, ProtectedCluster, RefusedRemovals, SourceDocument, SourceKind, Totals, TypeChange, TypeChangeKind,
    TypeRecord, ValueSource,
};

#[cfg(test)]
mod tests;
