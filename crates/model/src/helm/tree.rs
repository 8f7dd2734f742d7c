//! A tree of values that grows path by path. Names and scalars are those of the patches.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::{
    PatchError,
    path::{self, Step},
};
use crate::{Value, limits::ELEMENTS};

/// The members of an object, in the order in which they came.
pub(super) type Members<'a, T> = IndexMap<Cow<'a, str>, Node<'a, T>, RandomState>;

/// A place of a tree.
pub(super) enum Node<'a, T> {
    /// Null, or not there yet.
    Nothing,
    Scalar(T),
    Object(Members<'a, T>),
    List(Vec<Self>),
}

/// Items that no patch sets, before those that patches set, in all lists of one component. Helm fills such gaps with nulls, so ten
/// bytes of a path would ask for half a megabyte of every answer.
const GAPS: usize = 16;

/// Puts values at the ends of their paths.
pub(super) fn grow<'a, T>(patches: impl Iterator<Item = (&'a str, Node<'a, T>)>) -> Result<Members<'a, T>, PatchError> {
    let (mut members, mut steps) = (Members::default(), Vec::new());
    let (mut left, mut indexes) = (ELEMENTS, 0);
    let mut widest = ("", 0);
    for (key, value) in patches {
        let refuse = |rule| PatchError { key: key.to_owned(), rule };
        path::parse(key, &mut steps).map_err(refuse)?;
        indexes += steps.iter().filter(|step| matches!(step, Step::Index(_))).count();
        let before = left;
        let mut steps = steps.drain(..);
        if let Some(Step::Key(root)) = steps.next() {
            *reach(member(&mut members, root), steps, &mut left).map_err(refuse)? = value;
        }
        if before - left > widest.1 {
            widest = (key, before - left);
        }
    }
    // Each index sets one item at most; whatever lists have grown beyond that is null.
    if ELEMENTS - left > indexes + GAPS {
        let rule = "the patches of a component leave at most 16 items of lists without a value";
        return Err(PatchError { key: widest.0.to_owned(), rule });
    }
    Ok(members)
}

/// The place at a path, made where it is missing. Lists grow with nulls, as in Helm.
fn reach<'n, 'a, T>(
    mut place: &'n mut Node<'a, T>,
    path: impl Iterator<Item = Step<'a>>,
    left: &mut usize,
) -> Result<&'n mut Node<'a, T>, &'static str> {
    const TOO_MANY: &str = "the indexes of all patches together make lists of too many items";
    const CONFLICT: &str = "another patch puts a value of another shape on this path";
    for step in path {
        if let Node::Nothing = place {
            *place = match step {
                Step::Key(_) => Node::Object(Members::default()),
                Step::Index(_) => Node::List(Vec::new()),
            };
        }
        place = match (place, step) {
            (Node::Object(members), Step::Key(key)) => member(members, key),
            (Node::List(items), Step::Index(index)) => {
                if items.len() <= index {
                    *left = left.checked_sub(index + 1 - items.len()).ok_or(TOO_MANY)?;
                    items.resize_with(index + 1, || Node::Nothing);
                }
                &mut items[index]
            }
            _ => return Err(CONFLICT),
        };
    }
    if let Node::Nothing = place { Ok(place) } else { Err(CONFLICT) }
}

/// A member of an object, made where it is missing.
fn member<'n, 'a, T>(members: &'n mut Members<'a, T>, name: Cow<'a, str>) -> &'n mut Node<'a, T> {
    members.entry(name).or_insert(Node::Nothing)
}

impl From<&Value> for Node<'_, Value> {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(map) => {
                Self::Object(map.iter().map(|(name, value)| (Cow::Owned(name.clone()), value.into())).collect())
            }
            scalar => Self::Scalar(scalar.clone()),
        }
    }
}

impl From<Node<'_, Value>> for Value {
    fn from(node: Node<'_, Value>) -> Self {
        match node {
            Node::Nothing => Self::Null,
            Node::Scalar(value) => value,
            Node::Object(members) => {
                Self::Object(members.into_iter().map(|(name, node)| (name.into_owned(), node.into())).collect())
            }
            Node::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
        }
    }
}

/// Writes an object, of scalars that are JSON and names in which JSON has nothing to escape.
pub(super) fn write_object<'a>(
    members: impl IntoIterator<Item = (Cow<'a, str>, Node<'a, Cow<'a, str>>)>,
    text: &mut String,
) {
    text.push('{');
    for (at, (name, node)) in members.into_iter().enumerate() {
        text.push_str(if at == 0 { "\"" } else { ",\"" });
        text.push_str(&name);
        text.push_str("\":");
        write_node(node, text);
    }
    text.push('}');
}

fn write_node<'a>(node: Node<'a, Cow<'a, str>>, text: &mut String) {
    match node {
        Node::Nothing => text.push_str("null"),
        Node::Scalar(json) => text.push_str(&json),
        Node::Object(members) => write_object(members, text),
        Node::List(items) => {
            text.push('[');
            for (at, item) in items.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write_node(item, text);
            }
            text.push(']');
        }
    }
}
