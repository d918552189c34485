//! The time stamp counter of x86-64.
//!
//! Hot file: one instruction; async-signal-safe.

use core::arch::x86_64::{__cpuid, _rdtsc};

const POWER_MANAGEMENT: u32 = 0x8000_0007;
const EXTENDED: u32 = 0x8000_0000;
const INVARIANT: u32 = 1 << 8;

/// Reads the counter.
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and Linux lets programs read it.
    unsafe { _rdtsc() }
}

/// Returns whether the counter has a constant rate, whatever the processor's frequency and sleep state.
pub(super) fn is_invariant() -> bool {
    __cpuid(EXTENDED).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
}
