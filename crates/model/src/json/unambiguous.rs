//! JSON without duplicate names, within the limits of a server.
//!
//! Depth and number of values are counted while a text is parsed: before there is a tree that is too deep for recursion, or a
//! list that takes a hundred times the memory of its text.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{Map, PRIVATE_NAME, Value, pointer};
use crate::{
    FieldError,
    excerpt::Excerpt,
    limits::{BYTES_RULE, DEPTH, DEPTH_RULE, ELEMENTS_RULE, WRAPPERS},
};

/// A value of bounded depth in which no object has a name twice. JSON allows that, and one of the two values would be lost.
#[derive(Debug)]
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = Counter::new(usize::MAX, None);
        Reader::new(&count).deserialize(deserializer).map(Self)
    }
}

/// How much one item of a list in the outermost object may hold: one write of a batch.
#[derive(Clone, Copy, Debug)]
pub struct ItemLimits {
    /// Bytes of its names and texts, and one or two for every value: never more than its compact JSON has.
    pub bytes: usize,
    /// Values.
    pub elements: usize,
}

/// Reads a text with at most so many values, all together and in each item.
pub fn read_json(text: &[u8], elements: usize, items: Option<ItemLimits>) -> Result<Value, FieldError> {
    read(text, Reader::new(&Counter::new(elements, items)))
}

/// What `read_lists` finds, in the order of the text.
#[derive(Debug)]
pub enum ListEvent<'a> {
    /// A member of the object begins.
    Member(&'a str),
    /// An item of the member's list.
    Item(Value),
    /// The member is no list.
    NotAList,
}

/// Reads an object with lists as a stream of events, one parsed item at a time: a large text, parsed as a whole, takes many times
/// its memory. Returns whether the text is an object. Events that come before a syntax error have been emitted.
pub fn read_lists(text: &[u8], mut emit: impl FnMut(ListEvent<'_>)) -> Result<bool, FieldError> {
    let count = Counter::new(usize::MAX, None);
    let emit: RefCell<Emit<'_>> = RefCell::new(&mut emit);
    read(text, Reader { events: Events::OfObject(&emit), ..Reader::new(&count) }).map(|value| value.is_object())
}

fn read(text: &[u8], reader: Reader<'_>) -> Result<Value, FieldError> {
    let count = reader.count;
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let value = reader.deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track)).map_err(|error| {
        let rule = count.broken.get().unwrap_or("json");
        FieldError::new(pointer(&track.path()), rule, error.to_string())
    })?;
    json.end().map_err(|error| FieldError::new("", "json", error.to_string()))?;
    Ok(value)
}

/// Levels around an item: the outermost object, and a list in it.
const AROUND_ITEM: usize = 2;

/// How much more is allowed, and which limit was exceeded.
struct Counter {
    left: Cell<usize>,
    items: Option<ItemLimits>,
    /// How much more is allowed in the current item.
    item: Cell<ItemLimits>,
    broken: Cell<Option<&'static str>>,
}

impl Counter {
    fn new(elements: usize, items: Option<ItemLimits>) -> Self {
        let item = Cell::new(ItemLimits { bytes: usize::MAX, elements: usize::MAX });
        Self { left: Cell::new(elements), items, item, broken: Cell::new(None) }
    }

    fn refuse<E: serde::de::Error>(&self, rule: &'static str, message: impl fmt::Display) -> E {
        self.broken.set(Some(rule));
        E::custom(message)
    }

    /// Called where an item begins, or a value outside of items.
    fn begin_item(&self) {
        if let Some(items) = self.items {
            self.item.set(items);
        }
    }

    fn value<E: serde::de::Error>(&self) -> Result<(), E> {
        let refuse = || self.refuse(ELEMENTS_RULE, "there are too many values");
        self.left.set(self.left.get().checked_sub(1).ok_or_else(refuse)?);
        let item = self.item.get();
        let elements = item.elements.checked_sub(1).ok_or_else(|| self.item_is_too_large(ELEMENTS_RULE))?;
        self.item.set(ItemLimits { elements, ..item });
        self.bytes(1)
    }

    fn bytes<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let item = self.item.get();
        let bytes = item.bytes.checked_sub(bytes).ok_or_else(|| self.item_is_too_large(BYTES_RULE))?;
        self.item.set(ItemLimits { bytes, ..item });
        Ok(())
    }

    fn item_is_too_large<E: serde::de::Error>(&self, rule: &'static str) -> E {
        let (bytes, elements) = self.items.map_or((0, 0), |it| (it.bytes, it.elements));
        self.refuse(rule, format!("an item of this list has at most {bytes} bytes and {elements} values"))
    }
}

/// Reads a value with at most so many levels.
#[derive(Clone, Copy)]
struct Reader<'a> {
    levels: usize,
    count: &'a Counter,
    events: Events<'a>,
}

type Emit<'a> = &'a mut dyn FnMut(ListEvent<'_>);

/// The events that a value emits.
#[derive(Clone, Copy)]
enum Events<'a> {
    None,
    /// Those of the object with lists.
    OfObject(&'a RefCell<Emit<'a>>),
    /// Those of a list, whose items are emitted and not stored.
    OfList(&'a RefCell<Emit<'a>>),
}

impl<'a> Reader<'a> {
    fn new(count: &'a Counter) -> Self {
        Self { levels: DEPTH + WRAPPERS, count, events: Events::None }
    }

