//! A cluster, read from its document: who it is, what it refers to, what it patches.
//!
//! A fleet has many, so a cluster keeps little: the text that is served as it is, and numbers for what it refers to.

mod patches;
mod reading;

use std::sync::Arc;

use model::{ClusterDns, Document, Id, State};

use crate::{catalogue::Version, slots::Place};

pub(crate) use patches::Patches;
pub(crate) use reading::Names;

/// A cluster of the fleet, live or decommissioned.
#[derive(Debug)]
pub struct Cluster {
    /// Its document.
    pub document: Document,
    /// The name under which it polls, in its one spelling.
    pub dns: ClusterDns,
    /// What every input says about the cluster, as JSON: `{name, dns, environment}`.
    identity: Box<str>,
    /// The lists of references, by the type's position in the registry.
    lists: Box<[List]>,
    /// The patches, in the order of the names of what they patch.
    patches: Box<[(Arc<str>, Patches)]>,
    /// Lists of references that no resource type reads.
    pub(crate) unread_lists: Box<[Box<str>]>,
    /// Its own; no other reading of a document has it.
    pub(crate) version: Version,
}

/// The references to one type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    /// The definitions that it names, in order.
    pub(crate) places: Box<[Place]>,
    /// What some references say beside the id, in order. Most say nothing.
    said: Box<[Said]>,
    /// A definition that is there twice.
    pub(crate) twice: Option<Place>,
}

/// What a reference says beside the id, if that makes a difference; null says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Of which reference.
    at: u32,
    /// Whether the cluster wants what it refers to.
    pub(crate) enabled: bool,
    /// All of it, as the JSON of an object.
    pub(crate) fields: Box<str>,
}

impl List {
    /// Each reference: where its definition is, and what it says.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (Place, Option<&Said>)> {
        let mut said = self.said.iter().peekable();
        let places = self.places.iter().enumerate();
        places.map(move |(at, place)| (*place, said.next_if(|said| said.at as usize == at)))
    }
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
        &self.identity
    }

    /// Whether it is in force; else it is decommissioned.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.document.state == State::Live
    }

    /// Its references to the type at a position of the registry.
    pub(crate) fn list(&self, position: usize) -> Option<&List> {
        self.lists.get(position)
    }

    /// All its patches, with the names of what they patch, in order.
    pub(crate) fn all_patches(&self) -> &[(Arc<str>, Patches)] {
        &self.patches
    }

    /// The patches of one thing.
    pub(crate) fn patches(&self, id: &str) -> Option<&Patches> {
        let at = self.patches.binary_search_by(|(name, _)| (**name).cmp(id)).ok()?;
        Some(&self.patches[at].1)
    }
}
