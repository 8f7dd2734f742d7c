//! The server: configuration, access, routes, and the follower that keeps the served snapshot at the head of the change log.
//!
//! This crate alone depends on all the others. A poll is answered from memory: authorise, look up, send; it never waits for the
//! store. The store is used by the [follower](Follower), which reads the change log and publishes a snapshot for its changes; by
//! writers, which append to the change log through group commit; by reads of past revisions and of the change log; and by
//! [retention](retain). While the store is unavailable, polls are answered from the served snapshot, and changes are refused.
//! While there is no snapshot, polls are refused too.

mod access;
mod app;
mod backend;
mod backup;
mod body;
mod change_log;
mod clock;
pub mod config;
mod failure;
mod follower;
mod former_polls;
mod group_commit;
mod handler_threads;
mod handlers;
mod large_polls;
mod listener;
mod metrics;
mod observe;
mod openapi;
mod pages;
mod past_documents;
mod precondition;
mod query;
mod request_limits;
mod retention;
mod router;
mod runtimes;
mod seeding;
mod service;
mod serving;
mod snapshot_file;
mod status;
mod writing;

pub use access::{Token, Tokens};
pub use app::{App, Parts};
pub use backup::{back_up, restore};
pub use change_log::ChangeLog;
pub use clock::{Clock, SystemClock};
pub use follower::{Fatal, Follower};
pub use listener::{Limits, listen, serve};
pub use openapi::document as openapi_document;
pub use pages::disable_huge_pages;
pub use retention::retain;
pub use runtimes::{RuntimeHandles, Runtimes};
pub use service::ApiService;
pub use serving::SnapshotFileSettings;
pub use status::{Status, StoreStatus};
