//! What this server serves, as one state machine: [`ServingState`] names every state, and the methods of [`Serving`] are its only
//! transitions.
//!
//! A snapshot that was read from the snapshot file is not served at once: the store may have a newer one. It is served when the
//! change log continues it, or when the store cannot be read. A snapshot that is served stays served until the change log
//! gives a newer one, whatever happens to the store.

use std::{path::PathBuf, sync::Arc};

use fleet::{Snapshot, Writer};
use jiff::{SignedDuration, Timestamp};
use model::{Change, Point, Registry, Revision};
use tokio::{sync::watch, task::block_in_place};

use crate::{
    StoreStatus,
    snapshot_file::{Recalled, RecalledSnapshot, SnapshotFile},
    status::Status,
};

/// Where the served snapshot is saved, and for how long it may be served after a restart without the store.
#[derive(Clone, Debug)]
pub struct SnapshotFileSettings {
    /// The file.
    pub file: PathBuf,
    /// How long a server may have been down. Meanwhile, other servers may have served more.
    pub max_age: SignedDuration,
}

/// What is served, and how it relates to the change log.
#[derive(Clone)]
enum ServingState {
    /// Nothing is served, and the store has not been read yet.
    Starting(Known),
    /// Nothing is served, and the store cannot be read.
    Waiting(Known),
    /// Nothing is served: the change log ends here and does not continue the snapshot of the snapshot file.
    Withheld(Arc<Snapshot>, Point),
    /// The snapshot is served, and the change log is followed.
    Following(Arc<Snapshot>),
    /// The snapshot is served, and the store cannot be read.
    Stale(Arc<Snapshot>),
    /// The snapshot is served. The change log ends here and does not continue it.
    Diverged(Arc<Snapshot>, Point),
}

/// What is known of the fleet while nothing is served.
#[derive(Clone)]
enum Known {
    /// Nothing: no snapshot was saved here.
    Nothing,
    /// A fleet was served here, and its snapshot cannot be read any more.
    Lost,
    /// A snapshot that is served if the store cannot be read.
    Usable(Arc<Snapshot>),
    /// A snapshot that is served only if the change log continues it: the server was down for too long.
    Outdated(Arc<Snapshot>),
}

impl Known {
    fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        match self {
            Self::Usable(snapshot) | Self::Outdated(snapshot) => Some(snapshot),
            Self::Nothing | Self::Lost => None,
        }
    }

    /// The same, with a newer snapshot.
    fn advanced(self, next: Arc<Snapshot>) -> Self {
        match self {
            Self::Outdated(_) => Self::Outdated(next),
            Self::Nothing | Self::Lost | Self::Usable(_) => Self::Usable(next),
        }
    }
}

impl ServingState {
    fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        match self {
            Self::Starting(known) | Self::Waiting(known) => known.snapshot(),
            Self::Withheld(snapshot, _)
            | Self::Following(snapshot)
            | Self::Stale(snapshot)
            | Self::Diverged(snapshot, _) => Some(snapshot),
        }
    }

    fn served(&self) -> Option<&Arc<Snapshot>> {
        match self {
            Self::Following(snapshot) | Self::Stale(snapshot) | Self::Diverged(snapshot, _) => Some(snapshot),
            Self::Starting(_) | Self::Waiting(_) | Self::Withheld(..) => None,
        }
    }

    fn store_status(&self) -> StoreStatus {
        match self {
            Self::Starting(_) => StoreStatus::Starting,
            Self::Following(_) => StoreStatus::Following,
            Self::Waiting(_) | Self::Stale(_) => StoreStatus::Unavailable,
            Self::Withheld(_, head) | Self::Diverged(_, head) => StoreStatus::Diverged(*head),
        }
    }
}

/// The serving state, with the places to which each transition is published: the readers of the snapshot, the snapshot file, the
/// watchers of the revision, and the status.
pub(crate) struct Serving {
    state: ServingState,
    writer: Writer,
    published: watch::Sender<Revision>,
    status: Arc<Status>,
    file: Option<SnapshotFile>,
}

impl Serving {
    /// Starts with what the snapshot file has, of which nothing is served yet. Returns when the snapshot was last at the head of
    /// the change log, too.
    pub(crate) fn recall(
        writer: Writer,
        published: watch::Sender<Revision>,
        status: Arc<Status>,
        settings: Option<&SnapshotFileSettings>,
        registry: &Arc<Registry>,
        now: Timestamp,
    ) -> Result<(Self, Option<Timestamp>), String> {
        let (mut file, mut known, mut at_head) = (None, Known::Nothing, None);
        if let Some(settings) = settings {
            let mut opened = SnapshotFile::open(settings.file.clone(), now)?;
            match opened.recall(registry) {
                Recalled::Nothing => {}
                Recalled::Lost => known = Known::Lost,
                Recalled::Snapshot(recalled) => {
                    let RecalledSnapshot { fleet, at_head: last, served } = *recalled;
                    tracing::info!(point = %fleet.point(), "a snapshot was read from the snapshot file");
                    at_head = Some(last);
                    known = if let Some(reason) = why_outdated(served, last, settings.max_age, now) {
                        tracing::warn!("the snapshot file is not served before the change log confirms it: {reason}");
                        Known::Outdated(Arc::new(fleet))
                    } else {
                        Known::Usable(Arc::new(fleet))
                    };
                }
            }
            file = Some(opened);
        }
        Ok((Self { state: ServingState::Starting(known), writer, published, status, file }, at_head))
    }

