//! A cluster, read from its document: who it is, what it refers to, what it patches.
//!
//! A fleet has many, so a cluster keeps little and keeps it together: all text that is served as it is in one piece, and
//! numbers for what it refers to. A poll finds what it needs in a few lines of memory.

mod patches;
mod reading;

use model::{ClusterDns, Document, Id, State};

use crate::{catalogue::Version, slots::Place};

pub(crate) use patches::{Patches, no_variables};
pub(crate) use reading::Names;

/// A cluster of the fleet, live or decommissioned.
#[derive(Debug)]
pub struct Cluster {
    /// Its document.
    pub document: Document,
    /// The name under which it polls, in its one spelling.
    pub dns: ClusterDns,
    /// All that is served of it, as JSON: what every input says about it, `{name, dns, environment}`; and then what its
    /// references say, and what its patches come to.
    text: Box<str>,
    identity: usize,
    /// The definitions that its lists name, one list after the other in the order of the types; before them, where each
    /// list begins and where the last one ends.
    numbers: Box<[Place]>,
    /// References that have more to say than an id, in their order. Most have not.
    marks: Box<[Mark]>,
    /// In the order of the names of what they patch.
    patches: Box<[Patches]>,
    /// What should not be there. There is nothing, as a rule.
    odd: Option<Box<Odd>>,
    /// Its own; no other reading of a document has it.
    pub(crate) version: Version,
}

/// Something that a reference has beside an id, and where in the cluster's text it is.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Where the reference is.
    at: u32,
    what: What,
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// What it says itself, if that makes a difference, as the JSON of an object.
    Said { enabled: bool },
    /// What the cluster changes of what it refers to, as members of a JSON object. Nothing, where that has no meaning.
    Patched,
}

/// For this a poll is refused, so it is remembered.
#[derive(Debug)]
struct Odd {
    /// Definitions that a list names twice, with the position of the type.
    twice: Vec<(usize, Place)>,
    /// Lists of references that no resource type reads.
    unread_lists: Vec<String>,
}

/// What an entry of a cluster's list has beside the id of a definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside<'a> {
    /// Whether the cluster wants what it refers to.
    pub(crate) enabled: bool,
    /// What it says, if that makes a difference, as the JSON of an object; null says nothing.
    pub(crate) fields: Option<&'a str>,
    /// What the cluster changes of it, as members of a JSON object. Nothing, where that has no meaning.
    pub(crate) patches: Option<&'a str>,
}

impl Cluster {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.document.id
    }

    /// What every input says about it, as JSON: `{name, dns, environment}`.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.text[..self.identity]
    }

    /// Whether it is in force; else it is decommissioned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.document.state == State::Live
    }

    /// Where the definitions are that its list for the type at a position of the registry names, in order.
    pub(crate) fn places(&self, position: usize) -> &[Place] {
        &self.numbers[self.list(position)]
    }

    /// Where the list of a type is among the numbers.
    fn list(&self, position: usize) -> std::ops::Range<usize> {
        self.numbers[position] as usize..self.numbers[position + 1] as usize
    }

    /// Each reference of a list: where its definition is, and what it has beside that.
    pub(crate) fn references(&self, position: usize) -> impl Iterator<Item = (Place, Beside<'_>)> {
        let list = self.list(position);
        let start = self.marks.partition_point(|mark| (mark.at as usize) < list.start);
        let mut marks = self.marks[start..].iter().peekable();
        list.map(move |at| {
            let mut beside = Beside { enabled: true, fields: None, patches: None };
            while let Some(mark) = marks.next_if(|mark| mark.at as usize == at) {
                let text = Some(&self.text[mark.start as usize..mark.end as usize]);
                match mark.what {
                    What::Said { enabled } => (beside.enabled, beside.fields) = (enabled, text),
                    What::Patched => beside.patches = text,
                }
            }
            (self.numbers[at], beside)
        })
    }

    /// A definition that a list names twice.
    pub(crate) fn twice(&self, position: usize) -> Option<Place> {
        self.odd.as_ref()?.twice.iter().find(|(list, _)| *list == position).map(|(_, place)| *place)
    }

    /// A list of references that no resource type reads.
    pub(crate) fn unread_lists(&self) -> &[String] {
        self.odd.as_ref().map_or(&[], |odd| &odd.unread_lists)
    }

    /// All its patches, in the order of the names of what they patch.
    pub(crate) fn patches(&self) -> &[Patches] {
        &self.patches
    }

    /// What it patches of this name.
    pub(crate) fn patches_of(&self, name: &str) -> Option<&Patches> {
        let found = self.patches.binary_search_by(|patches| (*patches.name).cmp(name)).ok()?;
        self.patches.get(found)
    }

    /// How long everything is that an answer may take from it.
    pub(crate) fn served_len(&self) -> usize {
        self.text.len()
    }
}
