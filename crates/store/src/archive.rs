//! A change log in a file: the format of backups, and of the snapshot file of a replica.
//!
//! Lines of JSON: a header, the documents at a revision, a digest of all that, and the changes after that revision, each
//! with the digest that chains it to the one before. A file that is cut short, or changed anywhere, is refused.

use std::io::{self, BufRead, Write};

use jiff::Timestamp;
use model::{Body, Change, Digest, Document, Epoch, Id, Kind, Op, Point, Revision};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{LogBounds, RestoreError, Store, StoreError, StoredFleet};

const FORMAT: &str = "flux-resourceset log";
const VERSION: u32 = 1;

/// How many changes are read at once.
const BATCH: u32 = 1_000;

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// The point of the documents.
    #[serde(rename = "picture")]
    base: Point,
    documents: usize,
    /// The file has the changes up to this point, and perhaps more.
    head: Point,
}

#[derive(Serialize, Deserialize)]
struct DigestLine {
    /// The digest of all lines above.
    sha256: Digest,
}

/// A document, or a write.
#[derive(Serialize, Deserialize)]
struct DocumentLine {
    kind: Kind,
    id: Id,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    op: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
struct ChangeLine {
    revision: Revision,
    epoch: Epoch,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overrules: Option<Digest>,
    parent: Digest,
    digest: Digest,
    at: Timestamp,
    actor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    writes: Vec<DocumentLine>,
}

impl DocumentLine {
    fn new(kind: &Kind, id: &Id, revision: Option<Revision>, op: &Op) -> io::Result<Self> {
        let body = op.body().map(|body| RawValue::from_string(body.text().into_owned())).transpose()?;
        Ok(Self { kind: kind.clone(), id: id.clone(), revision, op: op.name().to_owned(), body })
    }

    fn write(self) -> Result<model::Write, String> {
        let op = match (self.op.as_str(), self.body.map(|body| Body::from_text(body.get()))) {
            ("put", Some(body)) => Op::Put(body),
            ("retire", Some(body)) => Op::Retire(body),
            ("remove", None) => Op::Remove,
            (other, _) => return Err(format!("\"{other}\" is not a write of {} \"{}\"", self.kind, self.id)),
        };
        Ok(model::Write { kind: self.kind, id: self.id, op })
    }

    fn document(self) -> Result<Document, String> {
        let revision = self.revision.ok_or("a document has no revision")?;
        self.write()?.document(revision).ok_or_else(|| "a document is removed".to_owned())
    }
}

/// Writes the beginning of a file: the documents at a revision, and the point up to which changes will follow.
pub fn write_fleet(to: &mut impl Write, fleet: &StoredFleet, head: Point) -> io::Result<()> {
    let mut to = Hashing { to, hasher: Sha256::new() };
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        base: fleet.point,
        documents: fleet.documents.len(),
        head,
    };
    write_line(&mut to, &header)?;
    for document in &fleet.documents {
        write_line(
            &mut to,
            &DocumentLine::new(&document.kind, &document.id, Some(document.revision), &document.op())?,
        )?;
    }
    let Hashing { to, hasher } = to;
    write_line(to, &DigestLine { sha256: digest(hasher) })
}

/// Writes a change; they come in order.
pub fn write_change(to: &mut impl Write, change: &Change) -> io::Result<()> {
    let writes = change.writes.iter().map(|write| DocumentLine::new(&write.kind, &write.id, None, &write.op));
    let line = ChangeLine {
        revision: change.revision,
        epoch: change.epoch,
        overrules: change.overrules,
        parent: change.parent,
        digest: change.digest,
        at: change.at,
        actor: change.actor.clone(),
        reason: change.reason.clone(),
        request_id: change.request_id.clone(),
        writes: writes.collect::<io::Result<_>>()?,
    };
    write_line(to, &line)
}

