//! A cluster, read from its document: who it is, what it refers to, what it patches.
//!
//! A fleet has many, so a cluster keeps little and keeps it together, in one piece of memory: what there is to know of it, and
//! behind that a text from which it is served. In a large fleet no cache holds any of it, and a poll waits once for what lies
//! in one place, and once more for each place to which another one points.

mod dns;
mod patches;
mod reading;
mod references;

use std::{
    hint::black_box,
    ops::{Deref, Range},
};

use model::{Document, Id, ResourceType, State, Value};
use triomphe::{Arc, HeaderSlice};

use crate::{Polls, catalogue::Version, slots::Place};

pub(crate) use dns::{FORMER, InputsByPath, OtherNames, RELEASED, Released, UNKNOWN};
pub(crate) use patches::{Patches, no_variables};
pub(crate) use reading::Names;
pub(crate) use references::{Beside, List};

/// A cluster of the fleet, live or decommissioned. A copy is a pointer.
///
/// Its text is, one after the other: the end of every input, `,"cluster":{name, dns, environment}}`; the name under which it
/// polls, if that is spelt in another way; its lists of references; and what these say, and what its patches come to.
#[derive(Clone, Debug)]
pub struct Cluster(Arc<HeaderSlice<Facts, str>>);

/// What is known of a cluster.
#[derive(Debug)]
pub struct Facts {
    /// Its document.
    pub document: Document,
    /// How it polled. No part of what it says: from one reading of the cluster it passes to the next.
    pub polls: Polls,
    /// Where in its text the end of every input ends, and where its lists are.
    ending: u32,
    lists: Range<u32>,
    /// Where the name is under which it polls, in its one spelling.
    dns: Range<u32>,
    /// Names that it had before. Most clusters have none.
    other_names: Option<Box<OtherNames>>,
    /// In the order of the names of what they patch.
    patches: Box<[Patches]>,
    /// What should not be there. There is nothing, as a rule.
    odd: Option<Box<Odd>>,
    /// Its own; no other reading of a document has it.
    pub(crate) version: Version,
}

impl Deref for Cluster {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0.header
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

/// How every input ends, up to the cluster's identity.
const ENDING: &str = ",\"cluster\":";

impl Cluster {
    fn new(facts: Facts, text: &str) -> Self {
        Self(Arc::from_header_and_str(facts, text))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.document.id
    }

    /// All that is served of it.
    fn text(&self) -> &str {
        &self.0.slice
    }

    /// What every input says about it, as JSON: `{name, dns, environment}`.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.ending()[ENDING.len()..self.ending as usize - 1]
    }

    /// What every input ends with, as JSON: what it says about the cluster.
    pub(crate) fn ending(&self) -> &str {
        &self.text()[..self.ending as usize]
    }

    /// The name under which it polls, in its one spelling.
    #[must_use]
    pub fn dns(&self) -> &str {
        &self.text()[self.dns.start as usize..self.dns.end as usize]
    }

    /// Whether it is in force; else it is decommissioned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.document.state == State::Live
    }

    /// Its list for the type at a position of the registry.
    pub(crate) fn list(&self, position: usize) -> List<'_> {
        let Range { start, end } = self.lists;
        let (text, said) = self.text().split_at(end as usize);
        List::at(position, &text[start as usize..], said)
    }

    /// Where the definitions are that its list for the type at a position of the registry names, in order.
    pub(crate) fn places(&self, position: usize) -> impl Iterator<Item = Place> {
        self.list(position).map(|(place, _)| place)
    }

    /// The places of the definitions that it wants of a type, sorted.
    pub(crate) fn enabled_places(&self, position: usize) -> Vec<Place> {
        let enabled = self.list(position).filter(|(_, beside)| beside.enabled);
        let mut places: Vec<_> = enabled.map(|(place, _)| place).collect();
        places.sort_unstable();
        places
    }

    /// Asks for all the memory that an answer is gathered from. What is asked for together is waited for once, and what is
    /// asked for when its turn comes is waited for each time.
    pub(crate) fn fetch(&self, ty: &ResourceType) {
        const LINE: usize = 64;
        let served = if ty.patchable { self.text().len() } else { self.lists.end as usize };
        let text = self.text().as_bytes()[..served].iter().step_by(LINE).fold(0, |all, byte| all | byte);
        black_box((text, self.polls.last_of(ty)));
    }

    /// A definition that a list names twice.
    pub(crate) fn twice(&self, position: usize) -> Option<Place> {
        self.odd.as_ref()?.twice.iter().find(|(list, _)| *list == position).map(|(_, place)| *place)
    }

    /// A list of references that no resource type reads.
    pub(crate) fn unread_lists(&self) -> &[String] {
        self.odd.as_ref().map_or(&[], |odd| &odd.unread_lists)
    }

    /// The ids that one of its lists names, whether or not a type reads it.
    pub(crate) fn ids_in(&self, list: &str) -> Vec<Id> {
        let fields = self.document.body.fields().unwrap_or_default();
        let items = fields.get(list).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|item| Id::parse(item.get("id")?.as_str()?).ok()).collect()
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
        self.text().len()
    }
}
