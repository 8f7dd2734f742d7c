//! Values from users in sentences: cut, and with nothing in them that moves a cursor or hides text.
//!
//! A message, an answer or a log line says which value is wrong; it never carries the whole of it, which may be a megabyte, and
//! never a line break or a control character, which a reader of the log would take for ours.

use std::fmt::{self, Display, Write as _};

/// Characters of a value that a sentence shows.
const VALUE: usize = 200;

/// A value in a sentence: `format!("\"{}\" is not a number", Excerpt(&text))`.
#[derive(Debug)]
pub struct Excerpt<T>(pub T);

impl<T: Display> Display for Excerpt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Cutting { to: f, left: VALUE, is_cut: false };
        match write!(writer, "{}", self.0) {
            // The value stops writing once it is told that nobody reads on.
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
    let mut writer = Cutting { to: &mut cut, left: most, is_cut: false };
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

/// Control characters, characters that change the direction or the line of the text around them, and those that nobody sees:
/// two names that look alike must not be two names.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    const UNSEEN: [char; 6] = ['\u{ad}', '\u{61c}', '\u{115f}', '\u{1160}', '\u{180e}', '\u{feff}'];
    c.is_control()
        || UNSEEN.contains(&c)
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes a text until it has been long enough.
struct Cutting<'a, W> {
    to: &'a mut W,
    left: usize,
    is_cut: bool,
}

impl<W: fmt::Write> fmt::Write for Cutting<'_, W> {
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
        assert_eq!(Excerpt("é".repeat(VALUE)).to_string(), "é".repeat(VALUE));
        assert_eq!(Excerpt("é".repeat(VALUE + 1)).to_string(), "é".repeat(VALUE) + "…");
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
        assert_eq!(Excerpt(Endless).to_string(), "x".repeat(VALUE) + "…");
    }
}
