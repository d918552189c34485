//! Prefetches a cache line: the twin of `prefetch_portable.rs` on x86-64.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Prefetches the line of `value`, without waiting for it.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    // SAFETY: reads nothing, whatever the address; and every x86-64 processor has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) };
}
