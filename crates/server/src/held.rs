//! The picture that this server holds: in memory, on its disk, and before its readers.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use fleet::{Problem, Snapshot, Writer};
use jiff::{SignedDuration, Timestamp};
use model::{Change, Point, Registry};

use crate::{Log, snapshot_file::SnapshotFile};

/// Where the last picture is kept, and for how long it is good for a start without the store.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The file.
    pub file: PathBuf,
    /// How old it may be.
    pub good_for: SignedDuration,
}

pub(crate) struct Held {
    writer: Writer,
    log: Arc<Log>,
    file: Option<SnapshotFile>,
    fleet: Option<Snapshot>,
    /// Whether readers see it.
    shown: bool,
    /// For a picture from before the start: when it was last known to be at the head of the log, and how old it may be.
    kept: Option<(Timestamp, SignedDuration)>,
}

impl Held {
    /// Nothing, or what was served before this start. It is not shown yet: the store may know something newer.
    pub(crate) fn recall(writer: Writer, log: Arc<Log>, keep: Option<&Keep>, registry: &Arc<Registry>) -> Self {
        let mut held = Self { writer, log, file: None, fleet: None, shown: false, kept: None };
        if let Some(Keep { file, good_for }) = keep {
            let mut file = SnapshotFile::new(file.clone());
            if let Some(kept) = file.recall(registry) {
                tracing::info!(point = %kept.fleet.point(), "a picture was kept");
                held.fleet = Some(kept.fleet);
                held.kept = Some((kept.at, *good_for));
            }
            held.file = Some(file);
        }
        held
    }

    /// How long ago a picture from before the start was at the head of the log.
    pub(crate) fn age(&self, now: Timestamp) -> Option<SignedDuration> {
        self.kept.map(|(at, _)| now.duration_since(at))
    }

    /// Where it is.
    pub(crate) fn point(&self) -> Option<&Point> {
        self.fleet.as_ref().map(Snapshot::point)
    }

    /// Lets readers see what there is, since nothing newer is to be had; unless it is too old to be the truth.
    pub(crate) fn show(&mut self, now: Timestamp) {
        let (Some(fleet), Some((at, good_for)), false) = (&self.fleet, self.kept, self.shown) else { return };
        if now.duration_since(at) > good_for {
            return;
        }
        tracing::warn!(point = %fleet.point(), "the store does not answer: the picture that was kept is served");
        let fleet = fleet.clone();
        self.publish(fleet);
    }

    /// Takes changes that continue it. While readers have seen nothing, they wait for the newest.
    pub(crate) fn follow(&mut self, changes: &[Change], at_head: bool, now: Timestamp) -> Result<(), String> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        if changes.is_empty() && self.shown {
            return Ok(());
        }
        let next = changes.iter().try_fold(fleet.clone(), |fleet, change| fleet.apply(change));
        let next = next.map_err(|error| format!("the log cannot be followed: {error}"))?;
        if let (Some(file), false) = (&mut self.file, changes.is_empty()) {
            file.keep(&next, changes, now)?;
        }
        if self.shown || at_head {
            self.publish(next);
        } else {
            self.fleet = Some(next);
        }
        Ok(())
    }

    /// Takes another picture, of a history that an operator has accepted or after a past that is forgotten.
    pub(crate) fn turn_to(&mut self, next: Snapshot, now: Timestamp) -> Result<(), String> {
        if let Some(file) = &mut self.file {
            file.replace(&next, now)?;
        }
        self.publish(next);
        Ok(())
    }

    /// It is still at the head of the log.
    pub(crate) fn in_step(&mut self, now: Timestamp) {
        if let Some(file) = &mut self.file {
            file.beat(now);
        }
    }

    fn publish(&mut self, next: Snapshot) {
        let known: BTreeSet<&Problem> = self.fleet.iter().flat_map(Snapshot::problems).collect();
        for problem in next.problems().filter(|problem| !known.contains(problem)) {
            tracing::warn!(rule = problem.rule.name(), "a document has a problem: {problem}");
        }
        self.writer.publish(Arc::new(next.clone()));
        self.log.published(next.revision());
        self.fleet = Some(next);
        self.shown = true;
    }
}
