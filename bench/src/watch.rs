//! Processor time on the two cores during a measurement: of the server, of the load generator, and of other processes, which
//! disturb it.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::machine::{Core, Machine};

/// The unit of the kernel's counters; on Linux it is the same for every program.
const TICK: Duration = Duration::from_millis(10);

/// The clocks at the start of a measurement.
pub(crate) struct Watch<'a> {
    machine: &'a Machine,
    pid: u32,
    start: Instant,
    before: Clocks,
}

/// The result of a measurement.
pub(crate) struct CpuTimes {
    /// Processor time of the measured process.
    pub(crate) computed: Duration,
    /// The share of the other core that ended child processes of this one took.
    pub(crate) load: f64,
    /// The share of a core that other processes took; the larger of the two cores.
    pub(crate) others: f64,
}

struct Clocks {
    computed: Duration,
    load: Duration,
    /// How long each of the two cores was idle.
    idle: [Option<Duration>; 2],
}

impl<'a> Watch<'a> {
    /// Watches a process and those that it has started.
    pub(crate) fn start(machine: &'a Machine, pid: u32) -> Self {
        Self { machine, pid, start: Instant::now(), before: Clocks::read(machine, pid) }
    }

    pub(crate) fn end(self) -> CpuTimes {
        let (after, before, time) = (Clocks::read(self.machine, self.pid), self.before, self.start.elapsed());
        let share = |duration: Duration| duration.as_secs_f64() / time.as_secs_f64();
        let computed = after.computed.saturating_sub(before.computed);
        let load = after.load.saturating_sub(before.load);
        let others = |core: usize, ours: Duration| {
            let idle = after.idle[core]?.saturating_sub(before.idle[core]?);
            Some((1.0 - share(idle) - share(ours)).max(0.0))
        };
        let others = others(0, computed).unwrap_or(0.0).max(others(1, load).unwrap_or(0.0));
        CpuTimes { computed, load: share(load), others }
    }
}

impl Clocks {
    fn read(machine: &Machine, pid: u32) -> Self {
        let idle = [Core::Measured, Core::Load].map(|core| Some(idle(machine.core(core)?)));
        Self { computed: computed(pid), load: ticks(&statistics(std::process::id()), [13, 14]), idle }
    }
}

/// Processor time of a process and its children.
fn computed(pid: u32) -> Duration {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children = children.split_ascii_whitespace().map(|child| computed(child.parse().unwrap()));
    ticks(&statistics(pid), [11, 12]) + children.sum::<Duration>()
}

/// The kernel's counters of a process, after its name, which is in brackets and may have spaces.
fn statistics(pid: u32) -> Vec<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    line.rsplit_once(')').unwrap().1.split_ascii_whitespace().map(str::to_owned).collect()
}

fn ticks(statistics: &[String], fields: [usize; 2]) -> Duration {
    TICK * fields.iter().map(|&field| statistics[field].parse::<u32>().unwrap()).sum::<u32>()
}

/// How long a core has been idle or has waited for a disk.
fn idle(core: usize) -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} "))).unwrap();
    let figures: Vec<u32> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
    TICK * (figures[3] + figures[4])
}
