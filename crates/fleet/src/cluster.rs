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
    /// What every input says about the cluster, as JSON: `{name, dns, environment}`; and then the members of JSON objects
    /// that its patches come to.
    text: Box<str>,
    identity: usize,
    /// The definitions that all its lists name, one list after the other, in the order of the types.
    references: Box<[Place]>,
    /// Where the list of each type ends.
    ends: Box<[u32]>,
    /// What some references say beside the id. Most say nothing.
    said: Box<[Said]>,
    /// References to what is patched, each with the place of its patches.
    patched: Box<[(u32, u32)]>,
    /// In the order of the names of what they patch.
    patches: Box<[Patches]>,
    /// Definitions that a list names twice, with the position of the type.
    twice: Box<[(usize, Place)]>,
    /// Lists of references that no resource type reads.
    pub(crate) unread_lists: Box<[Box<str>]>,
    /// Its own; no other reading of a document has it.
    pub(crate) version: Version,
}

/// What a reference says beside the id, if that makes a difference; null says nothing.
#[derive(Debug)]
pub(crate) struct Said {
    /// Which reference.
    at: u32,
    /// Whether the cluster wants what it refers to.
    pub(crate) enabled: bool,
    /// All of it, as the JSON of an object.
    pub(crate) fields: Box<str>,
}

/// One entry of a cluster's list for a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    /// The definition that it names.
    pub(crate) id: &'a Id,
    /// Whether the cluster wants what it refers to.
    pub(crate) enabled: bool,
    /// What it says beside the id, if that makes a difference.
    pub(crate) fields: Option<&'a str>,
    /// What the cluster changes of it.
    pub(crate) patches: Option<&'a Patches>,
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
        &self.references[self.list(position)]
    }

    fn list(&self, position: usize) -> std::ops::Range<usize> {
        let end = |position: usize| self.ends.get(position).map_or(self.references.len(), |end| *end as usize);
        position.checked_sub(1).map_or(0, end)..end(position)
    }

    /// Each reference of a list: where its definition is, what it says, and what is patched of it.
    pub(crate) fn references(&self, position: usize) -> impl Iterator<Item = (Place, Option<&Said>, Option<&Patches>)> {
        let list = self.list(position);
        let from = |at: u32| (at as usize) < list.start;
        let mut said = self.said[self.said.partition_point(|said| from(said.at))..].iter().peekable();
        let mut patched = self.patched[self.patched.partition_point(|(at, _)| from(*at))..].iter().peekable();
        list.map(move |at| {
            let said = said.next_if(|said| said.at as usize == at);
            let patched = patched.next_if(|(reference, _)| *reference as usize == at);
            (self.references[at], said, patched.and_then(|(_, patches)| self.patches.get(*patches as usize)))
        })
    }

    /// A definition that a list names twice.
    pub(crate) fn twice(&self, position: usize) -> Option<Place> {
        self.twice.iter().find(|(list, _)| *list == position).map(|(_, place)| *place)
    }

    /// All its patches, in the order of the names of what they patch.
    pub(crate) fn patches(&self) -> &[Patches] {
        &self.patches
    }

    /// Whether it patches something of this name.
    pub(crate) fn patches_any(&self, name: &str) -> bool {
        self.patches.binary_search_by(|patches| (*patches.name).cmp(name)).is_ok()
    }

    /// The flat patches and the typed values that they describe, as members of a JSON object.
    pub(crate) fn members(&self, patches: &Patches) -> &str {
        &self.text[patches.start as usize..patches.end as usize]
    }

    /// How long everything is that an answer may take from it.
    pub(crate) fn served_len(&self) -> usize {
        self.text.len()
    }
}
