//! The polls of a fleet: GET requests at a fixed rate, over connections that are kept. What is late is not made up
//! for, so the rate is a bound.

#![allow(clippy::disallowed_methods, reason = "a rate needs to know the time")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ureq::Agent;

const WORKERS: usize = 8;
/// A worker that was not free in time is forgiven this much.
const LATE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);
const EXAMPLES: usize = 20;

/// A load that is on.
pub struct Load {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    start: Instant,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Requests.
    pub sent: u64,
    /// Answers of 200 that came whole.
    pub ok: u64,
    /// Answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a whole answer.
    pub errors: u64,
    /// The first 20 requests that were not answered with 200, and why.
    pub failed: Vec<String>,
    /// The longest body of each path.
    pub longest: BTreeMap<String, usize>,
    /// The first 20 answers of 200 that were shorter than one of the same path that had come before they were asked
    /// for.
    pub shorter: Vec<String>,
    /// Requests per second.
    pub achieved_per_second: f64,
}

struct Shared {
    addresses: Mutex<Vec<String>>,
    paths: Vec<String>,
    token: String,
    pace: Mutex<Pace>,
    report: Mutex<Report>,
    over: AtomicBool,
}

struct Pace {
    interval: Duration,
    next: Instant,
    turns: usize,
}

impl Load {
    /// Starts to poll all paths at all addresses, in turns. An address is a host and a port.
    #[must_use]
    pub fn start(addresses: Vec<String>, paths: Vec<String>, token: &str, per_second: u32) -> Self {
        let start = Instant::now();
        let interval = Duration::from_secs(1) / per_second;
        let shared = Arc::new(Shared {
            addresses: Mutex::new(addresses),
            paths,
            token: format!("Bearer {token}"),
            pace: Mutex::new(Pace { interval, next: start, turns: 0 }),
            report: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let worker = |_| {
            let shared = shared.clone();
            thread::spawn(move || shared.work())
        };
        let workers = (0..WORKERS).map(worker).collect();
        Self { shared, workers, start }
    }

    /// The addresses from now on. A test changes them when a replica comes back elsewhere.
    pub fn addresses(&self) -> MutexGuard<'_, Vec<String>> {
        self.shared.addresses.lock().unwrap()
    }

    /// What has come of it so far.
    #[must_use]
    pub fn so_far(&self) -> Report {
        let mut report = self.shared.report.lock().unwrap().clone();
        #[allow(clippy::cast_precision_loss, reason = "nobody counts that far")]
        let sent = report.sent as f64;
        report.achieved_per_second = sent / self.start.elapsed().as_secs_f64();
        report
    }

    /// Ends it, after the answers to what has been sent.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.shared.over.store(true, Ordering::Relaxed);
        self.workers.drain(..).for_each(|worker| worker.join().unwrap());
        self.so_far()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn work(&self) {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).proxy(None);
        let agent = Agent::from(config.build());
        loop {
            let turn = self.wait_for_turn();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if let Some((address, path)) = self.question(turn) {
                self.ask(&agent, &address, path);
            }
        }
    }

    fn wait_for_turn(&self) -> usize {
        let (turn, due) = {
            let mut pace = self.pace.lock().unwrap();
            let due = pace.next.max(Instant::now().checked_sub(LATE).unwrap());
            pace.next = due + pace.interval;
            pace.turns += 1;
            (pace.turns - 1, due)
        };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        turn
    }

    /// Each path is asked for at each address.
    fn question(&self, turn: usize) -> Option<(String, &str)> {
        let addresses = self.addresses.lock().unwrap();
        let address = addresses.get(turn.checked_rem(addresses.len())?)?;
        Some((address.clone(), &self.paths[turn / addresses.len() % self.paths.len()]))
    }

    fn ask(&self, agent: &Agent, address: &str, path: &str) {
        let url = format!("http://{address}{path}");
        let floor = self.report.lock().unwrap().longest.get(path).copied();
        let answer = agent.get(&url).header("authorization", &self.token).call().and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(u64::MAX).read_to_vec()?;
            Ok((answer.status().as_u16(), body))
        });

        let mut report = self.report.lock().unwrap();
        report.sent += 1;
        let failure = match answer {
            Ok((status, body)) => {
                *report.statuses.entry(status).or_default() += 1;
                if status == 200 {
                    report.succeeded(path, &url, body.len(), floor.unwrap_or_default());
                    return;
                }
                format!("{url}: {status}: {}", String::from_utf8_lossy(&body))
            }
            Err(error) => {
                report.errors += 1;
                format!("{url}: {error}")
            }
        };
        note(&mut report.failed, failure);
    }
}

impl Report {
    fn succeeded(&mut self, path: &str, url: &str, length: usize, floor: usize) {
        self.ok += 1;
        if length < floor {
            note(&mut self.shorter, format!("{url}: {length} bytes, after {floor}"));
        }
        match self.longest.get_mut(path) {
            Some(longest) => *longest = length.max(*longest),
            None => drop(self.longest.insert(path.to_owned(), length)),
        }
    }
}

fn note(examples: &mut Vec<String>, example: String) {
    if examples.len() < EXAMPLES {
        examples.push(example);
    }
}
