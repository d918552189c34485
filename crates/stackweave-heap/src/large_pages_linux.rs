//! Large pages for a mapping: the twin of `large_pages_portable.rs` on Linux.

use memmap2::{Advice, MmapMut};

/// Advises large pages for the mapping: without them, nearly every access to a table of hundreds of megabytes misses
/// the TLB.
pub(crate) fn prefer_large_pages(map: &MmapMut) {
    let _ = map.advise(Advice::HugePage);
}