    /// Where the snapshot is in the change log, served or not.
    pub(crate) fn point(&self) -> Option<&Point> {
        self.snapshot().map(Snapshot::point)
    }

    /// The snapshot that is served, or will be.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.state.snapshot().map(|snapshot| &**snapshot)
    }

    /// What is served, for a log line.
    pub(crate) fn describe(&self) -> String {
        self.state
            .served()
            .map_or_else(|| "nothing is served".to_owned(), |served| format!("still serving {}", served.point()))
    }

    /// Whether a fleet was ever served here: then no seed begins a new one.
    pub(crate) fn knows_a_fleet(&self) -> bool {
        !matches!(self.state, ServingState::Starting(Known::Nothing) | ServingState::Waiting(Known::Nothing))
    }

    /// Whether there is a snapshot that may be served while the store is damaged.
    pub(crate) fn can_serve(&self) -> bool {
        self.state.served().is_some()
            || matches!(self.state, ServingState::Starting(Known::Usable(_)) | ServingState::Waiting(Known::Usable(_)))
    }

    /// Transition: the store cannot be read. A usable snapshot is served from now on. Returns whether the status has changed.
    pub(crate) fn store_unavailable(&mut self, now: Timestamp) -> bool {
        let state = match self.state.clone() {
            ServingState::Starting(Known::Usable(snapshot)) | ServingState::Waiting(Known::Usable(snapshot)) => {
                ServingState::Stale(self.publish_recalled(snapshot, now))
            }
            ServingState::Starting(known) | ServingState::Waiting(known) => ServingState::Waiting(known),
            ServingState::Withheld(snapshot, _) => ServingState::Waiting(Known::Outdated(snapshot)),
            ServingState::Following(snapshot) | ServingState::Stale(snapshot) | ServingState::Diverged(snapshot, _) => {
                ServingState::Stale(snapshot)
            }
        };
        let is_other = self.enter(state);
        self.note_served(now);
        is_other
    }

    /// Transition: the change log ends at `head` and does not continue the snapshot. A usable snapshot is served, unless the log is
    /// that of another fleet: then one of both is the wrong one. Returns whether the status has changed.
    pub(crate) fn log_diverged(&mut self, head: Point, now: Timestamp) -> bool {
        let state = match self.state.clone() {
            ServingState::Starting(Known::Usable(snapshot)) | ServingState::Waiting(Known::Usable(snapshot))
                if snapshot.point().store == head.store =>
            {
                ServingState::Diverged(self.publish_recalled(snapshot, now), head)
            }
            ServingState::Starting(Known::Usable(snapshot) | Known::Outdated(snapshot))
            | ServingState::Waiting(Known::Usable(snapshot) | Known::Outdated(snapshot))
            | ServingState::Withheld(snapshot, _) => ServingState::Withheld(snapshot, head),
            // Nothing is known that a change log could contradict.
            state @ (ServingState::Starting(_) | ServingState::Waiting(_)) => state,
            ServingState::Following(snapshot) | ServingState::Stale(snapshot) | ServingState::Diverged(snapshot, _) => {
                ServingState::Diverged(snapshot, head)
            }
        };
        let is_other = self.enter(state);
        self.note_served(now);
        is_other
    }

    /// Transition: the next changes of the change log. Their snapshot is served if one is served already or if it is at the head.
    pub(crate) fn follow(&mut self, changes: &[Change], at_head: bool, now: Timestamp) -> Result<(), String> {
        let Some(snapshot) = self.state.snapshot() else { return Ok(()) };
        if changes.is_empty() && self.state.served().is_some() {
            return Ok(());
        }
        let next = changes.iter().try_fold(snapshot.clone(), |snapshot, change| snapshot.apply(change).map(Arc::new));
        let next = next.map_err(|error| format!("a change of the change log cannot be applied: {error}"))?;
        self.advance(next, changes, at_head, now)
    }

    /// Transition: changes of this process, which are the newest of the change log, with their snapshot. Returns whether they continue
    /// what is served and the snapshot could be saved; if not, the follower gets there by the change log.
    pub(crate) fn follow_own(&mut self, next: Arc<Snapshot>, changes: &[Change]) -> bool {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return true };
        if self.state.served().is_none_or(|served| served.point().digest != first.parent) {
            return false;
        }
        // To hand the tasks of this thread over to another one takes longer than to publish a small change in memory.
        let is_quick = self.file.is_none() && changes.iter().all(|change| change.writes.len() == 1);
        let advance = || self.advance(next, changes, true, last.at);
        if is_quick { advance().is_ok() } else { block_in_place(advance).is_ok() }
    }

    fn advance(
        &mut self,
        next: Arc<Snapshot>,
        changes: &[Change],
        at_head: bool,
        now: Timestamp,
    ) -> Result<(), String> {
        if let (Some(file), false) = (&mut self.file, changes.is_empty()) {
            file.save(&next, changes, now)?;
        }
        let state = match self.state.clone() {
            ServingState::Starting(known) if !at_head => ServingState::Starting(known.advanced(next)),
            ServingState::Waiting(known) if !at_head => ServingState::Waiting(known.advanced(next)),
            ServingState::Withheld(..) if !at_head => ServingState::Starting(Known::Outdated(next)),
            ServingState::Stale(_) => ServingState::Stale(self.publish(next, now)),
            ServingState::Diverged(_, head) => ServingState::Diverged(self.publish(next, now), head),
            ServingState::Following(_)
            | ServingState::Starting(_)
            | ServingState::Waiting(_)
            | ServingState::Withheld(..) => ServingState::Following(self.publish(next, now)),
        };
        self.enter(state);
        Ok(())
    }

    /// Transition: a snapshot that was loaded whole, the first one or that of a change log which may be followed without seeing every
    /// change.
    pub(crate) fn replace(&mut self, next: Snapshot, now: Timestamp) -> Result<(), String> {
        let next = Arc::new(next);
        if let Some(file) = &mut self.file {
            file.replace(&next, now)?;
        }
        let state = ServingState::Following(self.publish(next, now));
        self.enter(state);
        Ok(())
    }

    /// Transition: the snapshot is at the head of the change log.
    pub(crate) fn confirm_at_head(&mut self, now: Timestamp) -> Result<(), String> {
        self.note_served(now);
        if let (Some(file), Some(snapshot)) = (&mut self.file, self.state.snapshot()) {
            file.confirm_at_head(snapshot, now)?;
        }
        if let ServingState::Stale(snapshot) | ServingState::Diverged(snapshot, _) = self.state.clone() {
            self.enter(ServingState::Following(snapshot));
        }
        Ok(())
    }

    /// Enters a state. Returns whether the status of the store is another one than before.
    fn enter(&mut self, state: ServingState) -> bool {
        self.state = state;
        let is_other = self.status.set(self.state.store_status());
        if let (true, ServingState::Following(snapshot)) = (is_other, &self.state) {
            tracing::info!(point = %snapshot.point(), "the served snapshot is at the head of the change log");
        }
        is_other
    }

    /// Serves the snapshot of the snapshot file, since nothing newer can be had.
    fn publish_recalled(&mut self, snapshot: Arc<Snapshot>, now: Timestamp) -> Arc<Snapshot> {
        tracing::warn!(point = %snapshot.point(), "the snapshot of the snapshot file is served");
        self.publish(snapshot, now)
    }

    fn publish(&mut self, next: Arc<Snapshot>, now: Timestamp) -> Arc<Snapshot> {
        // One line, however many there are: GET /problems lists them.
        if let Some(risen) = next.risen_problems(self.state.served().map(|served| &**served)) {
            tracing::warn!(
                revision = next.revision().0,
                "stored documents have problems, listed by GET /problems: {risen}"
            );
        }
        if let Some(file) = &mut self.file {
            file.note_served(now);
        }
        self.writer.publish(next.clone());
        self.published.send_replace(next.revision());
        next
    }

    /// Notes in the snapshot file that a snapshot is served at this time, if one is: after a restart, a snapshot that was not served for
    /// too long must not look as if it had been.
    fn note_served(&mut self, now: Timestamp) {
        if let (Some(file), Some(_)) = (&mut self.file, self.state.served()) {
            file.note_served(now);
        }
    }
}

