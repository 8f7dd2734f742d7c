//! A change of the catalogue that reaches a third of the fleet: until it is acknowledged, and until the first poll that
//! shows it has been answered.

use std::{fmt::Write as _, time::Instant};

use serde_json::{Value, json};

use crate::{
    Bench,
    catalogue::component_id,
    figures::{Spread, milliseconds},
    fleet::{TYPES, cluster_dns, first_with, poll},
    machine::Core,
    report::Section,
    seeded::Seeded,
};

/// One on which nothing else depends.
const COMPONENT: usize = 7;

struct Edits(Vec<Row>);

/// Times are in milliseconds from the moment in which the change was sent.
struct Row {
    size: usize,
    /// Clusters that have the component.
    reached: usize,
    acknowledged: Spread,
    seen: Spread,
    polls: usize,
}

pub(crate) fn run(bench: &Bench) -> Box<dyn Section> {
    let large = bench.fleets.iter().filter(|fleet| fleet.size >= bench.plan.main);
    Box::new(Edits(large.map(|fleet| measure(bench, fleet)).collect()))
}

fn measure(bench: &Bench, fleet: &Seeded) -> Row {
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
    Row { size: fleet.size, reached, acknowledged: Spread::new(acknowledged), seen: Spread::new(seen), polls }
}

impl Section for Edits {
    fn table(&self) -> String {
        let mut table =
            String::from("A change of a component of the catalogue (ms; median, and from the least to the most)\n\n");
        let heads = ["clusters", "have it", "acknowledged", "polled", "polls for it"];
        let [clusters, reached, acknowledged, polled, polls] = heads;
        writeln!(table, "{clusters:>8} {reached:>8} {acknowledged:>30} {polled:>30} {polls:>12}").unwrap();
        let told = |spread: &Spread| format!("{:.2} ({:.2}-{:.2})", spread.median, spread.min, spread.max);
        for row in &self.0 {
            let (acknowledged, seen) = (told(&row.acknowledged), told(&row.seen));
            writeln!(table, "{:>8} {:>8} {acknowledged:>30} {seen:>30} {:>12}", row.size, row.reached, row.polls)
                .unwrap();
        }
        table
    }

    fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "clusters": row.size,
                "clusters_with_it": row.reached,
                "acknowledged_ms": row.acknowledged.json(),
                "first_poll_ms": row.seen.json(),
                "polls": row.polls,
            })
        };
        self.0.iter().map(row).collect()
    }
}
