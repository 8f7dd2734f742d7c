//! Reads and writes YAML (and JSON, its subset).
//!
//! Reading records the line of every node, because a rule about a value is usually checked long after the text was parsed, and
//! "line 12" is what helps its author.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, ScalarStyle, Yaml, YamlData, YamlEmitter};
use saphyr_parser::{Event, Parser};

use crate::{
    Map, Value,
    json::PRIVATE_NAME,
    limits::{DEPTH, WRAPPERS},
};

pub use saphyr::EmitError;

/// A text that cannot be read as one YAML document with JSON's types.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The line, counted from one.
    pub line: usize,
    /// The error message.
    pub message: String,
}

/// A value and the line of each of its parts.
#[derive(Debug)]
pub struct Located {
    /// The value.
    pub value: Value,
    lines: BTreeMap<String, usize>,
}

impl Located {
    /// The line of the node at a JSON pointer or, where there is no such node, of its nearest ancestor.
    #[must_use]
    pub fn line(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.lines.get(pointer) {
                return *line;
            }
            match pointer.rfind('/') {
                Some(cut) => pointer = &pointer[..cut],
                None => return 1,
            }
        }
    }
}

/// Appends one step to a JSON pointer.
#[must_use]
pub fn child(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Deeper than any document, and well within the stack.
const MAX_INDENT: usize = 1_000;

/// The most bytes of the content of all aliases of a file: their texts, and [`VALUE_BYTES`] for each value.
const ALIASED_BYTES: usize = 16 * 1024 * 1024;

/// The most bytes of the pointers to all values of a document. A seed of 10,000 clusters has 100 MB of them.
const POINTER_BYTES: usize = 256 * 1024 * 1024;

/// About how much memory a value takes in addition to its text.
const VALUE_BYTES: usize = 128;

/// Reads one document.
pub fn read(text: &str) -> Result<Located, YamlError> {
    let mut documents = read_all(text)?;
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        (None, _) => Err(YamlError { line: 1, message: "one document is expected, found 0".to_owned() }),
        (Some(_), more) => Err(YamlError { line: 1, message: format!("one document is expected, found {}", more + 1) }),
    }
}

/// Reads all documents of a text. Lines are counted from its beginning.
pub fn read_all(text: &str) -> Result<Vec<Located>, YamlError> {
    // In block style, a node cannot be deeper than its column; in flow style the parser itself sets a limit.
    let indent = |line: &str| line.bytes().take_while(|byte| matches!(byte, b' ' | b'-' | b'?' | b':')).count();
    if let Some(at) = text.lines().position(|line| indent(line) > MAX_INDENT) {
        return Err(YamlError { line: at + 1, message: "this is nested too deeply".to_owned() });
    }
    if text.contains('*') {
        check_aliases(text)?;
    }
    let documents = MarkedYaml::load_from_str(text)
        .map_err(|error| YamlError { line: error.marker().line(), message: error.info().to_owned() })?;
    let located = |document| {
        let mut lines = Lines::default();
        let value = convert(document, "", DEPTH + WRAPPERS, &mut lines)?;
        Ok(Located { value, lines: lines.by_pointer })
    };
    documents.iter().map(located).collect()
}

/// Refuses aliases that make a text many times as long: the loader copies the content of each. The loader's own limit counts only
/// nodes, and a whole key as one.
fn check_aliases(text: &str) -> Result<(), YamlError> {
    let mut aliased = 0_usize;
    let mut anchored = BTreeMap::new();
    let mut open = vec![(0, 0_usize)];
    // A text that is not YAML is refused by the loader, with a message.
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        let (anchor, bytes) = match event {
            Event::Scalar(value, _, anchor, _) => (anchor, value.len() + VALUE_BYTES),
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, VALUE_BYTES));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().unwrap_or_default(),
            Event::Alias(anchor) => {
                let bytes = anchored.get(&anchor).copied().unwrap_or_default();
                aliased = aliased.saturating_add(bytes);
                if aliased > ALIASED_BYTES {
                    let message = format!("the content of all aliases of a file has at most {ALIASED_BYTES} bytes");
                    return Err(YamlError { line: span.start.line(), message });
                }
                (0, bytes)
            }
            _ => continue,
        };
        if anchor > 0 {
            anchored.insert(anchor, bytes);
        }
        if let Some((_, around)) = open.last_mut() {
            *around = around.saturating_add(bytes);
        }
    }
    Ok(())
}

/// The line of each value of a document, by its pointer.
#[derive(Default)]
struct Lines {
    by_pointer: BTreeMap<String, usize>,
    bytes: usize,
}

impl Lines {
    /// Records the first line of a pointer. The pointer of every item of a list repeats the list's name, so long names add up.
    fn record(&mut self, pointer: &str, line: usize) -> Result<(), &'static str> {
        if self.by_pointer.contains_key(pointer) {
            return Ok(());
        }
        self.bytes += pointer.len();
        if self.bytes > POINTER_BYTES {
            return Err("the names in this file are too long for so many values");
        }
        self.by_pointer.insert(pointer.to_owned(), line);
        Ok(())
    }
}

