//! Documents that are being edited, as parsed fields.
//!
//! Many writes of a batch may be about one document. Each changes its parsed fields; the document is written down and checked
//! once, when the draft is finished or when the open documents would take too much memory. So the cost is that of the writes
//! and of the documents, and not of one times the other.

use std::mem;

use model::{FieldError, Id, Map, ResourceType, read_fields};

use super::{Draft, EditError, names::DnsNames, unreadable, with_id};

/// Bytes of all open documents together, as text. Parsed, a document can take many times as much.
const OPEN_BYTES: usize = 2 * 1024 * 1024;

/// A document that is being edited.
#[derive(Debug)]
pub(super) struct OpenDocument {
    pub(super) fields: Map,
    /// Bytes of its text when it was opened, and of what was written to it since.
    bytes: usize,
}

/// What an edit of an open document costs.
#[derive(Clone, Copy)]
pub(super) enum Cost {
    /// The items of its lists are compared, each of which has eight bytes or more.
    Items,
    /// All of it.
    Document,
}

impl Draft<'_> {
    /// Changes the fields of a document that is in force, by at most so many bytes more. A change that fails leaves the fields as
    /// they are.
    pub(super) fn edit_open(
        &mut self,
        ty: &ResourceType,
        id: &Id,
        (cost, growth): (Cost, usize),
        change: impl FnOnce(&mut Map) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        let mut open = self.take_open(ty, id)?;
        let names = ty.is_cluster().then(|| DnsNames::read(&open.fields));
        let changed = change(&mut open.fields);
        if changed.is_ok() {
            // What makes another document of it is refused, and so is the whole draft: the fields are not needed any more.
            let (_, mut fields) = with_id(ty, mem::take(&mut open.fields), Some(id))?;
            if let Some(known) = names {
                known.keep_in(ty, id, &mut fields)?;
            }
            open = OpenDocument { fields, bytes: open.bytes + growth };
        }
        let work = match cost {
            Cost::Items => growth + open.bytes / 8,
            Cost::Document => open.bytes,
        };
        self.open_bytes += open.bytes;
        self.open.insert((ty.kind.clone(), id.clone()), open);
        changed?;
        self.charge(ty, id, work)?;
        if self.open_bytes > OPEN_BYTES {
            self.close_all()?;
        }
        Ok(())
    }

    fn take_open(&mut self, ty: &ResourceType, id: &Id) -> Result<OpenDocument, EditError> {
        if let Some(open) = self.forget_open(ty, id) {
            return Ok(open);
        }
        let body = self.in_force(ty, id)?;
        let text = body.text();
        let fields = read_fields(&text).map_err(|error| unreadable(ty, id, &error))?;
        Ok(OpenDocument { fields, bytes: text.len() })
    }

    /// What was edited of a document is taken away, because it is edited further or replaced as a whole.
    pub(super) fn forget_open(&mut self, ty: &ResourceType, id: &Id) -> Option<OpenDocument> {
        let open = self.open.remove(&(ty.kind.clone(), id.clone()))?;
        self.open_bytes -= open.bytes;
        Some(open)
    }

    /// Writes all open documents down and checks them.
    pub(super) fn close_all(&mut self) -> Result<(), FieldError> {
        self.open_bytes = 0;
        for ((kind, id), open) in mem::take(&mut self.open) {
            let unknown = || FieldError::new("/kind", "kind", format!("there is no resource type \"{kind}\""));
            let ty = self.fleet.registry().by_kind(kind.as_str()).ok_or_else(unknown)?;
            let edit = self.checked(ty, &id, open.fields);
            self.enter(ty, &id, edit)?;
        }
        Ok(())
    }
}
