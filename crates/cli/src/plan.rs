//! A plan for people: how many clusters, by environment, and what each would get differently.

use std::fmt::Write as _;

use client::{ClusterPlan, Plan, Totals};

use crate::{
    failure::Result,
    output::{BAD, CHANGED, GOOD, STRONG, Shown},
    table::Table,
};

/// More clusters than these are counted and not listed.
const LISTED: usize = 20;

/// The plan as an answer.
pub(crate) fn shown(plan: &Plan) -> Result<Shown> {
    let names = plan.documents.iter().map(|document| format!("{}/{}", document.kind, document.id)).collect();
    let table = Table::default().note(text(plan).trim_end());
    Ok(Shown { value: serde_json::to_value(plan)?, names, table })
}

/// The plan as a text.
pub(crate) fn text(plan: &Plan) -> String {
    if plan.documents.is_empty() {
        return "Nothing would change.\n".to_owned();
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{STRONG}{} would be written{STRONG:#}", counted(plan.documents.len(), "document"));
    for document in plan.documents.iter().take(LISTED) {
        let what = match (document.op.as_str(), document.diff.as_slice()) {
            ("retire", _) => format!("{BAD}is decommissioned{BAD:#}"),
            ("remove", _) => format!("{BAD}is removed{BAD:#}"),
            (_, [only]) if only.pointer.is_empty() && only.before.is_none() => format!("{GOOD}is created{GOOD:#}"),
            (_, diff) => {
                let pointers: Vec<_> = diff.iter().map(|difference| difference.pointer.as_str()).collect();
                format!("{CHANGED}changes{CHANGED:#} {}", shortened(&pointers, 3))
            }
        };
        let _ = writeln!(text, "  {}/{} {what}", document.kind, document.id);
    }
    let _ = write!(text, "{}", more(plan.documents.len()));
    if plan.clusters.is_empty() {
        text.push_str("No cluster would get anything else.\n");
        return text;
    }
    let _ = writeln!(text, "{STRONG}{} would get something else{STRONG:#}", counted(plan.clusters.len(), "cluster"));
    text += &totals(plan);
    for cluster in plan.clusters.iter().take(LISTED) {
        let _ = writeln!(text, "  {}  {}", cluster.id, inputs(cluster));
    }
    let _ = write!(text, "{}", more(plan.clusters.len()));
    let removed = plan.removed();
    if removed > 0 {
        let _ = writeln!(
            text,
            "{BAD}Flux deletes what {} rendered.{BAD:#}",
            counted(usize::try_from(removed).unwrap_or(usize::MAX), "removed input")
        );
    }
    text
}

/// `1 cluster`, `2 clusters`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn more(all: usize) -> String {
    all.checked_sub(LISTED).filter(|more| *more > 0).map_or_else(String::new, |more| format!("  … and {more} more\n"))
}

fn totals(plan: &Plan) -> String {
    let rows = || plan.totals.iter();
    let number = |of: fn(&Totals) -> u64| rows().map(move |(_, totals)| of(totals).to_string());
    Table::default()
        .key("ENVIRONMENT", rows().map(|(environment, _)| environment.clone()))
        .key("CLUSTERS", number(|totals| totals.clusters))
        .key("ADDED", number(|totals| totals.added))
        .key("CHANGED", number(|totals| totals.changed))
        .key("REMOVED", number(|totals| totals.removed))
        .text(false, None)
}

/// `platform-components +grafana ~podinfo -traefik`
fn inputs(cluster: &ClusterPlan) -> String {
    let of_type = |(path, plan): (&String, &client::InputPlan)| {
        let marked = |ids: &[String], mark: char, style: anstyle::Style| {
            let ids: Vec<_> = ids.iter().map(|id| format!("{mark}{id}")).collect();
            (!ids.is_empty()).then(|| format!(" {style}{}{style:#}", shortened(&ids, 5)))
        };
        let parts =
            [marked(&plan.added, '+', GOOD), marked(&plan.changed, '~', CHANGED), marked(&plan.removed, '-', BAD)];
        format!("{path}{}", parts.into_iter().flatten().collect::<String>())
    };
    cluster.inputs.iter().map(of_type).collect::<Vec<_>>().join("; ")
}

/// The first few of a list, and how many more there are.
pub(crate) fn shortened<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let first: Vec<_> = items.iter().take(most).map(AsRef::as_ref).collect();
    match items.len().checked_sub(most) {
        Some(more) if more > 0 => format!("{} (+{more})", first.join(" ")),
        _ => first.join(" "),
    }
}
