//! The bytes of all blobs, one after the other, in blocks that grow and never move.
//!
//! A blob lies in one block. What is left of a block when the next blob does not fit stays empty. Bytes are written
//! once, by whoever took their place and before anyone else knows of it, and never again.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{ptr, slice};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

/// 64 KiB.
const FIRST_LENGTH: usize = 1 << 16;
const FIRST_BYTES: u64 = FIRST_LENGTH as u64;
/// 64 GiB in all.
const BLOCKS: usize = 21;
const LENGTH_BITS: u32 = 28;

/// The most bytes that a blob may have: 256 MiB less one.
pub(crate) const MAX_LENGTH: u64 = (1 << LENGTH_BITS) - 1;

#[repr(transparent)]
struct Byte(UnsafeCell<u8>);

// SAFETY: written only by `BlobBytes::write`, to a place that nobody else has, and read only through
// `BlobBytes::get`, whose caller vouches that the writing came before.
unsafe impl Sync for Byte {}

// SAFETY: a number with any bits.
unsafe impl ZeroIsValid for Byte {}

/// Where a blob lies: its first byte counted over all blocks, and below that its length. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    /// `None` for 0.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    fn start(self) -> u64 {
        self.0 >> LENGTH_BITS
    }

    fn length(self) -> usize {
        (self.0 & MAX_LENGTH) as usize
    }
}

#[derive(Debug)]
pub(crate) struct BlobBytes {
    blocks: [LazyBlock<Byte>; BLOCKS],
    /// The first byte that nobody has. Byte 0 is nobody's, so that no place is 0.
    next: AtomicU64,
}

impl BlobBytes {
    pub(crate) const fn new() -> Self {
        Self { blocks: LazyBlock::doubling(FIRST_LENGTH), next: AtomicU64::new(1) }
    }

