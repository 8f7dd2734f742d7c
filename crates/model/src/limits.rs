//! How large and how deep JSON from clients and files may be: all limits, in one place.
//!
//! Every process that serves a document reads it again, so one that is too deep for a parser or too large for a small pod would
//! harm the whole fleet. A limit holds for writes. A document that was saved before the limit, or restored from a backup, can
//! still be read, listed and deleted, and an edit may leave it over the limit as long as it does not grow further.

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
/// copies, and so does the check of its result.
pub const PATCH_WORK: usize = 10_000_000;

/// Bytes of the body of a request about one document: its compact form, and room for white space and escapes.
pub const BODY_BYTES: usize = 2 * DOCUMENT_BYTES;

/// Bytes of a body from which on only a few are received at a time.
pub const LARGE_BODY_BYTES: usize = DOCUMENT_BYTES;

/// Bytes of a body from which on only one request at a time is parsed and applied: a parsed value takes many times its text.
pub const SMALL_BODY_BYTES: usize = 64 * 1024;

/// Bytes of the body of a batch. A thousand clusters have a few million.
pub const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// Values in the body of a batch. Two thousand clusters have about as many. A parsed value and its plan take half a kilobyte
/// of memory.
pub const BATCH_ELEMENTS: usize = 400_000;

/// Writes of a batch.
pub const BATCH_WRITES: usize = 20_000;

/// Bytes of all documents that the writes of one request produce, one after another. Each write of a batch sees those before it, so a
/// thousand writes to one large document cost a thousand times its size.
pub const CHANGE_WORK: usize = 256 * 1024 * 1024;

/// Bytes by which a bulk patch may enlarge all documents together.
pub const BULK_GROWTH: usize = 32 * 1024 * 1024;

/// Values of a bulk patch, times the documents that it changes. Its plan contains them all.
pub const BULK_VALUES: usize = 2_000_000;

/// The most violations that are searched in one document, and listed in one answer.
pub const ERRORS: usize = 100;

/// The most violations that are counted; beyond that, an answer states that there are more.
pub const COUNTED_ERRORS: usize = 1_000;

/// The rule about [`DEPTH`].
pub const DEPTH_RULE: &str = "depth";
/// The rule about [`ELEMENTS`].
pub const ELEMENTS_RULE: &str = "elements";
/// The rule about [`DOCUMENT_BYTES`].
pub const BYTES_RULE: &str = "document-bytes";

/// The size of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Objects and lists inside one another.
    pub depth: usize,
    /// Values.
    pub elements: usize,
    /// Bytes as compact JSON or, if only the values were measured, a lower bound of it.
    pub bytes: usize,
}

impl Size {
    /// The size of a value, found without writing it.
    #[must_use]
    pub fn of_value(value: &Value) -> Self {
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

    /// The limits that a document of this size exceeds. A size that has not grown exceeds none.
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

/// The limits that a document exceeds, with the field that is too deep; `before` is the size of the saved document.
#[must_use]
pub fn check_document(fields: &Map, bytes: usize, before: impl FnOnce() -> Size) -> Vec<FieldError> {
    let size = Size::of_document(fields, bytes);
    let mut errors = size.check(Size::default());
    if !errors.is_empty() {
        errors = size.check(before());
    }
    if let Some(deep) = errors.iter_mut().find(|error| error.rule == DEPTH_RULE) {
        let pointer = fields.iter().find_map(|(name, value)| Some(child("", name) + &too_deep(value, DEPTH - 1)?));
        deep.pointer = FieldError::new(pointer.unwrap_or_default(), DEPTH_RULE, "").pointer;
    }
    errors
}

/// The pointer to the first object or list with more than so many levels above it, itself included.
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
    fn a_document_over_a_limit_may_shrink_and_not_grow() {
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
