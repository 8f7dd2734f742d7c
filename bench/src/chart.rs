//! The chart of polls: on the left this server and nginx at one size of fleet, on the right by the size of the fleet. It
//! has its own background, light or dark by the reader's setting.

use std::fmt::Write as _;

use crate::{
    figures::grouped,
    fleet::TYPES,
    polls::{PollResults, PollRow, ServerFigures},
    wrk::Manner,
};

const STYLE: &str = "
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.head { font-weight: 600; }
.quiet { fill: #59636e; }
.right { text-anchor: end; }
.middle { text-anchor: middle; }
.paper { fill: #ffffff; stroke: #d1d9e0; }
.grid { stroke: #d1d9e0; }
.ours { fill: #0969da; }
.nginx { fill: #9198a1; }
.line { fill: none; stroke-width: 2; }
.line.ours { stroke: #0969da; fill: none; }
.line.nginx { stroke: #9198a1; fill: none; stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .quiet { fill: #9198a1; }
  .paper { fill: #0d1117; stroke: #3d444d; }
  .grid { stroke: #3d444d; }
  .ours { fill: #4493f8; }
  .nginx { fill: #7d8590; }
  .line.ours { stroke: #4493f8; fill: none; }
  .line.nginx { stroke: #7d8590; fill: none; }
}
";

const WIDTH: f64 = 1_060.0;
const MARGIN: f64 = 24.0;
const TOP: f64 = 76.0;
/// Where bars begin, and how long the longest is.
const BARS: f64 = 170.0;
const LONGEST: f64 = 330.0;
const BAR: f64 = 12.0;
const ROW: f64 = 36.0;
const HEAD: f64 = 26.0;
/// The panel on the right.
const PANEL: f64 = 690.0;
const PANEL_WIDTH: f64 = 330.0;
const PANEL_HEIGHT: f64 = 110.0;

const MANNERS: [(bool, bool, &str); 4] = [
    (true, false, "kept-alive"),
    (true, true, "kept-alive, gzip asked"),
    (false, false, "one connection per poll"),
    (false, true, "one connection per poll, gzip asked"),
];

/// Draws the figures.
pub(crate) fn draw(polls: &PollResults) -> String {
    let groups = MANNERS.map(|(kept, gzip, name)| {
        let row = |kind| polls.row(polls.plan.main, Manner { kind, kept, gzip, paused: false });
        (name, TYPES.iter().filter_map(|kind| row(kind)).collect::<Vec<_>>())
    });
    let rows: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
    let height = TOP + groups.len() as f64 * HEAD + rows as f64 * ROW + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>Polls per second on one core, compared with nginx</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        WIDTH - 1.0,
        height - 1.0
    );
    let clusters = grouped(polls.plan.main as f64);
    text(&mut out, MARGIN, 34.0, "title", &format!("Polls per second on one core, {clusters} clusters"));
    legend(&mut out);
    bars(&mut out, &groups);
    text(&mut out, PANEL, 34.0, "title", "By the size of the fleet");
    text(&mut out, PANEL, 54.0, "quiet", "kept-alive, from the smallest fleet to the largest");
    for (index, kind) in TYPES.iter().enumerate() {
        panel(&mut out, polls, kind, TOP + 30.0 + index as f64 * (PANEL_HEIGHT + 52.0));
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String) {
    for (x, class, name) in
        [(MARGIN, "ours", "this server"), (MARGIN + 100.0, "nginx", "nginx, the same answers as files")]
    {
        rectangle(out, class, x, 45.0, 11.0);
        text(out, x + 16.0, 55.0, "quiet", name);
    }
}

fn bars(out: &mut String, groups: &[(&str, Vec<&PollRow>)]) {
    let rates = groups.iter().flat_map(|(_, rows)| rows).flat_map(|row| [&row.ours, &row.nginx]);
    let most = rates.map(rate).fold(1.0, f64::max);
    let mut y = TOP;
    for (name, rows) in groups {
        let note = if rows.iter().all(|row| row.is_full()) { "" } else { " (the core was not full)" };
        text(out, MARGIN, y + 16.0, "head", &format!("{name}{note}"));
        y += HEAD;
        for row in rows {
            text(out, BARS - 8.0, y + 17.0, "right", row.manner.kind);
            for (class, side, down) in [("ours", &row.ours, 0.0), ("nginx", &row.nginx, BAR + 2.0)] {
                let length = rate(side) / most * LONGEST;
                rectangle(out, class, BARS, y + down, length);
                let ratio = if class == "ours" { format!(" ({:.2} x)", row.ratio().median) } else { String::new() };
                let label = format!("{}{ratio}", grouped(rate(side)));
                text(out, BARS + length + 6.0, y + down + 10.0, "quiet", &label);
            }
            y += ROW;
        }
    }
}

/// One type: lines over sizes, each ten times the one before.
fn panel(out: &mut String, polls: &PollResults, kind: &'static str, top: f64) {
    let manner = Manner { kind, kept: true, gzip: false, paused: false };
    let rows: Vec<_> = polls.plan.sizes.iter().filter_map(|size| polls.row(*size, manner)).collect();
    let most = rows.iter().flat_map(|row| [rate(&row.ours), rate(&row.nginx)]).fold(1.0, f64::max);
    let x = |index: usize| PANEL + 20.0 + index as f64 * (PANEL_WIDTH - 60.0) / (rows.len() - 1).max(1) as f64;
    let y = |rate: f64| top + PANEL_HEIGHT - rate / most * (PANEL_HEIGHT - 14.0);
    let floor = top + PANEL_HEIGHT;
    text(out, PANEL, top - 6.0, "head", kind);
    writeln!(out, "<line class=\"grid\" x1=\"{PANEL}\" y1=\"{floor}\" x2=\"{}\" y2=\"{floor}\"/>", PANEL + PANEL_WIDTH)
        .unwrap();
    for (index, row) in rows.iter().enumerate() {
        text(out, x(index), floor + 16.0, "quiet middle", &grouped(row.size as f64));
    }
    for (class, side) in [("nginx", nginx as fn(&PollRow) -> &ServerFigures), ("ours", ours)] {
        let point = |(index, row): (usize, &&PollRow)| format!("{:.1},{:.1}", x(index), y(rate(side(row))));
        let points: Vec<_> = rows.iter().enumerate().map(point).collect();
        writeln!(out, "<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" ")).unwrap();
        if let Some((index, row)) = rows.iter().enumerate().next_back() {
            let rate = rate(side(row));
            text(out, x(index) + 8.0, y(rate) + 4.0, "quiet", &grouped(rate));
        }
    }
}

fn ours(row: &PollRow) -> &ServerFigures {
    &row.ours
}

fn nginx(row: &PollRow) -> &ServerFigures {
    &row.nginx
}

fn rate(side: &ServerFigures) -> f64 {
    side.per_second.median
}

fn text(out: &mut String, x: f64, y: f64, class: &str, text: &str) {
    writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>").unwrap();
}

fn rectangle(out: &mut String, class: &str, x: f64, y: f64, width: f64) {
    writeln!(out, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>")
        .unwrap();
}
