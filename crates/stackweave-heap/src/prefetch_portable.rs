//! Has a cache line fetched: the twin of `prefetch_x86_64.rs` on other processors, which do without.

/// Does nothing.
#[inline]
pub(crate) fn prefetch<T>(_value: &T) {}
