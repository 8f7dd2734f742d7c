//! One pass over a document, in which every field is read as it comes.

use std::{borrow::Cow, mem};

use model::{Registry, ResourceType, Value};

use super::{Identity, Lists, Names, Parts, Patched, cursor::Cursor, is_list_of_references, lists::note_field, parse};
use crate::cluster::{
    OtherNames,
    dns::{FORMER, RELEASED, dns_names, released_names},
    patches::Said,
};

/// What a document says, of which each field is there once and is what it should be.
pub(super) struct Pass<'a> {
    /// Name, DNS name and environment, as JSON.
    identity: [&'a str; 3],
    other_names: OtherNames,
    patches: Option<Vec<(Cow<'a, str>, Said<'a>)>>,
    lists: Lists,
    unread_lists: Vec<String>,
}

impl<'a> Pass<'a> {
    /// Answers nothing where something is odd or wrong.
    pub(super) fn over(body: &'a str, registry: &Registry, names: &mut impl Names) -> Option<Self> {
        let lists = Lists::of(registry);
        let other_names = OtherNames::default();
        let mut pass = Self { identity: [""; 3], other_names, patches: None, lists, unread_lists: Vec::new() };
        let mut cursor = Cursor::on(body);
        cursor.object(|name, cursor| pass.field(name, cursor, registry, names))?;
        let is_whole = cursor.is_at_end() && pass.identity.iter().all(|part| part.starts_with('"'));
        is_whole.then_some(pass)
    }

    fn field(
        &mut self,
        name: Cow<'a, str>,
        cursor: &mut Cursor<'a>,
        registry: &Registry,
        names: &mut impl Names,
    ) -> Option<()> {
        const IDENTITY: [&str; 3] = ["cluster_name", "cluster_dns", "environment"];
        let ty = registry.definitions().find(|ty| *ty.list == *name);
        let part = IDENTITY.iter().position(|part| *part == name);
        let is_first = match (part, ty) {
            (None, Some(ty)) if name != "patches" => {
                !self.lists.has(ty) && {
                    self.lists.begin(ty);
                    cursor.list(|cursor| self.reference(cursor, ty, names))?;
                    self.lists.end(ty);
                    true
                }
            }
            (Some(part), None) => mem::replace(&mut self.identity[part], cursor.value()?).is_empty(),
            (None, None) if name == "patches" => self.patches.replace(patches(cursor)?).is_none(),
            (None, None) if name == FORMER => {
                mem::replace(&mut self.other_names.former, dns_names(FORMER, cursor.value()?).ok()?).is_empty()
            }
            (None, None) if name == RELEASED => {
                mem::replace(&mut self.other_names.released, released_names(cursor.value()?).ok()?).is_empty()
            }
            (None, None) => {
                let is_unread = is_list_of_references(cursor.value()?);
                self.unread_lists.extend(is_unread.then(|| name.into_owned()));
                true
            }
            // Two things have one name.
            _ => false,
        };
        is_first.then_some(())
    }

    fn reference(&mut self, cursor: &mut Cursor<'a>, ty: &ResourceType, names: &mut impl Names) -> Option<()> {
        let (mut id, mut said) = (None, None);
        cursor.object(|name, cursor| {
            if name == "id" {
                id = Some(cursor.text()?);
                return Some(());
            }
            let value = match cursor.value()? {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                value => parse(value).ok()?,
            };
            note_field(&mut said, ty, name, value);
            Some(())
        })?;
        self.lists.push(names.place(ty, &id?).ok()?, said);
        Some(())
    }

    pub(super) fn into_parts(self, registry: &Registry, names: &mut impl Names) -> Result<Parts, String> {
        let [name, dns, environment] = self.identity;
        let identity = Identity::write(name, dns, environment)?;
        let patched = Patched::read(self.patches.into_iter().flatten().map(Ok), names)?;
        Parts::of(identity, self.other_names, patched, self.lists, self.unread_lists, registry, names)
    }
}

/// As many as most patch, and as they patch of one component: a list that grows is copied each time.
const SOME: usize = 8;

/// The patches of each component; null says nothing.
fn patches<'a>(cursor: &mut Cursor<'a>) -> Option<Vec<(Cow<'a, str>, Said<'a>)>> {
    let mut all = Vec::with_capacity(SOME);
    cursor.object(|component, cursor| {
        let mut members = Vec::with_capacity(SOME);
        let text = cursor.object(|name, cursor| {
            members.push((name, cursor.value()?));
            Some(())
        })?;
        all.push((component, Said { text, members }));
        Some(())
    })?;
    Some(all)
}