/// By how much a clock may be corrected between two starts.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Why a snapshot that was last served at one time, and was last at the head of the change log at another, is not to be served
/// before the change log confirms it. If one of both is in the future, the clock was set back, and for how long this server was
/// down is not known.
fn why_outdated(
    served: Option<Timestamp>,
    at_head: Timestamp,
    max_age: SignedDuration,
    now: Timestamp,
) -> Option<String> {
    let Some(served) = served else { return Some("it is not known when it was last served".to_owned()) };
    let down = now.duration_since(served);
    if down > max_age {
        Some(format!(
            "this server was down for {down:#}, and SNAPSHOT_MAX_AGE is {max_age:#}; others may have served more"
        ))
    } else if down < -SKEW {
        Some(format!("it was last served at {served}, which is in the future"))
    } else if now.duration_since(at_head) < -SKEW {
        Some(format!("it was at the head of the change log at {at_head}, which is in the future"))
    } else {
        None
    }
}

/// How long ago a snapshot was at the head of the change log, as far as a clock can tell that was not set back since.
pub(crate) fn age(at_head: Timestamp, now: Timestamp) -> SignedDuration {
    let age = now.duration_since(at_head);
    if age < -SKEW { SignedDuration::MAX } else { age.max(SignedDuration::ZERO) }
}
