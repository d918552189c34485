//! No counter that is known to be fit: the twin of `counter_x86_64.rs` on other processors.

/// Never asked, since it is not invariant.
pub(super) const fn read() -> u64 {
    0
}

/// Whether it counts at one rate.
pub(super) const fn is_invariant() -> bool {
    false
}
