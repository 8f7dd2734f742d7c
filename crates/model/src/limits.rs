//! How large and how deep JSON from outside may be: every limit, in one place.
//!
//! A document is read again by every process that serves it, so one that is too deep for a parser or too large for a small
//! pod would harm the whole fleet. A limit holds for what is written. A document that was saved before it held, or came with
//! a backup, is still read, listed and deleted, and an edit may leave it over a limit as long as it grows no further.

use crate::{FieldError, Map, Value, yaml::child};

/// Objects and lists inside one another in a document; the document itself is the first.
pub const DEPTH: usize = 64;

/// Objects and lists around a document in a request or a file, at most: those of a batch, of a JSON Patch, of a seed.
pub const WRAPPERS: usize = 4;

/// Bytes of a document as compact JSON, which is how it is kept.
pub const DOCUMENT_BYTES: usize = 1024 * 1024;

/// Values in a document: every object, list, text, number, boolean and null is one. In memory a value of two bytes takes 72.
pub const ELEMENTS: usize = 100_000;

/// Operations of a JSON Patch.
pub const PATCH_OPERATIONS: usize = 1_000;

/// Values that the document has after each operation of a JSON Patch, summed over the operations: a copy costs as much as it
/// copies, and so does the look at what it made.
pub const PATCH_WORK: usize = 10_000_000;

/// Bytes of the body of a request about one document: its compact form, and room for white space and escapes.
pub const BODY_BYTES: usize = 2 * DOCUMENT_BYTES;

/// Bytes of a body from which on only a few are received at a time.
pub const LARGE_BODY_BYTES: usize = DOCUMENT_BYTES;

/// Bytes of a body from which on one is read and its change made at a time: what is made of a value takes many times its text.
pub const SMALL_BODY_BYTES: usize = 64 * 1024;

/// Bytes of the body of a batch. A thousand clusters have a few million.
pub const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// Values in the body of a batch. Two thousand clusters have about as many. What is made of a value, with the plan of it, takes
/// half a kilobyte of memory.
pub const BATCH_ELEMENTS: usize = 400_000;

/// Writes of a batch.
pub const BATCH_WRITES: usize = 20_000;

/// Bytes of documents that the writes of one request make, one after another. Each write of a batch sees those before it, so a
/// thousand writes to one large document cost a thousand times its size.
pub const CHANGE_WORK: usize = 256 * 1024 * 1024;

/// Bytes by which a bulk patch may enlarge all documents together.
pub const BULK_GROWTH: usize = 32 * 1024 * 1024;

/// Values of a bulk patch, times the documents that it is about. The plan of it has them all.
pub const BULK_VALUES: usize = 2_000_000;

/// Broken rules that are looked for in one document, and that one answer names.
pub const ERRORS: usize = 100;

/// Broken rules that are counted: beyond that, an answer says that there are more.
pub const COUNTED_ERRORS: usize = 1_000;

/// The rule about [`DEPTH`].
pub const DEPTH_RULE: &str = "depth";
/// The rule about [`ELEMENTS`].
pub const ELEMENTS_RULE: &str = "elements";
/// The rule about [`DOCUMENT_BYTES`].
pub const BYTES_RULE: &str = "document-bytes";

/// How large a document is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Objects and lists inside one another.
    pub depth: usize,
    /// Values.
    pub elements: usize,
    /// Bytes as compact JSON or, where only the values were looked at, not more than that.
    pub bytes: usize,
}

