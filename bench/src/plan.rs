//! What is measured, and how often. A smoke run takes the same steps with less.

use crate::wrk::Manner;

/// What to measure, from the command line.
#[derive(Clone)]
pub(crate) struct BenchPlan {
    pub(crate) smoke: bool,
    sections: Vec<String>,
    /// Clusters of the fleets, the smallest first.
    pub(crate) sizes: Vec<usize>,
    /// The size that most figures are about.
    pub(crate) main: usize,
    pub(crate) repetitions: usize,
}

impl BenchPlan {
    /// Reads the command line.
    pub(crate) fn read(arguments: impl Iterator<Item = String>, names: &[&str]) -> Result<Self, String> {
        let (mut smoke, mut sections) = (false, Vec::new());
        for argument in arguments {
            if argument == "--smoke" {
                smoke = true;
            } else if names.contains(&argument.as_str()) {
                sections.push(argument);
            } else {
                return Err(format!("\"{argument}\" is neither --smoke nor a section: {}", names.join(", ")));
            }
        }
        let sizes = if smoke { vec![100, 1_000] } else { vec![100, 1_000, 10_000, 100_000] };
        let (main, repetitions) = if smoke { (1_000, 1) } else { (10_000, 7) };
        Ok(Self { smoke, sections, sizes, main, repetitions })
    }

    pub(crate) fn has(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|name| name == section)
    }

    /// Whether everything is measured in full.
    pub(crate) fn is_whole(&self) -> bool {
        !self.smoke && self.sections.is_empty()
    }

    pub(crate) fn smallest(&self) -> usize {
        self.sizes[0]
    }

    pub(crate) fn largest(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// How many disturbed runs of polls may be repeated.
    pub(crate) fn repeats(&self) -> usize {
        if self.smoke { 0 } else { 100 }
    }

    /// Rounds of commits before those that count. Until the write-ahead logs have their full length, commits take longer: a
    /// growing file has more to write to the disk.
    pub(crate) fn warm_up(&self) -> usize {
        if self.smoke { 0 } else { 3 }
    }

    /// How often all clusters are patched.
    pub(crate) fn bulk_repetitions(&self, size: usize) -> usize {
        if size > self.main { self.repetitions.min(2) } else { self.repetitions }
    }

    /// How often polls are measured. More often where a p99 has a target, because disturbances of a few milliseconds come and go.
    pub(crate) fn poll_repetitions(&self, size: usize, Manner { kept, gzip, .. }: Manner) -> usize {
        if size == self.main && kept && !gzip && !self.smoke { 15 } else { self.repetitions }
    }

    /// Seconds of one run of polls.
    pub(crate) fn seconds(&self, size: usize) -> u32 {
        if size == self.main && !self.smoke { 2 } else { 1 }
    }

    /// Whether polls of a fleet are measured in a manner.
    pub(crate) fn includes(&self, size: usize, Manner { kept, gzip, paused, .. }: Manner) -> bool {
        match (self.smoke, size == self.main) {
            (_, is_main) if paused => is_main,
            (true, true) => kept || gzip,
            (true, false) => kept && !gzip,
            (false, _) => !gzip || size != 1_000,
        }
    }
}
