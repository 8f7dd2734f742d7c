//! One operation per file: who may call it, what the request contains, and the answer.

pub(crate) mod batch;
pub(crate) mod bootstrap;
pub(crate) mod bulk_patch;
pub(crate) mod change;
pub(crate) mod changes;
pub(crate) mod cluster_inputs;
pub(crate) mod cluster_patches;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod explain;
pub(crate) mod flux_clusters;
pub(crate) mod flux_inputs;
pub(crate) mod former_dns;
pub(crate) mod get;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod patch;
pub(crate) mod problem_counts;
pub(crate) mod problems;
pub(crate) mod ready;
pub(crate) mod references;
pub(crate) mod replace;
pub(crate) mod restore;
pub(crate) mod revert_change;
pub(crate) mod revert_document;
pub(crate) mod store;
pub(crate) mod stream;
pub(crate) mod type_changes;
pub(crate) mod types;

mod answers;
pub(crate) mod chunks;
mod mutation;
mod past;
mod segments;
mod selection;

pub(crate) use answers::{EmptyAs, changed, described, send};
pub(crate) use flux_inputs::PollRequest;
pub(crate) use metrics::Scrapes;
pub(crate) use mutation::Mutation;
pub(crate) use segments::{Segments, cluster_at, definition_type, document_at, id_at, type_at};
pub(crate) use selection::{filters, is_list_of_references};
