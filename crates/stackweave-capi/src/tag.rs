//! Numbers that only this copy of the library takes back.

const SHIFT: u32 = 32;
const PAGES: u64 = (1 << 30) - 1;

/// What such numbers have in their upper half: the library's place in memory, by pages, which no other copy in the
/// process has, unless it lies a multiple of 4 TiB away. Not zero, so that no number is; the highest bit is clear.
#[inline]
fn tag() -> u64 {
    static HERE: u8 = 0;
    (((&raw const HERE).addr() as u64 >> 12 & PAGES) << 1 | 1) << SHIFT
}

#[inline]
pub(crate) fn put(number: u32) -> u64 {
    tag() | u64::from(number)
}

/// The number, if it is this copy's.
#[inline]
pub(crate) fn take(tagged: u64) -> Option<u32> {
    (tagged >> SHIFT == tag() >> SHIFT).then_some(tagged as u32)
}
