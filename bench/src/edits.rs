//! A change of the catalogue that reaches a third of the fleet: until it is acknowledged, and until the first poll that
//! shows it has been answered.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{
    Bench,
    catalogue::component_id,
    figures::{Spread, milliseconds},
    fleet::{TYPES, cluster_dns, first_with, poll},
    machine::Core,
    report::Section,
    rows::{self, TableRow},
    seeded::Seeded,
};

/// A component on which no other depends.
const COMPONENT: usize = 7;

/// Times are in milliseconds from the moment in which the change was sent.
struct Edits {
    size: usize,
    /// Clusters that have the component.
    reached: usize,
    acknowledged: Spread,
    seen: Spread,
    polls: usize,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    rows::measure_all(bench, bench.fleets.iter().filter(|fleet| fleet.size >= bench.plan.main), measure)
}

fn measure(bench: &Bench, fleet: &Seeded) -> Edits {
    let (server, _folder) = fleet.serve_changes(&bench.machine, Core::Any);
    let (mut operator, mut cluster) = (server.connect(), server.connect());
    let component = component_id(COMPONENT);
    let list = operator.get(&format!("/clusters?platform_components={component}&limit=1"), "").unwrap().ok();
    let reached = list.header("x-total-count").unwrap().parse().unwrap();
    let path = poll(&cluster_dns(first_with(COMPONENT)), TYPES[0]);
    cluster.get(&path, "").unwrap().ok();

    let (mut acknowledged, mut seen, mut polls) = (Vec::new(), Vec::new(), 0);
    for turn in 0..bench.plan.repetitions {
        let tag = format!("v99.0.{turn}");
        let body = json!({"oci_tag": tag}).to_string();
        let start = Instant::now();
        operator.patch(&format!("/platform_components/{component}"), &body).unwrap().ok();
        acknowledged.push(milliseconds(start.elapsed()));
        loop {
            let answer = cluster.get(&path, "").unwrap().ok();
            polls += 1;
            let taken = start.elapsed();
            assert!(taken < harness::LONG, "the change is never seen");
            if String::from_utf8(answer.body).unwrap().contains(&tag) {
                seen.push(milliseconds(taken));
                break;
            }
        }
    }
    Edits { size: fleet.size, reached, acknowledged: Spread::new(acknowledged), seen: Spread::new(seen), polls }
}

impl TableRow for Edits {
    const TITLE: &'static str = "A change of a component of the catalogue (ms; median, and from the least to the most)";

    fn size(&self) -> usize {
        self.size
    }

    fn heads() -> String {
        let heads = ["clusters", "have it", "acknowledged", "polled", "polls for it"];
        let [clusters, reached, acknowledged, polled, polls] = heads;
        format!("{clusters:>8} {reached:>8} {acknowledged:>30} {polled:>30} {polls:>12}")
    }

    fn line(&self) -> String {
        let cell = |spread: &Spread| format!("{:.2} ({:.2}-{:.2})", spread.median, spread.min, spread.max);
        let (acknowledged, seen) = (cell(&self.acknowledged), cell(&self.seen));
        format!("{:>8} {:>8} {acknowledged:>30} {seen:>30} {:>12}", self.size, self.reached, self.polls)
    }

    fn json(&self) -> Value {
        json!({
            "clusters": self.size,
            "clusters_with_it": self.reached,
            "acknowledged_ms": self.acknowledged.json(),
            "first_poll_ms": self.seen.json(),
            "polls": self.polls,
        })
    }
}
