//! A placeholder counter: the twin of `counter_x86_64.rs` on other processors.

/// Returns zero. It is never called, because the counter is not invariant.
pub(super) const fn read() -> u64 {
    0
}

/// Returns whether the counter has a constant rate.
pub(super) const fn is_invariant() -> bool {
    false
}
