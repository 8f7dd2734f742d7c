//! The report at the end of a run: tables and targets on standard output, medians as JSON, and a chart.

use std::{fs, path::PathBuf, time::Instant};

use serde_json::{Map, Value, json};

use crate::{Bench, figures::rounded, machine};

/// The result of a section.
pub(crate) trait Section {
    fn table(&self) -> String;
    fn json(&self) -> Value;

    /// Its figures and their targets.
    fn verdicts(&self) -> Vec<TargetCheck> {
        Vec::new()
    }

    /// A chart of it, as SVG.
    fn chart(&self) -> Option<String> {
        None
    }
}

/// A figure and its target.
pub(crate) struct TargetCheck {
    what: String,
    figure: f64,
    target: f64,
    at_least: bool,
    unit: &'static str,
}

impl TargetCheck {
    pub(crate) fn at_least(what: String, figure: f64, target: f64, unit: &'static str) -> Self {
        Self { what, figure, target, at_least: true, unit }
    }

    pub(crate) fn at_most(what: String, figure: f64, target: f64, unit: &'static str) -> Self {
        Self { what, figure, target, at_least: false, unit }
    }

    fn held(&self) -> bool {
        if self.at_least { self.figure >= self.target } else { self.figure <= self.target }
    }

    fn line(&self) -> String {
        let bound = if self.at_least { "at least" } else { "at most" };
        let held = if self.held() { "held" } else { "MISSED" };
        let Self { what, figure, target, unit, .. } = self;
        format!("{what:<92} {figure:>9.2} {unit:<3}  {bound:>8} {target:>6} {unit:<3}  {held}")
    }

    fn json(&self) -> Value {
        let bound = if self.at_least { "at_least" } else { "at_most" };
        json!({"what": self.what, "figure": rounded(self.figure), bound: self.target, "unit": self.unit, "held": self.held()})
    }
}

pub(crate) struct Report {
    sections: Vec<(&'static str, Box<dyn Section>)>,
    start: Instant,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { sections: Vec::new(), start: Instant::now() }
    }

    pub(crate) fn add(&mut self, name: &'static str, section: Box<dyn Section>) {
        self.sections.push((name, section));
    }

    pub(crate) fn print(&self, bench: &Bench) {
        for (_, section) in &self.sections {
            println!("\n{}", section.table());
        }
        self.judge(bench);
        let (results, charts) = (folder(bench, "bench/results"), folder(bench, "docs/src/performance"));
        let text = serde_json::to_string_pretty(&self.json(bench)).unwrap();
        fs::write(results.join("results.json"), text + "\n").unwrap();
        for (name, chart) in self.sections.iter().filter_map(|(name, section)| Some((name, section.chart()?))) {
            fs::write(charts.join(format!("{name}.svg")), chart).unwrap();
        }
        println!("\nIn {:.0} s; results.json is in {}", self.start.elapsed().as_secs_f64(), results.display());
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        self.sections.iter().flat_map(|(_, section)| section.verdicts()).collect()
    }

    fn judge(&self, bench: &Bench) {
        let verdicts = self.verdicts();
        println!("\nTargets\n");
        for verdict in &verdicts {
            println!("{}", verdict.line());
        }
        let missed = verdicts.iter().filter(|verdict| !verdict.held()).count();
        match (bench.plan.smoke, missed) {
            (true, _) => println!("\nA smoke run only shows that measuring works: these figures have no meaning."),
            (false, 0) => println!("\nAll {} held.", verdicts.len()),
            (false, _) => println!("\n!!! {missed} OF {} WERE MISSED !!!", verdicts.len()),
        }
    }

    fn json(&self, bench: &Bench) -> Value {
        let sections: Map<_, _> =
            self.sections.iter().map(|(name, section)| ((*name).to_owned(), section.json())).collect();
        let verdicts: Value = self.verdicts().iter().map(TargetCheck::json).collect();
        let seeding = bench
            .fleets
            .iter()
            .map(|fleet| json!({"clusters": fleet.size, "seconds": rounded(fleet.seeding.as_secs_f64())}));
        json!({
            "machine": bench.machine.json(),
            "versions": machine::versions(),
            "repetitions": bench.plan.repetitions,
            "seeding": seeding.collect::<Value>(),
            "sections": sections,
            "verdicts": verdicts,
        })
    }
}

/// Only a whole run writes into the repository. The files of any other run go to the target directory.
fn folder(bench: &Bench, of_the_repository: &str) -> PathBuf {
    let folder =
        if bench.plan.is_whole() { harness::repository(of_the_repository) } else { machine::target().join("bench") };
    fs::create_dir_all(&folder).unwrap();
    folder
}