fn write_line(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Why a backup was not written.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to back up.
    #[error("the log has no change yet: is this the right store?")]
    Empty,
    /// Another log has taken the place of the one that was being read.
    #[error("the log was replaced during the backup; try again")]
    Replaced,
    /// The file failed.
    #[error("the backup cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Writes the whole log of a store as it is now, and reports its progress: changes done, and all changes.
pub async fn back_up(
    store: &dyn Store,
    to: &mut (impl Write + Send),
    mut progress: impl FnMut(u64, u64) + Send,
) -> Result<Point, BackupError> {
    let LogBounds { horizon, head } = store.bounds().await?;
    if head.revision == Revision::ZERO {
        return Err(BackupError::Empty);
    }
    // A log only grows, so what is read in chunks up to a head is one consistent state, unless the log is replaced.
    let fleet = store.load_at(horizon.revision).await?;
    write_fleet(to, &fleet, head)?;
    let mut at = fleet.point;
    let all = head.revision.0.saturating_sub(at.revision.0);
    while at != head {
        let left = u32::try_from(head.revision.0.saturating_sub(at.revision.0)).unwrap_or(u32::MAX);
        let tail = store.changes_after(at.revision, left.min(BATCH)).await?;
        if !tail.continues(&at) || tail.changes.is_empty() {
            return Err(BackupError::Replaced);
        }
        for change in &tail.changes {
            write_change(to, change)?;
            at = at.after(change);
        }
        progress(at.revision.0 - fleet.point.revision.0, all);
    }
    to.flush()?;
    Ok(head)
}

/// A file that is being read: an iterator over the changes after its documents.
pub struct Archive<R> {
    from: R,
    at: Point,
    head: Point,
    ended: bool,
}

impl<R: BufRead> Archive<R> {
    /// Reads the documents.
    pub fn open(from: R) -> Result<(StoredFleet, Self), RestoreError> {
        let mut from = Hashing { to: from, hasher: Sha256::new() };
        let header = match from.line()? {
            Some(line) => parse::<Header>(&line),
            None => return Err(bad("it is empty")),
        };
        let header = header
            .ok()
            .filter(|header| header.format == FORMAT)
            .ok_or_else(|| bad("it is not a backup of a change log"))?;
        if header.version != VERSION {
            return Err(bad(format!("it is of version {}, and this program reads {VERSION}", header.version)));
        }
        let mut documents = Vec::new();
        for _ in 0..header.documents {
            let line = from.line()?.ok_or_else(cut_short)?;
            documents.push(parse::<DocumentLine>(&line)?.document().map_err(bad)?);
        }
        let Hashing { to: mut from, hasher } = from;
        let seal = parse::<DigestLine>(&read_line(&mut from)?.ok_or_else(cut_short)?)?;
        if seal.sha256 != digest(hasher) {
            return Err(bad("it is damaged: its digest does not agree with its documents"));
        }
        let archive = Self { from, at: header.base, head: header.head, ended: false };
        Ok((StoredFleet { point: header.base, documents }, archive))
    }

    fn read(&mut self) -> Result<Option<Change>, RestoreError> {
        let line = match read_line(&mut self.from) {
            // A last line that is not complete was never acknowledged: the writer stopped while it wrote the change.
            Err(ReadError::Unfinished) => None,
            line => line?,
        };
        let Some(line) = line else {
            let short = self.at.revision < self.head.revision;
            return if short { Err(cut_short()) } else { Ok(None) };
        };
        let line = parse::<ChangeLine>(&line)?;
        let change = Change {
            revision: line.revision,
            epoch: line.epoch,
            overrules: line.overrules,
            parent: line.parent,
            digest: line.digest,
            at: line.at,
            actor: line.actor,
            reason: line.reason,
            request_id: line.request_id,
            writes: line.writes.into_iter().map(DocumentLine::write).collect::<Result<_, _>>().map_err(bad)?,
        };
        let follows = change.revision == self.at.revision.next() && change.parent == self.at.digest;
        let at = change.revision;
        if !follows || !change.is_whole() || (at == self.head.revision && change.digest != self.head.digest) {
            return Err(bad(format!("it is damaged: change {at} does not agree with its digest")));
        }
        self.at = self.at.after(&change);
        Ok(Some(change))
    }
}

impl<R: BufRead> Iterator for Archive<R> {
    type Item = Result<Change, RestoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read().transpose();
        self.ended = !matches!(read, Some(Ok(_)));
        read
    }
}

/// Passes bytes on and computes their digest.
struct Hashing<T> {
    to: T,
    hasher: Sha256,
}

impl<T: Write> Write for Hashing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<T: BufRead> Hashing<T> {
    fn line(&mut self) -> Result<Option<String>, RestoreError> {
        let line = read_line(&mut self.to)?;
        if let Some(line) = &line {
            self.hasher.update(line.as_bytes());
        }
        Ok(line)
    }
}

enum ReadError {
    /// A line without a line break.
    Unfinished,
    Io(io::Error),
}

impl From<ReadError> for RestoreError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unfinished => cut_short(),
            ReadError::Io(error) => bad(format!("it cannot be read: {error}")),
        }
    }
}

/// The next line, with its line break.
fn read_line(from: &mut impl BufRead) -> Result<Option<String>, ReadError> {
    let mut line = Vec::new();
    match from.read_until(b'\n', &mut line) {
        Ok(0) => Ok(None),
        Ok(_) if line.ends_with(b"\n") => {
            let text = String::from_utf8(line);
            text.map(Some).map_err(|error| ReadError::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
        }
        Ok(_) => Err(ReadError::Unfinished),
        Err(error) => Err(ReadError::Io(error)),
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, RestoreError> {
    serde_json::from_str(line).map_err(|error| bad(format!("it is damaged: {error}")))
}

fn cut_short() -> RestoreError {
    bad("it is cut short")
}

fn bad(what: impl Into<String>) -> RestoreError {
    RestoreError::Archive(what.into())
}

fn digest(hasher: Sha256) -> Digest {
    Digest::from(<[u8; 32]>::from(hasher.finalize()))
}
