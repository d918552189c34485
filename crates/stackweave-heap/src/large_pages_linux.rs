//! Large pages for a mapping: the twin of `large_pages_portable.rs` on Linux.

use memmap2::{Advice, MmapMut};

/// Has the mapping in large pages, if the kernel has some: a table of hundreds of megabytes misses the processor's table of
/// pages at every look otherwise.
pub(crate) fn prefer_large_pages(map: &MmapMut) {
    let _ = map.advise(Advice::HugePage);
}
