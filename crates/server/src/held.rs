//! The picture that this server holds: in memory, on its disk, and before its readers.

use std::{path::PathBuf, sync::Arc};

use fleet::{Snapshot, Writer};
use jiff::{SignedDuration, Timestamp};
use model::{Change, Point, Registry, Revision};
use tokio::{sync::watch, task::block_in_place};

use crate::snapshot_file::{Memory, SnapshotFile};

/// Where the last picture is kept, and for how long it is good for a start without the store.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The file.
    pub file: PathBuf,
    /// How long a server may have been down. Meanwhile, others may have served more.
    pub good_for: SignedDuration,
}

pub(crate) struct Held {
    writer: Writer,
    published: watch::Sender<Revision>,
    file: Option<SnapshotFile>,
    fleet: Option<Arc<Snapshot>>,
    /// Whether readers see it.
    shown: bool,
    /// For a picture from before the start: when it was at the head of the log, and whether it is not to be shown.
    kept_at: Option<Timestamp>,
    unfit: bool,
    /// Whether there was a fleet here of which nothing is known any more.
    forgotten: bool,
}

impl Held {
    /// Nothing, or what was served before this start. It is not shown yet: the store may know something newer.
    pub(crate) fn recall(
        writer: Writer,
        published: watch::Sender<Revision>,
        keep: Option<&Keep>,
        registry: &Arc<Registry>,
        now: Timestamp,
    ) -> Result<Self, String> {
        let mut held = Self {
            writer,
            published,
            file: None,
            fleet: None,
            shown: false,
            unfit: false,
            kept_at: None,
            forgotten: false,
        };
        let Some(keep) = keep else { return Ok(held) };
        let mut file = SnapshotFile::open(keep.file.clone(), now)?;
        match file.recall(registry) {
            Memory::None => {}
            Memory::Lost => held.forgotten = true,
            Memory::Kept(kept) => {
                tracing::info!(point = %kept.fleet.point(), "a picture was kept");
                if let Some(why) = unfit(kept.served, kept.at_head, keep.good_for, now) {
                    tracing::warn!("the picture that was kept is not served: {why}");
                    held.unfit = true;
                }
                held.fleet = Some(Arc::new(kept.fleet));
                held.kept_at = Some(kept.at_head);
            }
        }
        held.file = Some(file);
        Ok(held)
    }

    /// How long ago a picture from before the start was at the head of the log. By a clock that was set back since, that is not
    /// known: it is then as old as can be.
    pub(crate) fn age(&self, now: Timestamp) -> Option<SignedDuration> {
        let age = now.duration_since(self.kept_at?);
        Some(if age < -SKEW { SignedDuration::MAX } else { age.max(SignedDuration::ZERO) })
    }

    /// Where it is.
    pub(crate) fn point(&self) -> Option<&Point> {
        self.fleet.as_ref().map(|fleet| fleet.point())
    }

    /// What is served, or will be.
    pub(crate) fn fleet(&self) -> Option<&Snapshot> {
        self.fleet.as_deref()
    }

    /// Whether a fleet was known here, even if nothing is known of it any more.
    pub(crate) fn knows_a_fleet(&self) -> bool {
        self.fleet.is_some() || self.forgotten
    }

    /// Whether there is something that may be served.
    pub(crate) fn is_fit(&self) -> bool {
        self.fleet.is_some() && !self.unfit
    }

    /// Lets readers see what there is, since nothing newer is to be had; unless it may not be the truth. A log of another
    /// name says that either it or the picture is of another fleet.
    pub(crate) fn show(&mut self, log: Option<&Point>, now: Timestamp) {
        let Some(fleet) = &self.fleet else { return };
        if self.shown {
            self.served(now);
            return;
        }
        self.unfit |= log.is_some_and(|log| log.store != fleet.point().store);
        if self.unfit {
            return;
        }
        tracing::warn!(point = %fleet.point(), "the picture that was kept is served");
        let fleet = fleet.clone();
        self.publish(fleet, now);
    }

