//! Prefetches a cache line: the twin of `prefetch_x86_64.rs` on other processors, which do nothing.

/// Does nothing.
#[inline]
pub(crate) fn prefetch<T>(_value: &T) {}
