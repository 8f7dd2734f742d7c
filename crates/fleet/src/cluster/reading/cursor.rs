//! Steps through JSON as we write it: without white space, and nearly all text without escapes.
//!
//! Every step is made whole or answers nothing. Whatever is not a plain text or a word is left to the library, so that
//! nothing passes here that is not JSON.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::parse;
use crate::merge::Name;

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn on(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Steps over a mark, if it is next.
    pub(super) fn eat(&mut self, mark: u8) -> bool {
        let is_next = self.text.as_bytes().get(self.at) == Some(&mark);
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Steps over a value, which is answered as it is written.
    pub(super) fn value(&mut self) -> Option<&'a str> {
        let length = match self.rest() {
            [b'"', text @ ..] => plain(text).map(|length| length + 2),
            [b't', b'r', b'u', b'e', ..] | [b'n', b'u', b'l', b'l', ..] => Some(4),
            [b'f', b'a', b'l', b's', b'e', ..] => Some(5),
            _ => None,
        };
        let Some(length) = length else { return self.any_value() };
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at)
    }

    /// Steps over a value of which nothing is known.
    #[cold]
    fn any_value(&mut self) -> Option<&'a str> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<&RawValue>();
        let value = values.next()?.ok()?.get();
        self.at += values.byte_offset();
        Some(value)
    }

    /// Steps over a text, which is answered as it is meant.
    pub(super) fn text(&mut self) -> Option<Cow<'a, str>> {
        let length = match self.rest() {
            [b'"', text @ ..] => plain(text),
            _ => None,
        };
        let Some(length) = length else { return self.any_text() };
        let start = self.at + 1;
        self.at = start + length + 1;
        self.text.get(start..start + length).map(Cow::Borrowed)
    }

    /// Steps over a text of which nothing is known.
    #[cold]
    fn any_text(&mut self) -> Option<Cow<'a, str>> {
        parse::<Name<'_>>(self.any_value()?).ok().map(|Name(text)| text)
    }

    /// Steps over an object; each member is for `take`, from behind its name on.
    pub(super) fn object(&mut self, mut take: impl FnMut(Cow<'a, str>, &mut Self) -> Option<()>) -> Option<&'a str> {
        let start = self.at;
        self.items([b'{', b'}'], |cursor| {
            let name = cursor.name()?;
            take(name, cursor)
        })?;
        self.text.get(start..self.at)
    }

    /// Steps over the name of a member. Most are those of references, and known at a glance.
    fn name(&mut self) -> Option<Cow<'a, str>> {
        const ID: &[u8] = br#""id":"#;
        if self.rest().starts_with(ID) {
            self.at += ID.len();
            return Some(Cow::Borrowed("id"));
        }
        let name = self.text()?;
        self.eat(b':').then_some(name)
    }

    /// Steps over a list; each item is for `take`.
    pub(super) fn list(&mut self, take: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.items([b'[', b']'], take)
    }

    fn items(&mut self, [open, close]: [u8; 2], mut take: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(open).then_some(())?;
        if self.eat(close) {
            return Some(());
        }
        loop {
            take(self)?;
            if self.eat(close) {
                return Some(());
            }
            self.eat(b',').then_some(())?;
        }
    }
}

/// How long a text is that ends with a quote and holds nothing but itself. Most are short, so eight bytes are looked at at once.
fn plain(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = ONES << 7;
    let (words, rest) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The highest bit of a byte that is below another one, of the first such byte at least: what it borrows from the next
        // may set that of a later one.
        let below = |word: u64, byte: u8| word.wrapping_sub(ONES * u64::from(byte)) & !word & HIGHEST;
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = below(word, b' ') | is(b'"') | is(b'\\');
        if found != 0 {
            let end = at * 8 + found.trailing_zeros() as usize / 8;
            return (text[end] == b'"').then_some(end);
        }
    }
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '))?;
    (rest[end] == b'"').then_some(words.len() * 8 + end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::plain;

    proptest! {
        #[test]
        fn a_text_is_as_long_as_one_byte_after_the_other_says(text in "[ -~é\\PC\t\"\\\\]{0,40}") {
            let end = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
            let expected = end.filter(|end| text.as_bytes()[*end] == b'"');
            prop_assert_eq!(plain(text.as_bytes()), expected);
        }
    }
}