/// The value of a node with at most so many levels.
fn convert(node: &MarkedYaml<'_>, pointer: &str, levels: usize, lines: &mut Lines) -> Result<Value, YamlError> {
    let line = node.span.start.line();
    let refuse = |message: &str| YamlError { line, message: message.to_owned() };
    let inner = || levels.checked_sub(1).ok_or_else(|| refuse("this is nested too deeply"));
    lines.record(pointer, line).map_err(refuse)?;
    Ok(match &node.data {
        YamlData::Value(scalar) => match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => Value::Bool(*value),
            Scalar::Integer(value) => Value::from(*value),
            Scalar::FloatingPoint(value) => serde_json::Number::from_f64(value.into_inner())
                .map(Value::Number)
                .ok_or_else(|| refuse("a number must be finite"))?,
            Scalar::String(value) => Value::String(value.to_string()),
        },
        YamlData::Sequence(items) => {
            let (items, levels) = (items.iter().enumerate(), inner()?);
            items
                .map(|(at, item)| convert(item, &format!("{pointer}/{at}"), levels, lines))
                .collect::<Result<_, _>>()?
        }
        YamlData::Mapping(entries) => {
            let (mut map, levels) = (Map::new(), inner()?);
            for (key, value) in entries {
                let YamlData::Value(Scalar::String(name)) = &key.data else {
                    let line = key.span.start.line();
                    return Err(YamlError { line, message: "a key must be a string".to_owned() });
                };
                if name == "<<" {
                    // Read as a plain name, its content would be lost.
                    let line = key.span.start.line();
                    return Err(YamlError { line, message: "merge keys (<<) are not supported".to_owned() });
                }
                if name.starts_with(PRIVATE_NAME) {
                    let message = format!("names that begin with \"{PRIVATE_NAME}\" are reserved");
                    return Err(YamlError { line: key.span.start.line(), message });
                }
                let pointer = child(pointer, name);
                // A mapping's value may start on the next line; the line of its key is more helpful.
                lines.record(&pointer, key.span.start.line()).map_err(refuse)?;
                map.insert(name.to_string(), convert(value, &pointer, levels, lines)?);
            }
            Value::Object(map)
        }
        YamlData::Tagged(..) => return Err(refuse("tags are not supported")),
        YamlData::Alias(_) => return Err(refuse("the alias has no anchor")),
        YamlData::Representation(..) | YamlData::BadValue => return Err(refuse("the value cannot be read")),
    })
}

/// Writes a value as one block-style document.
pub fn write(value: &Value) -> Result<String, EmitError> {
    let mut text = String::new();
    let mut emitter = YamlEmitter::new(&mut text);
    emitter.multiline(true);
    emitter.dump(&emittable(value))?;
    let text = text.strip_prefix("---\n").unwrap_or(&text);
    Ok(format!("{}\n", text.trim_end()))
}

fn emittable(value: &Value) -> Yaml<'_> {
    match value {
        Value::Null => Yaml::Representation("null".into(), ScalarStyle::Plain, None),
        Value::Bool(value) => Yaml::Value(Scalar::Boolean(*value)),
        Value::Number(value) => match (value.as_i64(), value.as_f64()) {
            (Some(integer), _) => Yaml::Value(Scalar::Integer(integer)),
            (None, Some(float)) => Yaml::Value(Scalar::FloatingPoint(float.into())),
            (None, None) => Yaml::Value(Scalar::String(value.to_string().into())),
        },
        Value::String(value) if is_multiline(value) => Yaml::Value(Scalar::String(value.into())),
        Value::String(value) => emittable_text(value),
        Value::Array(items) => Yaml::Sequence(items.iter().map(emittable).collect()),
        Value::Object(map) => {
            Yaml::Mapping(map.iter().map(|(name, value)| (emittable_text(name), emittable(value))).collect())
        }
    }
}

/// Whether a text consists of printable lines, so that it is written as a block.
fn is_multiline(text: &str) -> bool {
    let plain = |c: char| c == '\n' || !is_special(c);
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with(char::is_whitespace)
        && !body.lines().any(|line| line.ends_with(char::is_whitespace))
        && !body.ends_with('\n')
        && text.chars().all(plain)
}

