//! The text of an answer, in buffers that each thread uses again.
//!
//! Answers are about as long as one another. A buffer that was used for the last answer is still in the processor's caches. An
//! allocator hands out the blocks of a size in turn, and each has left the caches by the time its turn comes.

use std::cell::RefCell;

use crate::{Empty, MAX_BYTES, MAX_INPUTS, Refusal};

/// How many buffers a thread keeps, and how large each may be.
const SPARE: (usize, usize) = (4, 64 * 1024);

thread_local! {
    static SPARES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A body that may be sent with status 200: `{"inputs":[…]}`.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer(String);

impl Answer {
    fn with_capacity(bytes: usize) -> Self {
        let mut text = SPARES.with_borrow_mut(Vec::pop).unwrap_or_default();
        text.reserve(bytes);
        Self(text)
    }
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let (most, largest) = SPARE;
        let mut text = std::mem::take(&mut self.0);
        if text.capacity() <= largest {
            text.clear();
            // While a thread ends, there is nowhere to keep it.
            let _ = SPARES.try_with(|spares| {
                let mut spares = spares.borrow_mut();
                if spares.len() < most {
                    spares.push(text);
                }
            });
        }
    }
}

/// Builds an answer.
pub(crate) struct AnswerBuilder {
    answer: Answer,
    count: usize,
}

impl AnswerBuilder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut answer = Answer::with_capacity(bytes);
        answer.0.push_str("{\"inputs\":[");
        Self { answer, count: 0 }
    }

    pub(crate) fn push(&mut self, write: impl FnOnce(&mut String)) {
        if self.count > 0 {
            self.answer.0.push(',');
        }
        self.count += 1;
        write(&mut self.answer.0);
    }

    /// How many inputs it has so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether it has more already than Flux takes.
    pub(crate) fn is_too_large(&self) -> bool {
        self.count > MAX_INPUTS || self.answer.0.len() + "]}".len() > MAX_BYTES
    }

    /// Checks the whole against what Flux takes. "No inputs" may be expressed by a record, which ends as all do.
    pub(crate) fn seal(mut self, empty: Empty, ending: &str) -> Result<Answer, Refusal> {
        if self.count == 0 && empty == Empty::Explicit {
            self.push(|text| {
                text.push_str("{\"id\":\"none\",\"none\":true");
                text.push_str(ending);
            });
        }
        let Self { mut answer, count } = self;
        answer.0.push_str("]}");
        if count > MAX_INPUTS {
            return Err(Refusal::TooManyInputs(count));
        }
        if answer.0.len() > MAX_BYTES {
            return Err(Refusal::TooLarge(answer.0.len()));
        }
        Ok(answer)
    }
}
