//! What exists: the data types of the whole system, with the rules that hold for each on its own.
//!
//! A [`ResourceType`] is a value, read from a file; a [`Document`] is an instance of one; a [`Change`] is an atomic
//! set of writes to documents. Nothing here uses a store, a clock or a network: only data and rules, so that every other
//! crate can depend on it.

mod change;
mod document;
pub mod excerpt;
mod explanation;
pub mod helm;
mod history;
mod id;
mod json;
mod kubernetes;
pub mod limits;
mod patch;
mod plan;
mod registry;
mod resource_type;
mod type_changes;
mod type_record;
mod validation;
pub mod yaml;

pub use change::{Change, Op, Origin, Write};
pub use document::{Body, Document, State, read_fields};
pub use excerpt::{Excerpt, is_hidden};
pub use explanation::{ExplainedField, Explanation, HiddenValue, SourceDocument, SourceKind, ValueSource};
pub use history::{ChangeDigest, Digest, Epoch, InvalidDigest, Point, StoreId};
pub use id::{Id, InvalidId, Kind, Revision, dns_spelling};
pub use json::{
    ItemLimits, ListEvent, MAX_SAFE_INTEGER, Map, Unambiguous, Value, decode, prune_nulls, read_json, read_lists,
};
pub use kubernetes::is_dns_name;
pub use patch::{Patch, PatchFailed};
pub use plan::{ClusterPlan, Difference, DocumentPlan, InputPlan, Plan, ProtectedCluster, RefusedRemovals, Totals};
pub use registry::{Registry, RegistryError};
pub use resource_type::{Nest, ResourceType, with_id_first};
pub use type_changes::{TypeChange, TypeChangeKind};
pub use type_record::TypeRecord;
pub use validation::FieldError;