/// Line breaks and unprintable characters: YAML has more of them than the emitter knows.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A text as the emitter writes it or, if a reader could misread it, escaped.
fn emittable_text(text: &str) -> Yaml<'_> {
    // For older readers, a text that begins like a number (1_000, 2026-01-31) is a number or a date.
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    // For older readers, these are booleans.
    let boolean = matches!(text, "y" | "Y" | "n" | "N");
    if !numeric && !boolean && !text.contains(is_special) {
        return Yaml::Value(Scalar::String(text.into()));
    }
    let escape = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        c if is_special(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    Yaml::Representation(text.chars().map(escape).collect::<String>().into(), ScalarStyle::DoubleQuoted, None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_node_knows_its_line() {
        let read = read("a: 1\nb:\n  - c: x\n    d/e: true\n").unwrap();
        assert_eq!(read.value, json!({"a": 1, "b": [{"c": "x", "d/e": true}]}));
        assert_eq!(read.line("/a"), 1);
        assert_eq!(read.line("/b"), 2);
        assert_eq!(read.line("/b/0/d~1e"), 4);
        assert_eq!(read.line("/b/0/missing/deeper"), 3, "the nearest ancestor's line");
    }

    #[test]
    fn aliases_of_a_long_text_are_bounded() {
        let text = |aliases: usize| {
            let list: Vec<_> = (0..aliases).map(|at| format!("k{at}: *b\n")).collect();
            format!("a: &b '{}'\n{}", "x".repeat(100_000), list.concat())
        };
        assert!(read(&text(100)).is_ok());
        let error = read(&text(20_000)).unwrap_err();
        assert!(error.message.contains("aliases"), "{}", error.message);
    }

    #[test]
    fn aliases_in_keys_are_bounded() {
        let item = |level: usize| format!("{{? *a{} : x}}", level - 1);
        let line = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![item(level); 9].join(", "));
        let text = format!("a0: &a0 [x, x]\n{}", (1..7).map(line).collect::<String>());
        let error = read(&text).unwrap_err();
        assert!(error.message.contains("aliases"), "{}", error.message);
    }

    #[test]
    fn a_long_name_before_many_values_is_bounded() {
        let text = format!("? {}\n: [{}1]\n", "k".repeat(20_000), "1,".repeat(20_000));
        assert!(read(&text).unwrap_err().message.contains("names in this file are too long"));
    }

    #[test]
    fn a_text_that_is_not_one_json_like_document_is_refused_with_its_line() {
        let deep = |levels: usize| format!("a:\n{}x", "- ".repeat(levels));
        assert!(read(&deep(DEPTH + WRAPPERS - 1)).is_ok());
        let (deep, deeper) = (deep(DEPTH + WRAPPERS), deep(60_000));
        for (text, line) in [
            (deep.as_str(), 2),
            (deeper.as_str(), 2),
            ("a: [1\nb: 2", 2),
            ("a: 1\na: 2", 2),
            ("a: 1\n1: b", 2),
            ("a: .inf", 1),
            ("a: 1\n<<: {b: 2}", 2),
            ("a\n---\nb", 1),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
        }
    }

    #[test]
    fn older_readers_read_the_same() {
        let written = write(&json!({"y": "n", "on": "off", "date": "2026-01-31", "lines": "a\nb\n"})).unwrap();
        assert_eq!(written, "\"y\": \"n\"\n\"on\": \"off\"\ndate: \"2026-01-31\"\nlines: |\n  a\n  b\n");
    }

    #[test]
    fn a_written_value_reads_back_the_same() {
        let value = json!({
            "version": "3.0.3", "yes": "no", "null": "null", "empty": {"a": {}, "b": []}, "n": -1.5,
            "lines": "one\ntwo", "list": [[1], {"x": null}], "odd": "a: b # c", "quote": "\"'"
        });
        assert_eq!(read(&write(&value).unwrap()).unwrap().value, value);
    }

    /// Texts that a careless writer would change.
    fn text() -> impl Strategy<Value = String> {
        let odd = [
            "",
            " ",
            "~",
            "null",
            "Null",
            "true",
            "yes",
            "No",
            "on",
            "y",
            "1",
            "012",
            "0x1F",
            "0o17",
            "1e3",
            "1_000",
            ".5",
            "1.",
            "+1",
            "-0",
            ".inf",
            "-.INF",
            ".nan",
            "2026-01-31",
            "12:30:45",
            "-",
            "- a",
            "? a",
            ": a",
            "a: b",
            "a #b",
            "#a",
            "[a]",
            "{a}",
            "&a",
            "*a",
            "!a",
            "!!str a",
            "|",
            ">",
            "%a",
            "@a",
            "`a",
            "'a'",
            "\"a\"",
            "---",
            "...",
            "=",
            "a\n",
            "\na",
            "a\n\nb",
            "a\n b",
            " a\nb",
            "a ",
            " a",
            "a\tb",
            "\ta",
            "a\r\nb",
            "a\rb",
            "\u{85}",
            "\u{2028}",
            "\u{feff}a",
            "\0",
            "\u{7f}",
            "\u{1b}[0m",
            "日本",
            "🦀",
            "a\\nb",
            "\\",
            "a: |\n  b",
            "---\na",
            "a\n---\nb",
            "a\n...\nb",
        ];
        prop_oneof![proptest::sample::select(odd.to_vec()).prop_map(str::to_owned), any::<String>()]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            proptest::num::f64::NORMAL.prop_map(Value::from),
            proptest::sample::select(vec![0.0, 1.0, -1.0, 1e15, 1e16, 1e21, 1e300, 0.1]).prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((text(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_reads_back_as_it_was_written(value in value()) {
            let written = write(&value).unwrap();
            let read = read(&written).map_err(|error| error.message.clone());
            prop_assert_eq!(read.map(|read| read.value), Ok(value), "{}", written);
        }
    }
}
