//! How it is served: configuration, access, routes, and the follower that keeps the picture at the head of the log.
//!
//! This crate alone knows all the others. A poll is answered from memory: authorise, look up, send. The store is
//! touched by one task, the [follower](Follower), which publishes a new picture for every change; when the store is away, polls
//! go on with the picture that is there, and before there is one they are refused.

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
pub use pages::keep_pages_small;
pub use retention::retain;
pub use runtimes::{RuntimeHandles, Runtimes};
pub use service::ApiService;
pub use serving::SnapshotFileSettings;
pub use status::{Status, StoreStatus};
