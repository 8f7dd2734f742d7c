//! Polls at a fixed rate, whether they are answered or not: a slow answer does not delay the polls after it, and the latency
//! of each counts from when it was due.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{figures::Times, http::HttpConnection, machine};

const PER_SECOND: u32 = 500;
const CONNECTIONS: usize = 8;
/// Until all connections are open.
const PREPARATION: Duration = Duration::from_millis(300);

/// What came of it.
pub(crate) struct Paced {
    /// From when polls were due until they were answered.
    pub(crate) latency: Times,
    /// How much later than due polls were sent whose connection was free: what this program itself was late.
    pub(crate) late: Times,
    pub(crate) per_second: f64,
}

/// Polls the paths in turns while something else is done.
pub(crate) fn during(address: &str, paths: &[String], work: impl FnOnce()) -> Paced {
    let over = AtomicBool::new(false);
    let start = Instant::now() + PREPARATION;
    let polls: Vec<Poll> = thread::scope(|scope| {
        let over = &over;
        let connection = |number| move || poll(address, paths, number, start, over);
        let connections: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(connection(number))).collect();
        thread::sleep(start.saturating_duration_since(Instant::now()));
        work();
        over.store(true, Ordering::Relaxed);
        connections.into_iter().flat_map(|connection| connection.join().unwrap()).collect()
    });
    let per_second = polls.len() as f64 / start.elapsed().as_secs_f64();
    Paced {
        latency: Times::new(polls.iter().map(|poll| poll.latency).collect()),
        late: Times::new(polls.iter().filter_map(|poll| poll.late).collect()),
        per_second,
    }
}

struct Poll {
    latency: Duration,
    late: Option<Duration>,
}

/// The polls of one connection: every eighth of all.
fn poll(address: &str, paths: &[String], number: usize, start: Instant, over: &AtomicBool) -> Vec<Poll> {
    // Clusters are other machines, so the server's load must not delay these threads.
    machine::raise_thread_priority();
    let mut connection = HttpConnection::open(address).unwrap();
    let mut polls = Vec::new();
    for turn in (number..).step_by(CONNECTIONS) {
        let due = start + Duration::from_secs(1) * turn as u32 / PER_SECOND;
        let free = Instant::now();
        thread::sleep(due.saturating_duration_since(free));
        if over.load(Ordering::Relaxed) {
            break;
        }
        let late = (free < due).then(|| due.elapsed());
        connection.get(&paths[turn % paths.len()], "").unwrap().ok();
        polls.push(Poll { latency: due.elapsed(), late });
    }
    polls
}
