//! A tree of values that is built path by path. Names and scalars are borrowed from the patches.

use std::borrow::Cow;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::{
    PatchError,
    path::{self, Step},
};
use crate::{Value, limits::ELEMENTS};

/// The members of an object, in the order in which they came.
pub(super) type ObjectMembers<'a, T> = IndexMap<Cow<'a, str>, Node<'a, T>, RandomState>;

/// A node of the tree.
pub(super) enum Node<'a, T> {
    /// Null, or not set yet.
    Null,
    Scalar(T),
    Object(ObjectMembers<'a, T>),
    List(Vec<Self>),
}

/// How many list items without a value the patches of one component may leave. Helm fills such gaps with nulls, so a path of ten
/// bytes could add half a megabyte to every answer.
const MAX_GAPS: usize = 16;

/// Builds the tree from values and their paths.
pub(super) fn build<'a, T>(
    patches: impl Iterator<Item = (&'a str, Node<'a, T>)>,
) -> Result<ObjectMembers<'a, T>, PatchError> {
    let (mut members, mut steps) = (ObjectMembers::default(), Vec::new());
    let (mut left, mut indexes) = (ELEMENTS, 0);
    let mut widest = ("", 0);
    for (key, value) in patches {
        let refuse = |rule| PatchError { key: key.to_owned(), rule };
        path::parse(key, &mut steps).map_err(refuse)?;
        indexes += steps.iter().filter(|step| matches!(step, Step::Index(_))).count();
        let before = left;
        let mut steps = steps.drain(..);
        if let Some(Step::Key(root)) = steps.next() {
            *node_at(member(&mut members, root), steps, &mut left).map_err(refuse)? = value;
        }
        if before - left > widest.1 {
            widest = (key, before - left);
        }
    }
    // Each index sets at most one item; all other items of the lists are null.
    if ELEMENTS - left > indexes + MAX_GAPS {
        let rule = "the patches of a component leave at most 16 items of lists without a value";
        return Err(PatchError { key: widest.0.to_owned(), rule });
    }
    Ok(members)
}

/// The node at a path; missing nodes are created. Lists are filled with nulls, as in Helm.
fn node_at<'n, 'a, T>(
    mut node: &'n mut Node<'a, T>,
    path: impl Iterator<Item = Step<'a>>,
    left: &mut usize,
) -> Result<&'n mut Node<'a, T>, &'static str> {
    const TOO_MANY: &str = "the indexes of all patches together make lists of too many items";
    const CONFLICT: &str = "another patch puts a value of another shape on this path";
    for step in path {
        if let Node::Null = node {
            *node = match step {
                Step::Key(_) => Node::Object(ObjectMembers::default()),
                Step::Index(_) => Node::List(Vec::new()),
            };
        }
        node = match (node, step) {
            (Node::Object(members), Step::Key(key)) => member(members, key),
            (Node::List(items), Step::Index(index)) => {
                if items.len() <= index {
                    *left = left.checked_sub(index + 1 - items.len()).ok_or(TOO_MANY)?;
                    items.resize_with(index + 1, || Node::Null);
                }
                &mut items[index]
            }
            _ => return Err(CONFLICT),
        };
    }
    if let Node::Null = node { Ok(node) } else { Err(CONFLICT) }
}

/// A member of an object; created if it is missing.
fn member<'n, 'a, T>(members: &'n mut ObjectMembers<'a, T>, name: Cow<'a, str>) -> &'n mut Node<'a, T> {
    members.entry(name).or_insert(Node::Null)
}

impl From<&Value> for Node<'_, Value> {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
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
            Node::Null => Self::Null,
            Node::Scalar(value) => value,
            Node::Object(members) => {
                Self::Object(members.into_iter().map(|(name, node)| (name.into_owned(), node.into())).collect())
            }
            Node::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
        }
    }
}

/// Writes an object whose scalars are JSON and whose names need no escapes.
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
        Node::Null => text.push_str("null"),
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
