//! What a terminal would obey is written out before it gets there.
//!
//! Names, reasons, labels and error messages are texts of other people. A terminal obeys control characters in them: it moves the
//! cursor over a plan, hides what follows, sets its title. Characters that turn the direction of writing let a reader see another
//! order than what is there, and invisible ones make two names look alike. So each is shown as its number, `\u001b`, which is also how JSON writes it. Of the tool itself, only
//! its own colours pass. What goes into a pipe as JSON or YAML is left as it is: a program wants the text, and no terminal reads it.

use std::{borrow::Cow, fmt::Write as _};

use anstyle::Style;
use model::is_hidden;

use crate::output::{BAD, CHANGED, GOOD, STRONG};

/// The tool's own colours.
const STYLES: [Style; 4] = [BAD, GOOD, CHANGED, STRONG];

fn write_out(to: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = match u32::from(c) {
        number @ ..=0xffff => write!(to, "\\u{number:04x}"),
        number => write!(to, "\\U{number:08x}"),
    };
}

/// A text of somebody else in one line: white space becomes spaces, and everything else that a terminal obeys is written out.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if is_hidden(c) => write_out(&mut line, c),
            c => line.push(c),
        }
    }
    line
}

/// A text as it may be shown on a terminal: lines, tabs and the tool's own colours pass, and everything else that a terminal obeys
/// is written out.
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
            None => write_out(&mut shown, c),
        }
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out_and_the_own_colours_pass() {
        let hostile = "a\u{1b}[2Jb\rc\u{9b}31md\u{202e}e\u{7f}\u{2069}\u{61c}";
        assert_eq!(one_line(hostile), "a\\u001b[2Jb c\\u009b31md\\u202ee\\u007f\\u2069\\u061c");
        let shown = for_terminal(hostile);
        assert_eq!(shown, "a\\u001b[2Jb\\u000dc\\u009b31md\\u202ee\\u007f\\u2069\\u061c");
        let own = format!("{BAD}gone{BAD:#}\n\t{STRONG}é{STRONG:#} {GOOD}x{GOOD:#} {CHANGED}日本{CHANGED:#}\n");
        assert_eq!(for_terminal(&own), own);
        assert_eq!(for_terminal("\u{1b}[8mhidden"), "\\u001b[8mhidden");
        assert_eq!(one_line("po\u{200b}d\u{feff}\u{e0041}"), "po\\u200bd\\ufeff\\U000e0041");
    }
}
