//! How many instructions of the server a request takes, as callgrind counts them. Unlike times, the counts hardly depend on
//! other load on the machine or on its caches.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    Bench,
    figures::grouped,
    fleet::{TYPES, cluster_dns, cluster_id, poll},
    http::HttpConnection,
    machine::Core,
    rows::{self, TableRow},
    seeded::Seeded,
    server::Server,
    writes::replicas,
};

/// How many requests are counted, after as many that are not.
const REQUESTS: usize = 200;

/// For one request.
struct Instructions {
    size: usize,
    /// By the type.
    polls: [u64; TYPES.len()],
    write: u64,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn crate::report::Section> {
    // A start takes fifty times as long under callgrind.
    rows::measure_all(bench, bench.fleets.iter().filter(|fleet| fleet.size <= bench.plan.main), measure)
}

fn measure(bench: &Bench, fleet: &Seeded) -> Instructions {
    let watched = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=counts"];
    let (server, folder) = fleet.serve_changes_under(&bench.machine, Core::Any, &watched);
    let mut connection = server.connect();
    let mut count = |ask: &mut dyn FnMut(&mut HttpConnection, usize)| {
        (0..REQUESTS).for_each(|turn| ask(&mut connection, turn));
        control(&server, "--instr=on");
        (0..REQUESTS).for_each(|turn| ask(&mut connection, REQUESTS + turn));
        control(&server, "--instr=off");
        control(&server, "--dump");
        newest(folder.path()) / REQUESTS as u64
    };
    let cluster = |turn: usize| turn * 7 % fleet.size;
    let polls = TYPES.map(|kind| {
        count(&mut |connection, turn| {
            connection.get(&poll(&cluster_dns(cluster(turn)), kind), "").unwrap().ok();
        })
    });
    let write = count(&mut |connection, turn| {
        connection.patch(&format!("/clusters/{}", cluster_id(cluster(turn))), &replicas(turn)).unwrap().ok();
    });
    Instructions { size: fleet.size, polls, write }
}

/// Sends a command to the callgrind of a server.
fn control(server: &Server, what: &str) {
    let output = Command::new("callgrind_control").arg(what).arg(server.pid().to_string()).output().unwrap();
    assert!(output.status.success(), "callgrind_control failed: {}", String::from_utf8_lossy(&output.stderr));
}

/// What was counted until the last dump.
fn newest(folder: &Path) -> u64 {
    let number = |name: &str| name.strip_prefix("counts.")?.parse::<u32>().ok();
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let last = names.filter_map(|name| number(&name)).max().unwrap();
    let text = fs::read_to_string(folder.join(format!("counts.{last}"))).unwrap();
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
    totals.trim().parse().unwrap()
}

impl TableRow for Instructions {
    const TITLE: &'static str = "Instructions of the server for one request, as callgrind counts them";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        let types = TYPES.map(|kind| format!("{kind:>20}"));
        format!("{:>8} {} {:>20}", "clusters", types.join(" "), "PATCH of a cluster")
    }

    fn line(&self) -> String {
        let cell = |count: u64| format!("{:>20}", grouped(count as f64));
        format!("{:>8} {} {}", self.size, self.polls.map(cell).join(" "), cell(self.write))
    }

    fn json(&self) -> Value {
        let polls = TYPES.iter().zip(self.polls).map(|(kind, count)| ((*kind).to_owned(), json!(count)));
        json!({"clusters": self.size, "polls": polls.collect::<serde_json::Map<_, _>>(), "write": self.write})
    }
}
