//! Large pages for a mapping: the twin of `large_pages_linux.rs` on other systems, which decide for themselves.

use memmap2::MmapMut;

/// Does nothing.
pub(crate) fn prefer_large_pages(_map: &MmapMut) {}