    /// Writes the parts, one after the other, to a place of their own. `None` if there is no memory, or if they are
    /// longer than `MAX_LENGTH`.
    pub(crate) fn write(&self, parts: &[&[u8]]) -> Option<Place> {
        let length = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len() as u64))?;
        let place = self.reserve(length)?;
        let mut rest = self.bytes(place)?;
        for part in parts {
            let (to, behind) = rest.split_at(part.len());
            // SAFETY: `to` is as long as `part`, and is this call's alone: its place was reserved by this call and is
            // not known to anyone yet. So nobody reads it, and `part` does not overlap it.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), UnsafeCell::raw_get(to.as_ptr().cast()), part.len()) };
            rest = behind;
        }
        Some(place)
    }

    /// Takes back a place that nobody has seen, if it is still the last one; else it is lost.
    pub(crate) fn give_back(&self, place: Place) {
        let end = place.start() + place.length() as u64;
        let _ = self.next.compare_exchange(end, place.start(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The bytes at a place.
    ///
    /// # Safety
    /// `write` of this `BlobBytes` gave the place, it was not given back, and that call happened before this one.
    pub(crate) unsafe fn get(&self, place: Place) -> Option<&[u8]> {
        let bytes = self.bytes(place)?;
        // SAFETY: as many bytes, with the life of the block, whose writing is over, as the caller vouches; nobody
        // writes to a place twice.
        Some(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
    }

    /// How many bytes are taken.
    pub(crate) fn used(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - 1
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.blocks.iter().map(LazyBlock::mapped_bytes).sum()
    }

    /// A place in a block that is mapped.
    fn reserve(&self, length: u64) -> Option<Place> {
        if length > MAX_LENGTH {
            return None;
        }
        let mapped_end = |next| {
            let start = first_fit(next, length)?;
            self.blocks.get(block_of(start).0)?.get_or_map()?;
            Some(start + length)
        };
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mapped_end).ok()?;
        first_fit(next, length).map(|start| Place(start << LENGTH_BITS | length))
    }

    fn bytes(&self, place: Place) -> Option<&[Byte]> {
        let (block, first) = block_of(place.start());
        let offset = usize::try_from(place.start() - first).ok()?;
        self.blocks.get(block)?.get()?.get(offset..)?.get(..place.length())
    }
}

/// Where a blob of this length begins if `next` is the first free byte; `None` if all blocks are full.
fn first_fit(next: u64, length: u64) -> Option<u64> {
    let mut start = next;
    loop {
        let (block, _) = block_of(start);
        if block >= BLOCKS {
            return None;
        }
        let end = FIRST_BYTES << block;
        if start + length <= end {
            return Some(start);
        }
        start = end;
    }
}

/// In which block a byte lies, and which byte is the first there. Each block ends where twice as many bytes end.
fn block_of(byte: u64) -> (usize, u64) {
    match (byte / FIRST_BYTES).checked_ilog2() {
        None => (0, 0),
        Some(doublings) => (doublings as usize + 1, FIRST_BYTES << doublings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'a>(bytes: &'a BlobBytes, parts: &[&[u8]]) -> (Place, &'a [u8]) {
        let place = bytes.write(parts).unwrap();
        // SAFETY: `write` gave the place just now.
        (place, unsafe { bytes.get(place) }.unwrap())
    }

    #[test]
    fn every_byte_has_its_own_place() {
        let bytes = BlobBytes::new();
        let mut first = 0;
        for (number, block) in bytes.blocks.iter().enumerate() {
            let last = first + block.length() as u64 - 1;
            assert_eq!((block_of(first), block_of(last)), ((number, first), (number, first)));
            first = last + 1;
        }
        assert_eq!((first, block_of(first).0), (1 << 36, BLOCKS));
        assert!(first << LENGTH_BITS == 0, "a place has just enough bits");
    }

    #[test]
    fn parts_lie_one_after_the_other() {
        let bytes = BlobBytes::new();
        let (first, text) = written(&bytes, &[b"ab", b"", b"cde"]);
        assert_eq!((text, first.start(), first.length()), (&b"abcde"[..], 1, 5));
        let (second, text) = written(&bytes, &[]);
        assert_eq!((text, second.start(), second.length()), (&b""[..], 6, 0));
        assert_eq!(written(&bytes, &[b"f"]).1, b"f");
        assert_eq!(bytes.used(), 6);
    }

    #[test]
    fn what_does_not_fit_goes_to_the_next_block() {
        let bytes = BlobBytes::new();
        let [most, all] = [1, 0].map(|less| vec![7; FIRST_LENGTH - less]);
        assert_eq!(written(&bytes, &[&most]).0.start(), 1);
        assert_eq!(written(&bytes, &[&all]).0.start(), FIRST_BYTES);
        assert_eq!(written(&bytes, &[b"x"]).0.start(), 2 * FIRST_BYTES);
        let (place, text) = written(&bytes, &[&all, &all, &all]);
        assert_eq!((place.start(), text), (4 * FIRST_BYTES, &all.repeat(3)[..]));
        assert_eq!(bytes.mapped_bytes() as u64, 8 * FIRST_BYTES);
    }

    #[test]
    fn the_end_is_none() {
        let end = FIRST_BYTES << (BLOCKS - 1);
        assert_eq!(first_fit(end - 10, 10), Some(end - 10));
        assert_eq!((first_fit(end - 10, 11), first_fit(end, 0), first_fit(end, 1)), (None, None, None));
        let bytes = BlobBytes::new();
        assert_eq!(bytes.reserve(MAX_LENGTH + 1), None);
        bytes.next.store(end - 1, Ordering::Relaxed);
        assert_eq!((bytes.reserve(2), bytes.used()), (None, end - 2));
    }

    #[test]
    fn the_last_place_can_be_given_back() {
        let bytes = BlobBytes::new();
        let places = [10, 20].map(|length| bytes.reserve(length).unwrap());
        bytes.give_back(places[0]);
        assert_eq!(bytes.used(), 30);
        bytes.give_back(places[1]);
        assert_eq!((bytes.used(), bytes.reserve(20)), (10, Some(places[1])));
    }
}
