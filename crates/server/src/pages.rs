//! Transparent huge pages: not used, until a large fleet is loaded.
//!
//! A poll of a large fleet reads memory that is in no cache, and with pages of 4 KiB its address is not in the processor's
//! translation cache (TLB) either. With pages of 2 MiB it is. But huge pages are never used completely, and a server of a small
//! fleet shall be small: they would be a sixth of its memory.

/// The number of documents from which a fleet is large: its snapshot takes about 70 MiB.
const LARGE: usize = 20_000;

/// Disables huge pages, until a large fleet is loaded.
pub fn disable_huge_pages() {
    allow_huge_pages(false);
}

/// Enables huge pages if a fleet of so many documents is large. To be called before its snapshot is loaded.
pub(crate) fn expect(documents: usize) {
    if documents >= LARGE {
        allow_huge_pages(true);
    }
}

#[cfg(target_os = "linux")]
fn allow_huge_pages(allowed: bool) {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!allowed) {
        tracing::debug!("transparent huge pages stay as the system configures them: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn allow_huge_pages(_: bool) {}
