//! The plan of a change as text: which documents change, how many clusters by environment, and how their inputs change.

use std::{collections::BTreeMap, fmt::Write as _};

use model::{ClusterPlan, DocumentPlan, Id, InputPlan, Plan, Totals};

use crate::{
    escape::one_line,
    failure::Result,
    output::{BAD, CHANGED, CommandOutput, GOOD, STRONG},
    table::TextTable,
};

/// More lines than these are counted and not shown.
const MAX_LINES: usize = 20;

/// The plan as output of a command.
pub(crate) fn command_output(plan: &Plan) -> Result<CommandOutput> {
    let names = plan.documents.iter().map(|document| format!("{}/{}", document.kind, document.id)).collect();
    let table = TextTable::default().note(text(plan).trim_end());
    Ok(CommandOutput { value: serde_json::to_value(plan)?, names, table })
}

/// The plan as a text.
pub(crate) fn text(plan: &Plan) -> String {
    if plan.documents.is_empty() {
        return "Nothing would change.\n".to_owned();
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{STRONG}{} would be written{STRONG:#}", counted(plan.documents.len(), "document"));
    text += &grouped(plan.documents.iter().map(|document| PlanEntry {
        is_loss: document.op != "put" || lifts_protection(document),
        description: document_change(document),
        id: document.id.as_str(),
    }));
    if plan.clusters.is_empty() {
        text.push_str("No cluster would get changed inputs.\n");
        return text;
    }
    let _ = writeln!(text, "{STRONG}{} would get changed inputs{STRONG:#}", counted(plan.clusters.len(), "cluster"));
    text += &totals(plan);
    text += &grouped(plan.clusters.iter().map(|cluster| PlanEntry {
        is_loss: cluster.inputs.values().any(|inputs| !inputs.removed.is_empty()),
        description: input_changes(cluster),
        id: cluster.id.as_str(),
    }));
    let removed = plan.removed();
    if removed > 0 {
        let _ = writeln!(text, "{BAD}Flux deletes the objects of {}.{BAD:#}", counted(removed, "removed input"));
    }
    if let Some(refused) = &plan.refused {
        let _ = writeln!(
            text,
            "{BAD}The server refuses this change: it removes {} from clusters with deletion_protection.{BAD:#} \
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

/// The change of a document, without its id.
fn document_change(document: &DocumentPlan) -> String {
    let kind = one_line(document.kind.as_str());
    match (&*document.op, document.diff.as_slice()) {
        ("retire", _) => format!("{kind} {BAD}is decommissioned{BAD:#}"),
        ("remove", _) => format!("{kind} {BAD}is removed{BAD:#}"),
        (_, [only]) if only.pointer.is_empty() && only.before.is_none() => format!("{kind} {GOOD}is created{GOOD:#}"),
        (_, diff) => {
            let protection = if lifts_protection(document) {
                format!(" {BAD}loses deletion_protection{BAD:#},")
            } else {
                String::new()
            };
            // Text of a document must not overwrite the plan on the terminal.
            let pointers: Vec<_> = diff.iter().map(|difference| one_line(&difference.pointer)).collect();
            format!("{kind}{protection} {CHANGED}changes{CHANGED:#} {}", shortened(&pointers, 3))
        }
    }
}

/// The change of one document or cluster.
struct PlanEntry<'a> {
    is_loss: bool,
    description: String,
    id: &'a str,
}

/// Groups equal changes into one line with all ids. Losses come first and are never shortened.
fn grouped<'a>(entries: impl Iterator<Item = PlanEntry<'a>>) -> String {
    let mut groups: BTreeMap<(bool, String), Vec<&str>> = BTreeMap::new();
    for PlanEntry { is_loss, description, id } in entries {
        groups.entry((!is_loss, description)).or_default().push(id);
    }
    let (losses, others): (Vec<_>, Vec<_>) = groups.iter().partition(|((harmless, _), _)| !harmless);
    let mut lines: Vec<_> =
        losses.iter().map(|((_, description), ids)| format!("  {description}: {}\n", ids.join(" "))).collect();
    lines.extend(
        others
            .iter()
            .take(MAX_LINES)
            .map(|((_, description), ids)| format!("  {description}: {}\n", shortened(ids, 4))),
    );
    let more = others.len().saturating_sub(MAX_LINES);
    lines.extend((more > 0).then(|| format!("  … and {more} more lines, none of them a removal\n")));
    lines.concat()
}

/// Whether clusters would lose inputs, or the protection against losing all of them.
pub(crate) fn has_loss(plan: &Plan) -> bool {
    plan.removed() > 0 || plan.documents.iter().any(|document| document.op == "retire" || lifts_protection(document))
}

fn lifts_protection(document: &DocumentPlan) -> bool {
    let guard = document.diff.iter().find(|difference| difference.pointer == "/deletion_protection");
    let before = guard.and_then(|guard| guard.before.as_ref());
    before.is_some_and(|before| before.get() == "true")
}

/// Whether two plans, computed at different revisions, make the same changes.
pub(crate) fn is_same(one: &Plan, other: &Plan) -> Result<bool> {
    let changes = |plan: &Plan| serde_json::to_value((&plan.documents, &plan.clusters));
    Ok(changes(one)? == changes(other)?)
}

fn totals(plan: &Plan) -> String {
    let rows = || plan.totals.iter();
    let number = |of: fn(&Totals) -> usize| rows().map(move |(_, totals)| of(totals).to_string());
    TextTable::default()
        .key("ENVIRONMENT", rows().map(|(environment, _)| environment.clone()))
        .key("CLUSTERS", number(|totals| totals.clusters))
        .key("ADDED", number(|totals| totals.added))
        .key("CHANGED", number(|totals| totals.changed))
        .key("REMOVED", number(|totals| totals.removed))
        .text(false, None)
}

/// `platform-components +grafana ~podinfo -traefik`
fn input_changes(cluster: &ClusterPlan) -> String {
    let of_type = |(path, plan): (&String, &InputPlan)| {
        let marked = |ids: &[Id], mark: char, style: anstyle::Style| {
            let ids: Vec<_> = ids.iter().map(|id| format!("{mark}{id}")).collect();
            // Removed ids are never shortened.
            let most = if mark == '-' { ids.len() } else { 5 };
            (!ids.is_empty()).then(|| format!(" {style}{}{style:#}", shortened(&ids, most)))
        };
        let parts =
            [marked(&plan.added, '+', GOOD), marked(&plan.changed, '~', CHANGED), marked(&plan.removed, '-', BAD)];
        format!("{path}{}", parts.into_iter().flatten().collect::<String>())
    };
    cluster.inputs.iter().map(of_type).collect::<Vec<_>>().join("; ")
}

/// The first items of a list, and how many more there are.
pub(crate) fn shortened<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let first: Vec<_> = items.iter().take(most).map(AsRef::as_ref).collect();
    match items.len().checked_sub(most) {
        Some(more) if more > 0 => format!("{} (+{more})", first.join(" ")),
        _ => first.join(" "),
    }
}
