//! Tables like those of `kubectl`: columns separated by spaces, no lines. On a terminal, the widest columns are
//! shortened until a row fits a line; ids are never cut, because people copy them.

use unicode_width::UnicodeWidthStr as _;

use crate::{escape::one_line, output::STRONG};

const GAP: usize = 2;
/// The minimum width of a shortened column.
const MIN_WIDTH: usize = 8;

/// A heading and its cells.
struct Column {
    heading: String,
    wide: bool,
    is_key: bool,
    cells: Vec<String>,
}

/// Rows of text under headings.
#[derive(Default)]
pub(crate) struct TextTable {
    columns: Vec<Column>,
    notes: Vec<String>,
}

impl TextTable {
    /// Adds a column whose cells may be cut.
    pub(crate) fn column(mut self, heading: &str, cells: impl IntoIterator<Item = String>) -> Self {
        self.push(heading, false, false, cells);
        self
    }

    /// Adds a column whose cells are never cut.
    pub(crate) fn key(mut self, heading: &str, cells: impl IntoIterator<Item = String>) -> Self {
        self.push(heading, false, true, cells);
        self
    }

    /// Adds a column that only `-o wide` shows.
    pub(crate) fn wide(mut self, heading: &str, cells: impl IntoIterator<Item = String>) -> Self {
        self.push(heading, true, false, cells);
        self
    }

    /// Adds a line below the table.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds lines of a name and a value.
    pub(crate) fn facts(self, facts: &[(&str, String)]) -> Self {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        facts.iter().fold(self, |table, (name, text)| table.note(format!("{name:<width$}  {}", one_line(text))))
    }

    fn push(&mut self, heading: &str, wide: bool, is_key: bool, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| one_line(&cell)).collect();
        self.columns.push(Column { heading: heading.to_owned(), wide, is_key, cells });
    }

    /// The table as text, shortened to the width of the terminal if one is given.
    pub(crate) fn text(&self, wide: bool, width: Option<usize>) -> String {
        let columns: Vec<_> = self.columns.iter().filter(|column| wide || !column.wide).collect();
        let rows = columns.first().map_or(0, |column| column.cells.len());
        let mut text = String::new();
        if rows > 0 {
            let widths = widths(&columns, width);
            let headings = columns.iter().map(|column| column.heading.as_str());
            text = format!("{STRONG}{}{STRONG:#}\n", row(headings, &widths));
            for at in 0..rows {
                text += &row(columns.iter().map(|column| column.cells[at].as_str()), &widths);
                text.push('\n');
            }
        }
        for note in &self.notes {
            text += note;
            text.push('\n');
        }
        text
    }
}

fn widths(columns: &[&Column], width: Option<usize>) -> Vec<usize> {
    let needed = |column: &&Column| column.cells.iter().chain([&column.heading]).map(|cell| cell.width()).max();
    let mut widths: Vec<usize> = columns.iter().map(|column| needed(column).unwrap_or(0)).collect();
    let Some(width) = width else { return widths };
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let least = |at: usize| columns[at].heading.width().max(MIN_WIDTH);
        let shortenable = (0..columns.len()).filter(|&at| !columns[at].is_key && widths[at] > least(at));
        let Some(widest) = shortenable.max_by_key(|&at| widths[at]) else { break };
        widths[widest] -= 1;
    }
    widths
}

fn row<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.zip(widths) {
        let cell = fit(cell, *width);
        line += &cell;
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + GAP));
    }
    line.truncate(line.trim_end().len());
    line
}

/// The text, or as much of it as fits.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    // Characters may be wider together than alone, so the whole text is measured.
    let mut ends = text.char_indices().map(|(at, _)| at).filter(|&at| text[..at].width() <= room);
    format!("{}…", &text[..ends.next_back().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        TextTable::default()
            .key("ID", ["demo-cluster-01".to_owned(), "b".to_owned()])
            .column("DNS", ["demo-cluster-01.k8s.example.com".to_owned(), "b.example.com".to_owned()])
            .wide("LABELS", ["region=eu".to_owned(), "line\nbreak".to_owned()])
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned_with_their_headings() {
        assert_eq!(
            plain(&table().text(true, None)),
            "ID               DNS                              LABELS\n\
             demo-cluster-01  demo-cluster-01.k8s.example.com  region=eu\n\
             b                b.example.com                    line break\n"
        );
    }

    #[test]
    fn a_narrow_terminal_shortens_columns_that_are_not_keys() {
        assert_eq!(
            plain(&table().text(false, Some(30))),
            "ID               DNS\n\
             demo-cluster-01  demo-cluster…\n\
             b                b.example.com\n"
        );
    }

    #[test]
    fn wide_characters_are_counted_as_wide() {
        assert_eq!(fit("日本語日本語", 8), "日本語…");
        let clouds = "☁️☁️☁️☁️☁️☁️";
        let table = TextTable::default().key("ID", ["a".to_owned()]).column("REASON", [clouds.to_owned()]);
        assert_eq!(plain(&table.text(false, Some(12))), "ID  REASON\na   ☁️☁️☁️☁…\n");
    }

    #[test]
    fn a_table_without_rows_has_no_headings() {
        assert_eq!(TextTable::default().key("ID", []).note("nothing").text(false, None), "nothing\n");
    }
}