    /// For what is inside an object or a list.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let too_deep = || {
            let message = format!("more than {} objects and lists are inside one another", DEPTH + WRAPPERS);
            self.count.refuse(DEPTH_RULE, message)
        };
        let levels = self.levels.checked_sub(1).ok_or_else(too_deep)?;
        Ok(Self { levels, events: Events::None, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.levels + AROUND_ITEM >= DEPTH + WRAPPERS {
            self.count.begin_item();
        }
        self.count.value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.count.bytes(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let reader = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(reader)? {
            match self.events {
                Events::OfList(emit) => (emit.borrow_mut())(ListEvent::Item(item)),
                Events::None | Events::OfObject(_) => list.push(item),
            }
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let reader = self.inner()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.count.bytes(name.len())?;
            if name.starts_with(PRIVATE_NAME) {
                return Err(A::Error::custom(format!("names that begin with \"{PRIVATE_NAME}\" are reserved")));
            }
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("\"{}\" appears twice", Excerpt(&name))));
            }
            let value = if let Events::OfObject(emit) = self.events {
                (emit.borrow_mut())(ListEvent::Member(&name));
                let value = members.next_value_seed(Self { events: Events::OfList(emit), ..reader })?;
                if !value.is_array() {
                    (emit.borrow_mut())(ListEvent::NotAList);
                }
                value
            } else {
                members.next_value_seed(reader)?
            };
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duplicate_name_is_refused_wherever_it_is() {
        let good = r#"{"a": [1, -2, 0.5, true, null, "x"], "b": {"a": {}}}"#;
        let Unambiguous(read) = serde_json::from_str(good).unwrap();
        assert_eq!(read, json!({"a": [1, -2, 0.5, true, null, "x"], "b": {"a": {}}}));
        for bad in [r#"{"a": 1, "a": 2}"#, r#"[{"b": {"a": 1, "c": 2, "a": 1}}]"#] {
            let error = serde_json::from_str::<Unambiguous>(bad).unwrap_err();
            assert!(error.to_string().starts_with("\"a\" appears twice"), "{error}");
        }
    }

    #[test]
    fn a_name_that_the_json_library_reserves_is_refused() {
        for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
            let text = json!({"a": [{ name: "[1]" }]}).to_string();
            let error = read_json(text.as_bytes(), 1_000, None).unwrap_err();
            assert!(error.message.contains("are reserved"), "{error}");
            assert!(serde_json::from_str::<Unambiguous>(&text).is_err());
        }
    }

    #[test]
    fn a_text_that_is_too_deep_or_has_too_many_values_is_refused_while_it_is_read() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let read = |text: &str| read_json(text.as_bytes(), 1_000, None).map_err(|error| error.rule);
        assert!(read(&nested(DEPTH + WRAPPERS)).is_ok());
        assert_eq!(read(&nested(DEPTH + WRAPPERS + 1)), Err(DEPTH_RULE.to_owned()));
        assert_eq!(read(&"[".repeat(1_000_000)), Err(DEPTH_RULE.to_owned()), "the end of the text is never reached");
        let list = |items: usize| serde_json::to_string(&vec![0; items]).unwrap();
        assert!(read(&list(999)).is_ok());
        assert_eq!(read(&list(1_000)), Err(ELEMENTS_RULE.to_owned()));
        assert_eq!(read("[1] 2"), Err("json".to_owned()));
        let error = read_json(br#"{"a": [{"b": 1, "b": 2}]}"#, 1_000, None).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.rule.as_str()), ("/a/0", "json"), "{error}");
    }

    #[test]
    fn items_of_lists_are_emitted_in_their_order() {
        let read = |text: &str| {
            let mut events = Vec::new();
            let read = read_lists(text.as_bytes(), |event| {
                events.push(match event {
                    ListEvent::Member(name) => format!("{name}:"),
                    ListEvent::Item(item) => item.to_string(),
                    ListEvent::NotAList => "no list".to_owned(),
                });
            });
            (read.map_err(|error| (error.pointer, error.message)), events.join(" "))
        };
        let text = r#"{"a": [1, [2], {"b": [3]}], "c": {"d": [4]}, "e": [], "f": null}"#;
        assert_eq!(read(text), (Ok(true), r#"a: 1 [2] {"b":[3]} c: no list e: f: no list"#.to_owned()));
        assert_eq!(read(r#"[{"a": [1]}, [2]]"#), (Ok(false), String::new()));
        for bad in
            [r#"{"a": [1, {"b": 2,}]}"#, r#"{"a": [], "a": []}"#, r#"{"a": []} 1"#, r#"{"a": [{"b": 1, "b": 2}]}"#]
        {
            let error = read_json(bad.as_bytes(), usize::MAX, None).unwrap_err();
            assert_eq!(read(bad).0, Err((error.pointer, error.message)), "the same as of the whole");
        }
    }

    #[test]
    fn an_item_that_is_too_large_is_refused_where_it_is_too_large() {
        let items = Some(ItemLimits { bytes: 100, elements: 20 });
        let read = |text: &str| {
            let read = read_json(text.as_bytes(), 1_000, items);
            read.map_err(|error| (error.pointer, error.rule))
        };
        let list = |items: &str| format!("{{\"writes\":[{items}]}}");
        let (small, long) = (vec!["0"; 19].join(","), "x".repeat(100));
        assert!(read(&list(&vec![format!("[{small}]"); 9].join(","))).is_ok(), "each has a limit of its own");
        let values = read(&list(&format!("[],[{small},0]"))).unwrap_err();
        assert_eq!(values, ("/writes/1/19".to_owned(), ELEMENTS_RULE.to_owned()));
        let text = read(&list(&format!("[],{{\"a\":\"{long}\"}}"))).unwrap_err();
        assert_eq!(text, ("/writes/1/a".to_owned(), BYTES_RULE.to_owned()));
        let name = read(&list(&format!("[],{{\"{long}\":1}}"))).unwrap_err();
        assert_eq!(name.1, BYTES_RULE);
    }
}
