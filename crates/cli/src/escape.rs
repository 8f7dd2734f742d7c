//! Escapes control characters and invisible characters before text is written to a terminal.
//!
//! Names, reasons, labels and error messages are untrusted text. Control characters in them could move the cursor over
//! a plan, hide text or set the title of the terminal. Characters that change the writing direction could reorder the
//! text, and invisible characters could make two names look equal. So each of them is shown as its number, such as
//! `\u001b`, as in JSON. Only the colours of this tool are passed through. JSON and YAML in a pipe are not changed,
//! because a program reads them.

use std::{borrow::Cow, fmt::Write as _};

use anstyle::Style;
use model::is_hidden;

use crate::output::{BAD, CHANGED, GOOD, STRONG};

/// The colours of this tool, which are not escaped.
const STYLES: [Style; 4] = [BAD, GOOD, CHANGED, STRONG];

fn escape_into(to: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = match u32::from(c) {
        number @ ..=0xffff => write!(to, "\\u{number:04x}"),
        number => write!(to, "\\U{number:08x}"),
    };
}

/// Untrusted text as one line: line breaks and tabs become spaces, other control and invisible characters are escaped.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if is_hidden(c) => escape_into(&mut line, c),
            c => line.push(c),
        }
    }
    line
}

/// Text for a terminal: line breaks, tabs and the colours of this tool are kept, other control and invisible characters
/// are escaped.
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    let passes = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(passes) {
        return Cow::Borrowed(text);
    }
    let own: Vec<_> =
        STYLES.iter().flat_map(|style| [style.render().to_string(), style.render_reset().to_string()]).collect();
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let colour = own.iter().find(|colour| rest.starts_with(colour.as_str()));
        let length = colour.map_or(c.len_utf8(), String::len);
        match colour {
            Some(colour) => shown.push_str(colour),
            None if passes(c) => shown.push(c),
            None => escape_into(&mut shown, c),
        }
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_colours_of_this_tool_are_kept() {
        let hostile = "a\u{1b}[2Jb\rc\u{9b}31md\u{202e}e\u{7f}\u{2069}\u{61c}";
        assert_eq!(one_line(hostile), "a\\u001b[2Jb c\\u009b31md\\u202ee\\u007f\\u2069\\u061c");
        let shown = for_terminal(hostile);
        assert_eq!(shown, "a\\u001b[2Jb\\u000dc\\u009b31md\\u202ee\\u007f\\u2069\\u061c");
        let own = format!("{BAD}removed{BAD:#}\n\t{STRONG}é{STRONG:#} {GOOD}x{GOOD:#} {CHANGED}日本{CHANGED:#}\n");
        assert_eq!(for_terminal(&own), own);
        assert_eq!(for_terminal("\u{1b}[8mhidden"), "\\u001b[8mhidden");
        assert_eq!(one_line("po\u{200b}d\u{feff}\u{e0041}"), "po\\u200bd\\ufeff\\U000e0041");
    }
}
