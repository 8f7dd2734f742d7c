//! How large the pages of memory are.
//!
//! A poll of a large fleet waits for memory that no cache holds, and before that for the table that says where it is: of a
//! page of 4 KiB there are too many for the processor to remember. Pages of 2 MiB are few. But they are never all used, and a
//! server of a small fleet is to be small: there they would be a sixth of its memory.

/// A fleet of so many documents is large: its picture takes some 70 MiB.
const LARGE: usize = 20_000;

/// Takes no more memory than is needed, until a large fleet comes.
pub fn keep_pages_small() {
    allow_large_pages(false);
}

/// Gets ready for the picture of a fleet.
pub(crate) fn expect(documents: usize) {
    if documents >= LARGE {
        allow_large_pages(true);
    }
}

#[cfg(target_os = "linux")]
fn allow_large_pages(allowed: bool) {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!allowed) {
        tracing::debug!("the system decides how large pages of memory are: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn allow_large_pages(_: bool) {}
