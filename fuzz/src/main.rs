//! Random and hostile requests against a real server, for a bounded time: no request ends it, no answer is an undocumented
//! failure, its memory is bounded, and whatever it saved can be read, listed, polled and deleted.
//!
//! `fuzz SERVER SECONDS SEED` replays the cases of `fuzz/corpus` first, and then sends rounds of random requests, each round to
//! a new server with the demo fleet. Everything random follows from the seed, which is printed; a failed round is written into
//! the corpus, so that it is replayed from then on. YAML texts are read in this process, as the command line tool does. The peak
//! of its memory has the same bound as that of the server, which reads such files too.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fuzzer fails by panicking")]
#![expect(clippy::print_stdout, reason = "a fuzzer prints its progress")]

mod case;
mod contract;
mod generate;
mod process;
mod target;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use harness::repository;
use model::{Value, yaml};
use proptest::{
    strategy::{BoxedStrategy, Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    case::{Case, Request, text_of},
    contract::Contract,
    process::{ProcessStatus, reset_own_peak},
    target::{CheckResult, TestServer},
};

/// Requests of a round, and after how many of them the whole fleet is checked.
const REQUESTS: usize = 300;
const CHECK_EVERY: usize = 50;

/// YAML texts of a round.
const TEXTS: usize = 100;

/// Time for one YAML text.
const TEXT_TIME: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [server, seconds, seed] = arguments.as_slice() else {
        println!("usage: fuzz SERVER SECONDS SEED");
        return ExitCode::from(2);
    };
    let (seconds, seed): (u64, u64) = (seconds.parse().unwrap(), seed.parse().unwrap());
    let contract = Contract::read(&std::fs::read_to_string(repository("openapi/openapi.yaml")).unwrap());
    let fuzz =
        Fuzz { server: PathBuf::from(server), contract, corpus: repository("fuzz/corpus").canonicalize().unwrap() };
    match fuzz.run(Duration::from_secs(seconds), seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            println!("fuzz: {what}");
            ExitCode::FAILURE
        }
    }
}

struct Fuzz {
    server: PathBuf,
    contract: Contract,
    corpus: PathBuf,
}

impl Fuzz {
    #[expect(clippy::disallowed_methods, reason = "a lane is bounded in time")]
    fn run(&self, time: Duration, seed: u64) -> CheckResult {
        let known = case::read_all(&self.corpus);
        for (file, case) in &known {
            let name = file.file_name().unwrap_or_default().display();
            self.replay(case).map_err(|what| format!("corpus case {name}: {what}"))?;
        }
        println!("fuzz: {} cases of the corpus pass; now seed {seed} for {} s", known.len(), time.as_secs());
        let (start, mut rounds, mut requests) = (Instant::now(), 0, 0);
        while start.elapsed() < time {
            requests += self.round(seed, rounds, start + time)?;
            rounds += 1;
        }
        println!("fuzz: {requests} requests in {rounds} rounds, and nothing failed");
        Ok(())
    }

    fn replay(&self, case: &Case) -> CheckResult {
        match case {
            Case::Yaml(parts) => read_yaml(&text_of(parts)),
            Case::Requests(requests) => {
                let target = TestServer::start(&self.server, &self.contract);
                let types = types(&target)?;
                for (at, request) in requests.iter().enumerate() {
                    target.check(request).map_err(|what| failure(at, request, &what))?;
                }
                target.check_fleet(&types)?;
                target.delete_all(&types)
            }
        }
    }

    /// Sends the requests that follow from the seed and the number of the round; returns how many.
    fn round(&self, seed: u64, round: u64, end: Instant) -> Result<usize, String> {
        let mut random = runner(seed, round);
        let file = self.corpus.join(format!("failed-{seed}-{round}.json"));
        let texts = generate::yaml();
        for _ in 0..TEXTS {
            let parts = draw_from(&texts, &mut random);
            // Saved before it is read: a text that ends this process could not be saved afterwards.
            case::write(&file, &Case::Yaml(parts.clone()));
            read_yaml(&text_of(&parts)).map_err(|what| format!("{what}; the text is in {}", file.display()))?;
        }
        std::fs::remove_file(&file).map_err(|error| error.to_string())?;

        let target = TestServer::start(&self.server, &self.contract);
        let types = types(&target)?;
        let requests = generate::request(&types);
        let mut sent: Vec<Request> = Vec::new();
        let verdict = send_all(&target, &types, end, &mut || {
            let request = draw_from(&requests, &mut random);
            sent.push(request.clone());
            request
        });
        let count = sent.len();
        verdict.map_err(|what| {
            case::write(&file, &Case::Requests(sent));
            let log: Vec<_> = target.log().lines().rev().take(5).map(str::to_owned).collect();
            format!(
                "{what}\nthe requests are in {}; FUZZ_SEED={seed} sends them again, in round {round}\nthe server's last lines, \
                 newest first:\n{}",
                file.display(),
                log.join("\n")
            )
        })?;
        Ok(count)
    }
}

/// Sends the requests of a round, and checks the whole fleet repeatedly.
#[expect(clippy::disallowed_methods, reason = "a lane is bounded in time")]
fn send_all(target: &TestServer<'_>, types: &[Value], end: Instant, draw: &mut dyn FnMut() -> Request) -> CheckResult {
    for at in 1..=REQUESTS {
        if Instant::now() > end {
            break;
        }
        let request = draw();
        target.check(&request).map_err(|what| failure(at, &request, &what))?;
        if at % CHECK_EVERY == 0 {
            target.check_fleet(types)?;
        }
    }
    target.check_fleet(types)?;
    target.delete_all(types)
}

/// The random generator of a round. It follows from the seed alone.
fn runner(seed: u64, round: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&round.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn draw_from<T: std::fmt::Debug>(strategy: &BoxedStrategy<T>, random: &mut TestRunner) -> T {
    strategy.new_tree(random).unwrap_or_else(|error| panic!("cannot generate a value: {error}")).current()
}

fn types(target: &TestServer<'_>) -> Result<Vec<Value>, String> {
    let types = target.get("/types")?.json();
    types.as_array().cloned().filter(|types| !types.is_empty()).ok_or_else(|| "GET /types answers no types".to_owned())
}

fn failure(at: usize, request: &Request, what: &str) -> String {
    let body: String = text_of(&request.body).chars().take(500).collect();
    format!("request {at}, {} {}: {what}\nits body: {body}", request.method, request.path)
}

/// Reads a text in a bounded time and with bounded memory; an error is a valid result.
#[expect(clippy::disallowed_methods, reason = "an input is bounded in time")]
fn read_yaml(text: &str) -> CheckResult {
    reset_own_peak()?;
    let start = Instant::now();
    read_and_write(text)?;
    if start.elapsed() > TEXT_TIME {
        return Err(format!("a text of {} bytes takes too long", text.len()));
    }
    let status = ProcessStatus::read(std::process::id()).map_err(|error| error.to_string())?;
    status.check_peak(&format!("the process that read a text of {} bytes", text.len()))
}

/// Checks that what was read can be written, and reads back the same.
fn read_and_write(text: &str) -> CheckResult {
    let Ok(documents) = yaml::read_all(text) else { return Ok(()) };
    for document in documents {
        let written = yaml::write(&document.value).map_err(|error| format!("a value cannot be written: {error}"))?;
        let again = yaml::read(&written).map_err(|error| format!("a written value cannot be read: {error}"))?;
        if again.value != document.value {
            return Err("a written value reads as another value".to_owned());
        }
    }
    Ok(())
}