    /// Takes changes that continue it. While readers have seen nothing, they wait for the newest.
    pub(crate) fn follow(&mut self, changes: &[Change], at_head: bool, now: Timestamp) -> Result<(), String> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        if changes.is_empty() && self.shown {
            return Ok(());
        }
        let next = changes.iter().try_fold(fleet.clone(), |fleet, change| fleet.apply(change).map(Arc::new));
        let next = next.map_err(|error| format!("the log cannot be followed: {error}"))?;
        self.advance(next, changes, at_head, now)
    }

    /// Takes the picture that changes have made of it which are the newest in the log; says whether it has, which it cannot
    /// where they do not continue what is served.
    pub(crate) fn take(&mut self, next: Arc<Snapshot>, changes: &[Change]) -> bool {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return true };
        if !self.shown || self.point().is_none_or(|here| here.digest != first.parent) {
            return false;
        }
        // To hand this worker's tasks over to another takes longer than to publish what is small and in memory only.
        let is_quick = self.file.is_none() && changes.iter().all(|change| change.writes.len() == 1);
        let advance = || self.advance(next, changes, true, last.at);
        // Where it cannot be kept, the follower comes to the same, and tells.
        if is_quick { advance().is_ok() } else { block_in_place(advance).is_ok() }
    }

    /// Takes the picture that changes have made of it.
    fn advance(
        &mut self,
        next: Arc<Snapshot>,
        changes: &[Change],
        at_head: bool,
        now: Timestamp,
    ) -> Result<(), String> {
        if let (Some(file), false) = (&mut self.file, changes.is_empty()) {
            file.keep(&next, changes, now)?;
        }
        if self.shown || at_head {
            self.publish(next, now);
        } else {
            self.fleet = Some(next);
        }
        Ok(())
    }

    /// Takes another picture: the first one, or that of a log that may be followed without seeing every change.
    pub(crate) fn turn_to(&mut self, next: Snapshot, now: Timestamp) -> Result<(), String> {
        if let Some(file) = &mut self.file {
            file.replace(&next, now)?;
        }
        self.publish(Arc::new(next), now);
        Ok(())
    }

    /// It is at the head of the log.
    pub(crate) fn at_head(&mut self, now: Timestamp) -> Result<(), String> {
        self.served(now);
        match (&mut self.file, &self.fleet) {
            (Some(file), Some(fleet)) => file.at_head(fleet, now),
            _ => Ok(()),
        }
    }

    fn served(&mut self, now: Timestamp) {
        if let Some(file) = &mut self.file {
            file.served(now);
        }
    }

    fn publish(&mut self, next: Arc<Snapshot>, now: Timestamp) {
        // One line, however many there are: GET /problems lists them.
        let known = self.fleet.as_deref().filter(|_| self.shown);
        if let Some(risen) = next.risen_problems(known) {
            tracing::warn!(
                revision = next.revision().0,
                "stored documents have problems, listed by GET /problems: {risen}"
            );
        }
        self.served(now);
        self.writer.publish(next.clone());
        self.published.send_replace(next.revision());
        self.fleet = Some(next);
        self.shown = true;
    }
}

/// By how much a clock may be corrected between two starts.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Why a picture that was last served then, and was last at the head of the log then, is not to be served now. If one of both is
/// yet to come, the clock was set back, and how long this server was down is not known.
fn unfit(served: Option<Timestamp>, at_head: Timestamp, good_for: SignedDuration, now: Timestamp) -> Option<String> {
    let Some(served) = served else { return Some("it is not known when it was served".to_owned()) };
    let down = now.duration_since(served);
    if down > good_for {
        Some(format!(
            "this server was down for {down:#}, and SNAPSHOT_MAX_AGE is {good_for:#}; others may have served more"
        ))
    } else if down < -SKEW {
        Some(format!("it was served at {served}, which is yet to come"))
    } else if now.duration_since(at_head) < -SKEW {
        Some(format!("it was at the head of the change log at {at_head}, which is yet to come"))
    } else {
        None
    }
}
