//! A load generator: GET requests at a fixed rate, over kept connections. Late requests are not made up for, so the rate is an
//! upper bound.

#![expect(clippy::disallowed_methods, reason = "a fixed rate needs the time")]

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
/// How late a worker may send a request without shifting the schedule.
const MAX_LATENESS: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);
const EXAMPLES: usize = 20;

/// A running load.
pub struct Load {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    start: Instant,
}

/// The results of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Requests.
    pub sent: u64,
    /// Complete answers with status 200.
    pub ok: u64,
    /// Answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a complete answer.
    pub errors: u64,
    /// The first 20 requests that were not answered with 200, and why.
    pub failed: Vec<String>,
    /// The longest body of each path.
    pub longest: BTreeMap<String, usize>,
    /// The first 20 answers with status 200 that were shorter than an earlier answer of the same path.
    pub shorter: Vec<String>,
    /// Requests per second.
    pub achieved_per_second: f64,
}

struct Shared {
    addresses: Mutex<Vec<String>>,
    paths: Vec<String>,
    token: String,
    pace: Mutex<Pace>,
    report: Mutex<LoadReport>,
    over: AtomicBool,
}

struct Pace {
    interval: Duration,
    next: Instant,
    turns: usize,
}

impl Load {
    /// Starts to request all paths from all addresses, in turns. An address is a host and a port.
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

    /// The addresses of the next requests. A test changes them when a replica gets a new address.
    pub fn addresses(&self) -> MutexGuard<'_, Vec<String>> {
        self.shared.addresses.lock().unwrap()
    }

    /// The results so far.
    #[must_use]
    pub fn so_far(&self) -> LoadReport {
        let mut report = self.shared.report.lock().unwrap().clone();
        #[expect(clippy::cast_precision_loss, reason = "no test sends so many requests")]
        let sent = report.sent as f64;
        report.achieved_per_second = sent / self.start.elapsed().as_secs_f64();
        report
    }

    /// Ends it, once the pending requests are answered.
    #[must_use]
    pub fn finish(mut self) -> LoadReport {
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
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT)).proxy(None);
        let agent = Agent::from(config.build());
        loop {
            let turn = self.wait_for_turn();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if let Some((address, path)) = self.next_request(turn) {
                self.send(&agent, &address, path);
            }
        }
    }

    fn wait_for_turn(&self) -> usize {
        let (turn, due) = {
            let mut pace = self.pace.lock().unwrap();
            let due = pace.next.max(Instant::now().checked_sub(MAX_LATENESS).unwrap());
            pace.next = due + pace.interval;
            pace.turns += 1;
            (pace.turns - 1, due)
        };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        turn
    }

    /// Each path is requested from each address.
    fn next_request(&self, turn: usize) -> Option<(String, &str)> {
        let addresses = self.addresses.lock().unwrap();
        let address = addresses.get(turn.checked_rem(addresses.len())?)?;
        Some((address.clone(), &self.paths[turn / addresses.len() % self.paths.len()]))
    }

    fn send(&self, agent: &Agent, address: &str, path: &str) {
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
        add_example(&mut report.failed, failure);
    }
}

impl LoadReport {
    fn succeeded(&mut self, path: &str, url: &str, length: usize, floor: usize) {
        self.ok += 1;
        if length < floor {
            add_example(&mut self.shorter, format!("{url}: {length} bytes, after {floor}"));
        }
        match self.longest.get_mut(path) {
            Some(longest) => *longest = length.max(*longest),
            None => drop(self.longest.insert(path.to_owned(), length)),
        }
    }
}

fn add_example(examples: &mut Vec<String>, example: String) {
    if examples.len() < EXAMPLES {
        examples.push(example);
    }
}
