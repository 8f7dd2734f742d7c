//! A cluster, read from its document: who it is, what it refers to, what it patches.
//!
//! A fleet has many, so a cluster keeps little and keeps it together: all text that is served as it is in one piece, and
//! numbers for what it refers to. A poll finds what it needs in a few lines of memory.

mod patches;
mod reading;

use std::{hint::black_box, ops::Range};

use model::{Document, Id, ResourceType, State};

use crate::{Polls, catalogue::Version, slots::Place};

pub(crate) use patches::{Patches, no_variables};
pub(crate) use reading::Names;

/// A cluster of the fleet, live or decommissioned.
#[derive(Debug)]
pub struct Cluster {
    /// Its document.
    pub document: Document,
    /// How it polled. No part of what it says: from one reading of the cluster it passes to the next.
    pub polls: Polls,
    /// All that is served of it, as JSON: the end of every input, `,"cluster":{name, dns, environment}}`; and then what its
    /// references say, and what its patches come to.
    text: Box<str>,
    /// How long the first of these is.
    ending: u32,
    /// Where the name is under which it polls, in its one spelling.
    dns: Range<u32>,
    /// Where each of its lists begins and the last one ends, in the order of the types; then the places of the definitions
    /// that they name, one list after the other; and then the [`Mark`]s.
    numbers: Box<[u32]>,
    /// In the order of the names of what they patch.
    patches: Box<[Patches]>,
    /// What should not be there. There is nothing, as a rule.
    odd: Option<Box<Odd>>,
    /// Its own; no other reading of a document has it.
    pub(crate) version: Version,
}

/// Something that a reference has beside an id, in the order of the references; most have nothing. It is written as numbers:
/// where the reference is and what it has, and where that begins and ends in the cluster's text.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: u32,
    what: What,
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// What it says itself, if that makes a difference, as the JSON of an object.
    Said { enabled: bool },
    /// What the cluster changes of what it refers to, as more members of a JSON object. Nothing, where that has no meaning.
    Patched,
}

impl Mark {
    const NUMBERS: usize = 3;

    fn write(self) -> [u32; Self::NUMBERS] {
        let what = match self.what {
            What::Patched => 0,
            What::Said { enabled: false } => 1,
            What::Said { enabled: true } => 2,
        };
        [self.at << 2 | what, self.start, self.end]
    }

    fn read([at, start, end]: [u32; Self::NUMBERS]) -> Self {
        let what = match at & 3 {
            0 => What::Patched,
            said => What::Said { enabled: said == 2 },
        };
        Self { at: at >> 2, what, start, end }
    }
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
    /// What the cluster changes of it, as more members of a JSON object. Nothing, where that has no meaning.
    pub(crate) patches: Option<&'a str>,
}

/// How every input ends, up to the cluster's identity.
const ENDING: &str = ",\"cluster\":";

impl Cluster {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.document.id
    }

    /// What every input says about it, as JSON: `{name, dns, environment}`.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.text[ENDING.len()..self.ending as usize - 1]
    }

    /// What every input ends with, as JSON: what it says about the cluster.
    pub(crate) fn ending(&self) -> &str {
        &self.text[..self.ending as usize]
    }

    /// The name under which it polls, in its one spelling.
    #[must_use]
    pub fn dns(&self) -> &str {
        &self.text[self.dns.start as usize..self.dns.end as usize]
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
    fn list(&self, position: usize) -> Range<usize> {
        self.numbers[position] as usize..self.numbers[position + 1] as usize
    }

    /// What its references have beside their ids, in their order.
    fn marks(&self) -> &[[u32; Mark::NUMBERS]] {
        // The first list begins behind the number that says where the last one ends.
        let first = self.numbers[0] as usize;
        self.numbers[self.numbers[first - 1] as usize..].as_chunks().0
    }

    /// Each reference of a list: where its definition is, and what it has beside that.
    pub(crate) fn references(&self, position: usize) -> impl Iterator<Item = (Place, Beside<'_>)> {
        let list = self.list(position);
        let marks = self.marks();
        let start = marks.partition_point(|mark| (Mark::read(*mark).at as usize) < list.start);
        let mut marks = marks[start..].iter().map(|mark| Mark::read(*mark)).peekable();
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

    /// Asks for all the memory that an answer is gathered from. In a large fleet no cache holds any of it; what is asked for
    /// together is waited for once, and what is asked for when its turn comes is waited for each time.
    pub(crate) fn fetch(&self, ty: &ResourceType) {
        const LINE: usize = 64;
        let text = if ty.patchable { &*self.text } else { self.ending() };
        let text = text.as_bytes().iter().step_by(LINE).fold(0, |all, byte| all | byte);
        let numbers = self.numbers.iter().step_by(LINE / size_of::<u32>()).fold(0, |all, number| all | number);
        black_box((text, numbers, self.polls.last_of(ty)));
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