impl Size {
    /// The size of a value, found without writing it.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 0);
        size
    }

    /// The size of the fields of a document, whose length as compact JSON is known.
    #[must_use]
    pub fn of_document(fields: &Map, bytes: usize) -> Self {
        let mut size = Self::default();
        size.add_fields(fields, 0);
        Self { bytes, ..size }
    }

    fn add(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) => self.add_fields(fields, depth),
            Value::Array(items) => {
                self.add_one(depth + 1, 2);
                for item in items {
                    self.add(item, depth + 1);
                }
            }
            Value::String(text) => self.add_one(depth, text.len() + 2),
            _ => self.add_one(depth, 1),
        }
    }

    fn add_fields(&mut self, fields: &Map, depth: usize) {
        self.add_one(depth + 1, 2);
        for (name, value) in fields {
            self.bytes += name.len() + 3;
            self.add(value, depth + 1);
        }
    }

    fn add_one(&mut self, depth: usize, bytes: usize) {
        self.depth = self.depth.max(depth);
        self.elements += 1;
        self.bytes += bytes;
    }

    /// The limits that a document of this size breaks. What is no larger than it was breaks none.
    #[must_use]
    pub fn check(self, before: Self) -> Vec<FieldError> {
        let broken = [
            (DEPTH_RULE, self.depth, before.depth, DEPTH, "objects and lists inside one another"),
            (ELEMENTS_RULE, self.elements, before.elements, ELEMENTS, "values"),
            (BYTES_RULE, self.bytes, before.bytes, DOCUMENT_BYTES, "bytes"),
        ];
        let broken = broken.into_iter().filter(|(_, now, before, most, _)| now > most && now > before);
        broken
            .map(|(rule, now, _, most, what)| {
                FieldError::new("", rule, format!("a document has at most {most} {what}, and this would have {now}"))
            })
            .collect()
    }
}

/// The limits that a document breaks, each with the field that breaks it where there is one; `before` is what is saved.
#[must_use]
pub fn check_document(fields: &Map, bytes: usize, before: impl FnOnce() -> Size) -> Vec<FieldError> {
    let size = Size::of_document(fields, bytes);
    let mut errors = size.check(Size::default());
    if !errors.is_empty() {
        errors = size.check(before());
    }
    if let Some(deep) = errors.iter_mut().find(|error| error.rule == DEPTH_RULE) {
        let place = fields.iter().find_map(|(name, value)| Some(child("", name) + &too_deep(value, DEPTH - 1)?));
        deep.pointer = FieldError::new(place.unwrap_or_default(), DEPTH_RULE, "").pointer;
    }
    errors
}

/// The place of the first object or list with more than so many levels above it, itself included.
fn too_deep(value: &Value, levels: usize) -> Option<String> {
    if !value.is_array() && !value.is_object() {
        return None;
    }
    let Some(left) = levels.checked_sub(1) else { return Some(String::new()) };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| Some(format!("/{at}{}", too_deep(item, left)?)))
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(name, value)| Some(child("", name) + &too_deep(value, left)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Map {
        let value = (1..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        Map::from_iter([("a".to_owned(), value)])
    }

    fn rules(fields: &Map, before: Size) -> Vec<String> {
        let bytes = serde_json::to_string(fields).unwrap().len();
        check_document(fields, bytes, || before).into_iter().map(|error| error.rule).collect()
    }

    #[test]
    fn a_limit_itself_is_allowed_and_one_more_is_not() {
        assert_eq!(Size::of_document(&nested(DEPTH), 0).depth, DEPTH);
        assert_eq!(rules(&nested(DEPTH), Size::default()), [""; 0]);
        assert_eq!(rules(&nested(DEPTH + 1), Size::default()), [DEPTH_RULE]);
        let list = |items: usize| Map::from_iter([("l".to_owned(), json!(vec![0; items]))]);
        assert_eq!(rules(&list(ELEMENTS - 2), Size::default()), [""; 0]);
        assert_eq!(rules(&list(ELEMENTS - 1), Size::default()), [ELEMENTS_RULE]);
        let text = |bytes: usize| Map::from_iter([("t".to_owned(), json!("x".repeat(bytes - 8)))]);
        assert_eq!(rules(&text(DOCUMENT_BYTES), Size::default()), [""; 0]);
        assert_eq!(rules(&text(DOCUMENT_BYTES + 1), Size::default()), [BYTES_RULE]);
    }

    #[test]
    fn what_is_over_a_limit_already_may_shrink_and_not_grow() {
        let size = |levels| Size::of_document(&nested(levels), 0);
        assert_eq!(rules(&nested(99), size(100)), [""; 0]);
        assert_eq!(rules(&nested(101), size(100)), [DEPTH_RULE]);
    }

    #[test]
    fn the_pointer_leads_to_the_first_level_that_is_too_many() {
        let errors = check_document(&nested(DEPTH + 3), 0, Size::default);
        assert_eq!(errors[0].pointer, "/a".repeat(DEPTH));
    }
}
