//! Tags that mark the numbers of this copy of the library, so that other copies reject them.

const SHIFT: u32 = 32;
const PAGES: u64 = (1 << 30) - 1;

/// Returns the upper half of this copy's numbers: the page number of the library's address. Two copies in a process have the
/// same tag only if their addresses differ by a multiple of 4 TiB. The tag is never zero, and its highest bit is clear.
#[inline]
fn tag() -> u64 {
    static HERE: u8 = 0;
    (((&raw const HERE).addr() as u64 >> 12 & PAGES) << 1 | 1) << SHIFT
}

/// Adds the tag to a number.
#[inline]
pub(crate) fn add(number: u32) -> u64 {
    tag() | u64::from(number)
}

/// Returns the number without its tag; `None` if the tag is not this copy's.
#[inline]
pub(crate) fn strip(tagged: u64) -> Option<u32> {
    (tagged >> SHIFT == tag() >> SHIFT).then_some(tagged as u32)
}
