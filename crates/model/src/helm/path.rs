//! Paths into a tree of values, with the syntax of Helm's `--set`.

use std::borrow::Cow;

/// The largest list index, as in Helm: `[1000000000]` must not allocate a list of that length.
const MAX_INDEX: usize = 65_536;
/// The deepest path, as in Helm.
const MAX_DEPTH: usize = 30;

/// One step of a path: to a member of an object, or to an item of a list.
pub(super) enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

/// Parses the steps of a path, of which the first is a key; an error is the rule that it breaks.
pub(super) fn parse<'a>(text: &'a str, steps: &mut Vec<Step<'a>>) -> Result<(), &'static str> {
    steps.clear();
    let mut rest = text;
    loop {
        let key;
        (key, rest) = parse_key(rest)?;
        if key.is_empty() {
            return Err("a path has no empty part");
        }
        steps.push(Step::Key(key));
        while let Some(index) = rest.strip_prefix('[') {
            let end = index.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(index.len());
            let (digits, after) = index.split_at(end);
            rest = match after.strip_prefix(']') {
                Some(after) if !digits.is_empty() => after,
                _ => return Err("a list index is a number between '[' and ']'"),
            };
            match digits.parse() {
                Ok(index) if index <= MAX_INDEX => steps.push(Step::Index(index)),
                _ => return Err("a list index is at most 65536"),
            }
        }
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix('.').ok_or("a list index is followed by '.', '[' or the end")?;
    }
    if steps.len() > MAX_DEPTH {
        return Err("a path has at most 30 parts");
    }
    Ok(())
}

/// Whether a path is a single key without escapes.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.bytes().any(is_special)
}

/// Whether a byte has a meaning in paths.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'.' | b'[' | b']' | b'\\')
}

/// A key, without its backslashes, and the rest of the path.
fn parse_key(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let end = text.bytes().position(is_special);
    let (plain, rest) = text.split_at(end.unwrap_or(text.len()));
    if !rest.starts_with([']', '\\']) {
        return Ok((Cow::Borrowed(plain), rest));
    }
    let mut key = plain.to_owned();
    let mut chars = rest.chars();
    loop {
        let rest = chars.as_str();
        match chars.next() {
            None | Some('.' | '[') => return Ok((Cow::Owned(key), rest)),
            Some('\\') => key.push(chars.next().ok_or("a path cannot end in a backslash")?),
            Some(']') => return Err("a ']' has no '['"),
            Some(c) => key.push(c),
        }
    }
}
