//! What each cluster gets: the snapshot of the fleet at one revision, and the inputs that follow from it.
//!
//! Everything here is a pure function of documents, except for the [counters](Polls) of polls. A [`Snapshot`] is
//! never changed; applying a change makes the next one, which shares with it all that the change did not touch. [`fleet`]
//! hands out the one [`Writer`] that publishes snapshots and the [`Reader`]s that see the newest without a lock.
//!
//! The served list is a delete command: Flux garbage-collects (deletes) what is missing from it. So an answer is complete
//! and checked, or there is none and a [`Refusal`] says why.

mod answer;
mod catalogue;
mod cluster;
mod cluster_list;
mod cores;
mod cycles;
mod definition;
mod draft;
mod explain;
mod inputs;
mod merge;
mod order;
mod plan;
mod polls;
mod problems;
mod protection;
mod publish;
mod review;
mod slots;
mod snapshot;
mod types;

pub use answer::Answer;
pub use cluster::Cluster;
pub use cluster_list::{InvalidShard, MAX_SHARDS, Part, Shard};
pub use definition::Definition;
pub use draft::{Draft, EditError, repeated_dns_names};
pub use inputs::{Empty, MAX_BYTES, MAX_INPUTS, Refusal, Stamp};
pub use plan::{difference, plan, plan_of_acceptance, plan_of_change};
pub use polls::{Packed, Polls, Zipped};
pub use problems::{Problem, ProblemFilter, ProblemPage, RisenProblems, Rule};
pub use protection::{AllowedRemovals, ProtectedRemovals};
pub use publish::{Reader, Writer, fleet};
pub use review::Objections;
pub use snapshot::{Snapshot, SnapshotError};
