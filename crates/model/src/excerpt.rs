//! Values from users in messages: truncated, and without characters that move a cursor or hide text.
//!
//! A message, an answer or a log line names the wrong value; it never contains the whole value, which may be a megabyte, and never
//! a line break or a control character, which could fake a log line.

use std::fmt::{self, Display, Write as _};

/// How many characters of a value a message shows.
const MAX_VALUE: usize = 200;

/// A value in a message: `format!("\"{}\" is not a number", Excerpt(&text))`.
#[derive(Debug)]
pub struct Excerpt<T>(pub T);

impl<T: Display> Display for Excerpt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Truncating { to: f, left: MAX_VALUE, is_cut: false };
        match write!(writer, "{}", self.0) {
            // The writer's error ends the formatting of the value.
            Err(fmt::Error) if writer.is_cut => writer.to.write_char('…'),
            done => done,
        }
    }
}

/// A whole sentence of at most so many characters, without control characters.
#[must_use]
pub fn sentence(text: String, most: usize) -> String {
    if text.len() <= most && !text.contains(is_hidden) {
        return text;
    }
    let mut cut = String::new();
    let mut writer = Truncating { to: &mut cut, left: most, is_cut: false };
    if writer.write_str(&text).is_err() {
        cut.push('…');
    }
    cut
}

/// A whole text for a terminal or a log, without control characters.
#[must_use]
pub fn printable(text: String) -> String {
    sentence(text, usize::MAX)
}

/// The beginning of a text that is shown to programs as it is.
#[must_use]
pub fn beginning(mut text: String, most: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Control characters, characters that change the direction or the line of the text around them, and invisible ones: two
/// different names must not look the same.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    const INVISIBLE: [char; 6] = ['\u{ad}', '\u{61c}', '\u{115f}', '\u{1160}', '\u{180e}', '\u{feff}'];
    c.is_control()
        || INVISIBLE.contains(&c)
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes a text up to a length.
struct Truncating<'a, W> {
    to: &'a mut W,
    left: usize,
    is_cut: bool,
}

impl<W: fmt::Write> fmt::Write for Truncating<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let Some(left) = self.left.checked_sub(1) else {
                self.is_cut = true;
                return Err(fmt::Error);
            };
            self.left = left;
            if is_hidden(c) {
                write!(self.to, "{}", c.escape_default())?;
            } else {
                self.to.write_char(c)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_and_a_short_one_is_whole() {
        assert_eq!(Excerpt("é".repeat(MAX_VALUE)).to_string(), "é".repeat(MAX_VALUE));
        assert_eq!(Excerpt("é".repeat(MAX_VALUE + 1)).to_string(), "é".repeat(MAX_VALUE) + "…");
        assert_eq!(sentence("ab".repeat(9), 3), "aba…");
        assert_eq!(beginning("äöü".to_owned(), 2), "äö…");
        assert_eq!(beginning("äöü".to_owned(), 3), "äöü");
    }

    #[test]
    fn nothing_in_a_value_moves_a_cursor_or_hides_text() {
        let shown = Excerpt("a\n\u{1b}[31m\u{202e}b\u{7f}").to_string();
        assert_eq!(shown, "a\\n\\u{1b}[31m\\u{202e}b\\u{7f}");
        assert_eq!(sentence("a\r\nb".to_owned(), 10), "a\\r\\nb");
        assert_eq!(printable("\u{202e}".repeat(9)), "\\u{202e}".repeat(9));
    }

    #[test]
    fn a_value_is_not_written_beyond_its_cut() {
        struct Endless;
        impl Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("xxxxxxxx")?;
                }
            }
        }
        assert_eq!(Excerpt(Endless).to_string(), "x".repeat(MAX_VALUE) + "…");
    }
}
