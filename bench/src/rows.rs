//! Sections with one table, with a row for each size of fleet.

use serde_json::Value;

use crate::{
    Bench,
    report::{Section, TargetCheck},
    seeded::Seeded,
};

/// The results for one fleet.
pub(crate) trait TableRow {
    /// The title of the table.
    const TITLE: &'static str;

    /// Clusters of the fleet.
    fn size(&self) -> usize;
    fn heads() -> String;
    fn line(&self) -> String;
    fn json(&self) -> Value;

    /// Its figures that have a target, for a fleet of this size or for the main one.
    fn verdicts(&self, _is_main: bool) -> Vec<TargetCheck> {
        Vec::new()
    }
}

struct Rows<R> {
    rows: Vec<R>,
    main: usize,
}

/// Measures each fleet, one after the other.
pub(crate) fn measure_all<'a, R: TableRow + 'static>(
    bench: &Bench,
    fleets: impl Iterator<Item = &'a Seeded>,
    measure: fn(&Bench, &Seeded) -> R,
) -> Box<dyn Section> {
    Box::new(Rows { rows: fleets.map(|fleet| measure(bench, fleet)).collect(), main: bench.plan.main })
}

impl<R: TableRow> Section for Rows<R> {
    fn table(&self) -> String {
        let lines: Vec<_> = self.rows.iter().map(R::line).collect();
        format!("{}\n\n{}\n{}\n", R::TITLE, R::heads(), lines.join("\n"))
    }

    fn json(&self) -> Value {
        self.rows.iter().map(R::json).collect()
    }

    fn verdicts(&self) -> Vec<TargetCheck> {
        self.rows.iter().flat_map(|row| row.verdicts(row.size() == self.main)).collect()
    }
}
