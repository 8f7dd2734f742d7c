//! Answers with what their headers add to the body.

use model::{Map, Value};

/// A document and its ETag.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The document.
    pub body: Map,
    /// The ETag, for a change that is made only if the document was not changed meanwhile.
    pub etag: String,
}

/// The outcome of a change.
#[derive(Clone, Debug)]
pub struct Made {
    /// The revision of the change or, where there was nothing to do, of the fleet.
    pub revision: u64,
    /// The answer: the document, or what was written.
    pub body: Value,
}
