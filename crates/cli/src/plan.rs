//! A plan for people: how many clusters, by environment, and what each would get differently.

use std::{collections::BTreeMap, fmt::Write as _};

use model::{ClusterPlan, DocumentPlan, Id, InputPlan, Plan, Totals};

use crate::{
    escape::one_line,
    failure::Result,
    output::{BAD, CHANGED, GOOD, STRONG, Shown},
    table::Table,
};

/// More lines than these are counted and not told.
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
    text += &grouped(plan.documents.iter().map(|document| Told {
        loses: document.op != "put" || is_unguarded(document),
        what: happening(document),
        id: document.id.as_str(),
    }));
    if plan.clusters.is_empty() {
        text.push_str("No cluster would get anything else.\n");
        return text;
    }
    let _ = writeln!(text, "{STRONG}{} would get something else{STRONG:#}", counted(plan.clusters.len(), "cluster"));
    text += &totals(plan);
    text += &grouped(plan.clusters.iter().map(|cluster| Told {
        loses: cluster.inputs.values().any(|inputs| !inputs.removed.is_empty()),
        what: inputs(cluster),
        id: cluster.id.as_str(),
    }));
    let removed = plan.removed();
    if removed > 0 {
        let _ = writeln!(text, "{BAD}Flux deletes what {} rendered.{BAD:#}", counted(removed, "removed input"));
    }
    if let Some(refused) = &plan.refused {
        let _ = writeln!(
            text,
            "{BAD}The server refuses this: {} would go from clusters with deletion_protection.{BAD:#} \
             --allow-removals {} allows it.",
            counted(refused.removed, "input"),
            refused.removed
        );
    }
    text
}

/// `1 cluster`, `2 clusters`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What would happen to a document, without its id.
fn happening(document: &DocumentPlan) -> String {
    let kind = one_line(document.kind.as_str());
    match (&*document.op, document.diff.as_slice()) {
        ("retire", _) => format!("{kind} {BAD}is decommissioned{BAD:#}"),
        ("remove", _) => format!("{kind} {BAD}is removed{BAD:#}"),
        (_, [only]) if only.pointer.is_empty() && only.before.is_none() => format!("{kind} {GOOD}is created{GOOD:#}"),
        (_, diff) => {
            let guard =
                if is_unguarded(document) { format!(" {BAD}is not protected any more{BAD:#},") } else { String::new() };
            // What stands in a document must not be able to write over the plan.
            let pointers: Vec<_> = diff.iter().map(|difference| one_line(&difference.pointer)).collect();
            format!("{kind}{guard} {CHANGED}changes{CHANGED:#} {}", shortened(&pointers, 3))
        }
    }
}

/// What happens to one document or cluster.
struct Told<'a> {
    loses: bool,
    what: String,
    id: &'a str,
}

/// What happens to several in the same way is told once, with their ids. Losses come first, and are told in full.
fn grouped<'a>(told: impl Iterator<Item = Told<'a>>) -> String {
    let mut groups: BTreeMap<(bool, String), Vec<&str>> = BTreeMap::new();
    for Told { loses, what, id } in told {
        groups.entry((!loses, what)).or_default().push(id);
    }
    let (losses, others): (Vec<_>, Vec<_>) = groups.iter().partition(|((harmless, _), _)| !harmless);
    let mut lines: Vec<_> = losses.iter().map(|((_, what), ids)| format!("  {what}: {}\n", ids.join(" "))).collect();
    lines.extend(others.iter().take(LISTED).map(|((_, what), ids)| format!("  {what}: {}\n", shortened(ids, 4))));
    let more = others.len().saturating_sub(LISTED);
    lines.extend((more > 0).then(|| format!("  … and {more} more lines without a loss\n")));
    lines.concat()
}

/// Whether clusters would lose something, or the guard against losing everything.
pub(crate) fn loses(plan: &Plan) -> bool {
    plan.removed() > 0 || plan.documents.iter().any(|document| document.op == "retire" || is_unguarded(document))
}

fn is_unguarded(document: &DocumentPlan) -> bool {
    let guard = document.diff.iter().find(|difference| difference.pointer == "/deletion_protection");
    let before = guard.and_then(|guard| guard.before.as_ref());
    before.is_some_and(|before| before.get() == "true")
}

/// Whether two plans, made at different times, would do the same.
pub(crate) fn is_same(one: &Plan, other: &Plan) -> Result<bool> {
    let done = |plan: &Plan| serde_json::to_value((&plan.documents, &plan.clusters));
    Ok(done(one)? == done(other)?)
}

fn totals(plan: &Plan) -> String {
    let rows = || plan.totals.iter();
    let number = |of: fn(&Totals) -> usize| rows().map(move |(_, totals)| of(totals).to_string());
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
    let of_type = |(path, plan): (&String, &InputPlan)| {
        let marked = |ids: &[Id], mark: char, style: anstyle::Style| {
            let ids: Vec<_> = ids.iter().map(|id| format!("{mark}{id}")).collect();
            // What goes is told in full.
            let most = if mark == '-' { ids.len() } else { 5 };
            (!ids.is_empty()).then(|| format!(" {style}{}{style:#}", shortened(&ids, most)))
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
