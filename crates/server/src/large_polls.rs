//! The limit of memory that large answers to polls take while they are sent.
//!
//! An answer may have 900 KiB, and for a client that does not read it stays in memory until the connection ends. A single poll
//! has no limit, but all large answers together have one: a poll beyond it gets 503 with `Retry-After`, which deletes nothing.
//! Answers of usual size are not counted.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::http::header::RETRY_AFTER;

use crate::failure::{ErrorStatus, Failure};

/// Larger answers are counted.
const LARGE: usize = 64 * 1024;

/// The total bytes of large answers that may be sent at the same time.
const MAX_TOTAL: usize = 128 * 1024 * 1024;

/// The large answers that are being sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct LargePolls(Arc<AtomicUsize>);

/// An answer that is being sent.
#[derive(Debug)]
pub(crate) struct Sending<A> {
    answer: A,
    _share: Option<Share>,
}

/// The bytes of one large answer, counted until they are sent or the connection ends.
#[derive(Debug)]
struct Share {
    bytes: usize,
    total: LargePolls,
}

impl LargePolls {
    /// Counts an answer, unless too many large ones are being sent.
    pub(crate) fn send<A: AsRef<[u8]>>(&self, answer: A) -> Result<Sending<A>, Failure> {
        let bytes = answer.as_ref().len();
        if bytes <= LARGE {
            return Ok(Sending { answer, _share: None });
        }
        let share = Share { bytes, total: self.clone() };
        if self.0.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_TOTAL {
            // Dropping the share subtracts its bytes again.
            let detail = "too many large answers are being sent; clusters keep their resources and poll again";
            let failure = Failure::new(ErrorStatus::SERVICE_UNAVAILABLE, "busy", detail);
            return Err(failure.with_header(RETRY_AFTER, Failure::RETRY));
        }
        Ok(Sending { answer, _share: Some(share) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<A: AsRef<[u8]>> AsRef<[u8]> for Sending<A> {
    fn as_ref(&self) -> &[u8] {
        self.answer.as_ref()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn large_answers_share_one_limit_and_small_ones_have_none() {
        let polls = LargePolls::default();
        let answer = |bytes: usize| vec![b'x'; bytes];
        let mut sent: Vec<_> = (0..128).map(|_| polls.send(answer(1024 * 1024)).unwrap()).collect();
        let refused = polls.send(answer(LARGE + 1)).unwrap_err();
        assert_eq!((refused.status().as_u16(), refused.code()), (503, "busy"));
        assert!(polls.send(answer(LARGE)).is_ok());
        sent.pop();
        assert!(polls.send(answer(LARGE + 1)).is_ok(), "one was sent");
    }
}
