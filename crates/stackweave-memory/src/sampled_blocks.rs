//! The addresses of blocks whose allocation a sampled recording contains: their frees are recorded, too.
//!
//! Most frees are of other blocks. A filter that fits into the processor's first-level cache rejects these: it counts
//! how many known addresses have each hash. Behind it is a table of the addresses themselves.
//!
//! Hot file: neither allocates nor locks nor calls the system, and is async-signal-safe.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

const COUNTS: usize = 1 << 14;
pub(crate) const SLOTS: usize = 1 << 16;
/// Adjacent addresses in one cache line.
const GROUP: usize = 8;
/// The number of groups that may contain an address.
const GROUPS: usize = 4;
/// A saturated count: never decremented again.
const SATURATED: u8 = u8::MAX;

#[repr(align(64))]
struct SampledCounts([AtomicU8; COUNTS]);
#[repr(align(64))]
struct Slots([AtomicU64; SLOTS]);

static COUNTED: SampledCounts = SampledCounts([const { AtomicU8::new(0) }; COUNTS]);
static KNOWN: Slots = Slots([const { AtomicU64::new(0) }; SLOTS]);
/// Whether addresses were inserted that did not fit: then every address that passes the filter counts as known.
static HAS_MORE: AtomicBool = AtomicBool::new(false);

#[inline(always)]
fn hash(address: u64) -> u64 {
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn count_of(hash: u64) -> &'static AtomicU8 {
    &COUNTED.0[(hash >> (u64::BITS - COUNTS.trailing_zeros())) as usize]
}

/// Returns whether the address may be known.
#[inline(always)]
pub(crate) fn may_hold(address: u64) -> bool {
    count_of(hash(address)).load(Ordering::Relaxed) != 0
}

/// Returns the slots that may contain an address.
fn slots(hash: u64) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (hash >> (u64::BITS - SLOTS.trailing_zeros())) as usize & !(GROUP - 1);
    (0..GROUP * GROUPS).map(move |offset| &KNOWN.0[(first + offset) % SLOTS])
}

/// Adds an address. Its block is live, so no other thread uses the address.
#[cold]
#[inline(never)]
pub(crate) fn insert(address: u64) {
    let hash = hash(address);
    if slots(hash).any(|slot| slot.load(Ordering::Relaxed) == address) {
        return;
    }
    let _ = count_of(hash).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
    let exchange = |slot: &AtomicU64| slot.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
    if !slots(hash).any(|slot| exchange(slot).is_ok()) {
        HAS_MORE.store(true, Ordering::Relaxed);
    }
}

/// Removes an address. Returns whether it was known.
#[cold]
#[inline(never)]
pub(crate) fn remove(address: u64) -> bool {
    let hash = hash(address);
    let exchange = |slot: &AtomicU64| slot.compare_exchange(address, 0, Ordering::Relaxed, Ordering::Relaxed);
    if !slots(hash).any(|slot| exchange(slot).is_ok()) {
        return HAS_MORE.load(Ordering::Relaxed);
    }
    let less = |count: u8| (count != SATURATED).then(|| count.saturating_sub(1));
    let _ = count_of(hash).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    true
}

/// Removes all addresses. Call it only while nothing is recorded.
pub(crate) fn clear() {
    for slot in &KNOWN.0 {
        if slot.load(Ordering::Relaxed) != 0 {
            slot.store(0, Ordering::Relaxed);
        }
    }
    for count in &COUNTED.0 {
        count.store(0, Ordering::Relaxed);
    }
    HAS_MORE.store(false, Ordering::Relaxed);
}

/// Returns whether more addresses were inserted than fit.
#[cfg(test)]
pub(crate) fn has_more() -> bool {
    HAS_MORE.load(Ordering::Relaxed)
}
