//! JSON that says everything once.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};

use super::{Map, Value};

/// A value of a text in which no object says one thing twice: JSON allows it, and one of the two would be lost.
#[derive(Debug)]
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnambiguousVisitor).map(Self)
    }
}

struct UnambiguousVisitor;

impl<'de> Visitor<'de> for UnambiguousVisitor {
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

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, Unambiguous(value))) = members.next_entry::<String, _>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("\"{name}\" is there twice")));
            }
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
    fn a_name_that_is_there_twice_is_refused_wherever_it_is() {
        let good = r#"{"a": [1, -2, 0.5, true, null, "x"], "b": {"a": {}}}"#;
        let Unambiguous(read) = serde_json::from_str(good).unwrap();
        assert_eq!(read, json!({"a": [1, -2, 0.5, true, null, "x"], "b": {"a": {}}}));
        for bad in [r#"{"a": 1, "a": 2}"#, r#"[{"b": {"a": 1, "c": 2, "a": 1}}]"#] {
            let error = serde_json::from_str::<Unambiguous>(bad).unwrap_err();
            assert!(error.to_string().starts_with("\"a\" is there twice"), "{error}");
        }
    }
}
