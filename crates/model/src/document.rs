//! Documents: instances of resource types.

use std::{borrow::Cow, fmt, iter, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Id, Kind, Map, Op, Revision, Value};

/// The content of a document, as compact JSON text.
///
/// Text, because it is what stores keep and answers send, and because a fleet of ten thousand parsed trees would not
/// fit a small pod. Code that needs fields parses them. Most bodies are only stored, and no poll reads one; so a snapshot
/// compresses a long text. On its way there it is read several times, and stays plain.
#[derive(Clone)]
pub struct Body(Text);

#[derive(Clone)]
enum Text {
    Plain(Arc<str>),
    /// A text has exactly one compressed form.
    Packed {
        length: usize,
        packed: Arc<[u8]>,
    },
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Text::Plain(one), Text::Plain(other)) => one == other,
            (Text::Packed { packed: one, length }, Text::Packed { packed: other, length: other_length }) => {
                length == other_length && one == other
            }
            (Text::Plain(plain), Text::Packed { length, .. }) | (Text::Packed { length, .. }, Text::Plain(plain)) => {
                plain.len() == *length && self.text() == other.text()
            }
        }
    }
}

impl Eq for Body {}

/// Shorter texts are not compressed.
const COMPRESSED_FROM: usize = 256;

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Body {
    /// Writes fields down.
    #[must_use]
    pub fn from_fields(fields: &Map) -> Self {
        // A tree of JSON can be written. If it could not, there would be no text, which reads as no document.
        Self::plain(&serde_json::to_string(fields).unwrap_or_default())
    }

    /// Stores text in little memory.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        if text.len() < COMPRESSED_FROM {
            return Self::plain(text);
        }
        let packed = lz4_flex::block::compress(text.as_bytes()).into();
        Self(Text::Packed { length: text.len(), packed })
    }

    /// Stores text as it is, because it will be read before it becomes part of a snapshot.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self(Text::Plain(text.into()))
    }

    /// The same, stored in little memory.
    #[must_use]
    pub fn packed(&self) -> Self {
        match &self.0 {
            Text::Plain(text) => Self::from_text(text),
            Text::Packed { .. } => self.clone(),
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Packed { length, packed } => {
                // What was compressed here can be decompressed here. If memory itself were broken, there would be no text,
                // which reads as no document.
                let text = lz4_flex::block::decompress(packed, *length).unwrap_or_default();
                Cow::Owned(String::from_utf8(text).unwrap_or_default())
            }
        }
    }

    /// How many bytes of memory its text takes.
    #[must_use]
    pub fn kept_len(&self) -> usize {
        match &self.0 {
            Text::Plain(text) => text.len(),
            Text::Packed { packed, .. } => packed.len(),
        }
    }

    /// Reads the fields. Fails only where the text was not written by us.
    pub fn fields(&self) -> Result<Map, serde_json::Error> {
        read_fields(&self.text())
    }
}

/// Reads the fields of a document from its text.
pub fn read_fields(text: &str) -> Result<Map, serde_json::Error> {
    serde_json::from_str(text).or_else(|_| members(text, DEEPER))
}

/// Levels of a saved document beyond the 128 that the parser reads. Before there was a limit, patches were saved that had two
/// more: they must be readable, or nobody could make them smaller.
const DEEPER: usize = 32;

/// Reads an object level by level where that is needed: only what is too deep for the parser is split further.
fn members(text: &str, levels: usize) -> Result<Map, serde_json::Error> {
    let Members(members) = serde_json::from_str(text)?;
    members.into_iter().map(|(name, text)| Ok((name, value(text.get(), levels)?))).collect()
}

/// The members of an object in their order, each with the text of its value.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Members)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn value(text: &str, levels: usize) -> Result<Value, serde_json::Error> {
    let (error, levels) = match (serde_json::from_str(text), levels.checked_sub(1)) {
        (Err(error), Some(levels)) => (error, levels),
        (done, _) => return done,
    };
    match text.as_bytes().first() {
        Some(b'{') => members(text, levels).map(Value::Object),
        Some(b'[') => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text)?;
            items.into_iter().map(|item| value(item.get(), levels)).collect()
        }
        _ => Err(error),
    }
}

impl Document {
    /// The operation that makes the document what it is.
    #[must_use]
    pub fn op(&self) -> Op {
        match self.state {
            State::Live => Op::Put(self.body.clone()),
            State::Retired => Op::Retire(self.body.clone()),
        }
    }

    /// The same, stored in little memory.
    #[must_use]
    pub fn packed(&self) -> Self {
        Self { kind: self.kind.clone(), id: self.id.clone(), body: self.body.packed(), ..*self }
    }
}

/// Whether a document is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In force.
    Live,
    /// A tombstone: no longer in force, still known. A retired cluster is decommissioned, which is the one reason to
    /// tell a whole cluster that it has no inputs.
    Retired,
}

/// One document, as it was last written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The resource type.
    pub kind: Kind,
    /// The id within the type.
    pub id: Id,
    /// The change that wrote it last.
    pub revision: Revision,
    /// Whether it is in force.
    pub state: State,
    /// What it says.
    pub body: Body,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_is_the_text(text in "(\\{\"[a-zé]{1,9}\":\"[^\"]{0,40}\"\\},?){0,60}") {
            let body = Body::from_text(&text);
            prop_assert_eq!(body.text(), text.as_str());
            prop_assert_eq!(&body, &Body::from_text(&text));
            prop_assert_ne!(&body, &Body::from_text(&format!("{text} ")));
            let plain = Body::plain(&text);
            prop_assert_eq!(plain.text(), text.as_str());
            prop_assert_eq!((&plain, &body), (&body, &plain.packed()));
            if let Some(start) = text.strip_suffix(['}', ',']) {
                prop_assert_ne!(&plain, &Body::from_text(&format!("{start}x")), "of the same length");
            }
        }
    }

    #[test]
    fn what_was_saved_too_deep_for_a_parser_is_read() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2));
        let read = |levels: usize| Body::plain(&nested(levels)).fields();
        for levels in [2, 64, 126, 128, 140, 158] {
            assert_eq!(serde_json::to_string(&read(levels).unwrap()).unwrap(), nested(levels), "{levels}");
        }
        assert!(read(100_000).is_err());
        assert!(Body::plain("{\"a\": [1,]}").fields().is_err());
    }

    #[test]
    fn a_long_text_takes_less_than_it_says() {
        let text = format!(
            "[{}]",
            (0..60).map(|at| format!("{{\"id\":\"component-{at}\",\"enabled\":true}}")).collect::<Vec<_>>().join(",")
        );
        let Body(Text::Packed { packed, .. }) = Body::from_text(&text) else { panic!("it is long") };
        assert!(packed.len() * 2 < text.len(), "{} of {}", packed.len(), text.len());
    }
}
