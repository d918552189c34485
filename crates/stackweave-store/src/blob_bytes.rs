//! The bytes of all blobs, concatenated in blocks that are added and never move.
//!
//! A blob is in one block. If the next blob does not fit, the rest of the block remains empty. A byte is written
//! once, by the thread that reserved it, before any other thread knows of it.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{ptr, slice};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

/// 64 KiB.
const FIRST_LENGTH: usize = 1 << 16;
const FIRST_BYTES: u64 = FIRST_LENGTH as u64;
/// 64 GiB in total.
const BLOCKS: usize = 21;
const LENGTH_BITS: u32 = 28;

/// The maximum length of a blob: 256 MiB less one byte.
pub(crate) const MAX_LENGTH: u64 = (1 << LENGTH_BITS) - 1;

#[repr(transparent)]
struct Byte(UnsafeCell<u8>);

// SAFETY: written only by `BlobBytes::write`, to a span that no other thread has, and read only through
// `BlobBytes::get`, whose caller promises that the write happened before.
unsafe impl Sync for Byte {}

// SAFETY: any bits are a valid number.
unsafe impl ZeroIsValid for Byte {}

/// The location of a blob: the index of its first byte over all blocks, and below that its length. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobSpan(u64);

impl BlobSpan {
    /// Converts the word back; `None` for 0.
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
    /// The index of the first free byte. Byte 0 is unused, so that no span is 0.
    next: AtomicU64,
}

impl BlobBytes {
    pub(crate) const fn new() -> Self {
        Self { blocks: LazyBlock::doubling(FIRST_LENGTH), next: AtomicU64::new(1) }
    }

    /// Reserves a span and writes the parts, one after the other. `None` if there is no memory, or if they are
    /// longer than `MAX_LENGTH`.
    pub(crate) fn write(&self, parts: &[&[u8]]) -> Option<BlobSpan> {
        let length = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len() as u64))?;
        let span = self.reserve(length)?;
        let mut rest = self.bytes(span)?;
        for part in parts {
            let (to, behind) = rest.split_at(part.len());
            // SAFETY: `to` is as long as `part`, and only this call has it: this call reserved its span, which no
            // other thread knows yet. So no thread reads it, and `part` does not overlap it.
            unsafe { ptr::copy_nonoverlapping(part.as_ptr(), UnsafeCell::raw_get(to.as_ptr().cast()), part.len()) };
            rest = behind;
        }
        Some(span)
    }

    /// Frees a span that no other thread has seen, if it is still the last one; otherwise its bytes stay unused.
    pub(crate) fn free(&self, span: BlobSpan) {
        let end = span.start() + span.length() as u64;
        let _ = self.next.compare_exchange(end, span.start(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the bytes of a span.
    ///
    /// # Safety
    /// `write` of this `BlobBytes` returned the span, it was not freed, and that call happened before this one.
    pub(crate) unsafe fn get(&self, span: BlobSpan) -> Option<&[u8]> {
        let bytes = self.bytes(span)?;
        // SAFETY: these bytes live as long as the block, and their write is complete, as the caller promises; a
        // span is written only once.
        Some(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
    }

    /// Returns how many bytes are in use.
    pub(crate) fn used(&self) -> u64 {
        self.next.load(Ordering::Relaxed) - 1
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.blocks.iter().map(LazyBlock::mapped_bytes).sum()
    }

    /// Reserves a span in a mapped block.
    fn reserve(&self, length: u64) -> Option<BlobSpan> {
        if length > MAX_LENGTH {
            return None;
        }
        let mapped_end = |next| {
            let start = first_fit(next, length)?;
            self.blocks.get(block_of(start).0)?.get_or_map()?;
            Some(start + length)
        };
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mapped_end).ok()?;
        first_fit(next, length).map(|start| BlobSpan(start << LENGTH_BITS | length))
    }

    fn bytes(&self, span: BlobSpan) -> Option<&[Byte]> {
        let (block, first) = block_of(span.start());
        let offset = usize::try_from(span.start() - first).ok()?;
        self.blocks.get(block)?.get()?.get(offset..)?.get(..span.length())
    }
}

/// Returns where a blob of this length begins if `next` is the first free byte; `None` if all blocks are full.
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

/// Returns the block of a byte, and the index of the block's first byte. Each block ends at twice the end of the
/// previous block.
fn block_of(byte: u64) -> (usize, u64) {
    match (byte / FIRST_BYTES).checked_ilog2() {
        None => (0, 0),
        Some(doublings) => (doublings as usize + 1, FIRST_BYTES << doublings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'a>(bytes: &'a BlobBytes, parts: &[&[u8]]) -> (BlobSpan, &'a [u8]) {
        let span = bytes.write(parts).unwrap();
        // SAFETY: `write` returned the span just now.
        (span, unsafe { bytes.get(span) }.unwrap())
    }

    #[test]
    fn every_byte_has_its_own_index() {
        let bytes = BlobBytes::new();
        let mut first = 0;
        for (number, block) in bytes.blocks.iter().enumerate() {
            let last = first + block.length() as u64 - 1;
            assert_eq!((block_of(first), block_of(last)), ((number, first), (number, first)));
            first = last + 1;
        }
        assert_eq!((first, block_of(first).0), (1 << 36, BLOCKS));
        assert!(first << LENGTH_BITS == 0, "a span has just enough bits");
    }

    #[test]
    fn parts_are_concatenated() {
        let bytes = BlobBytes::new();
        let (first, text) = written(&bytes, &[b"ab", b"", b"cde"]);
        assert_eq!((text, first.start(), first.length()), (&b"abcde"[..], 1, 5));
        let (second, text) = written(&bytes, &[]);
        assert_eq!((text, second.start(), second.length()), (&b""[..], 6, 0));
        assert_eq!(written(&bytes, &[b"f"]).1, b"f");
        assert_eq!(bytes.used(), 6);
    }

    #[test]
    fn a_blob_that_does_not_fit_is_put_into_the_next_block() {
        let bytes = BlobBytes::new();
        let [most, all] = [1, 0].map(|less| vec![7; FIRST_LENGTH - less]);
        assert_eq!(written(&bytes, &[&most]).0.start(), 1);
        assert_eq!(written(&bytes, &[&all]).0.start(), FIRST_BYTES);
        assert_eq!(written(&bytes, &[b"x"]).0.start(), 2 * FIRST_BYTES);
        let (span, text) = written(&bytes, &[&all, &all, &all]);
        assert_eq!((span.start(), text), (4 * FIRST_BYTES, &all.repeat(3)[..]));
        assert_eq!(bytes.mapped_bytes() as u64, 8 * FIRST_BYTES);
    }

    #[test]
    fn writing_fails_when_all_blocks_are_full() {
        let end = FIRST_BYTES << (BLOCKS - 1);
        assert_eq!(first_fit(end - 10, 10), Some(end - 10));
        assert_eq!((first_fit(end - 10, 11), first_fit(end, 0), first_fit(end, 1)), (None, None, None));
        let bytes = BlobBytes::new();
        assert_eq!(bytes.reserve(MAX_LENGTH + 1), None);
        bytes.next.store(end - 1, Ordering::Relaxed);
        assert_eq!((bytes.reserve(2), bytes.used()), (None, end - 2));
    }

    #[test]
    fn the_last_span_can_be_freed() {
        let bytes = BlobBytes::new();
        let spans = [10, 20].map(|length| bytes.reserve(length).unwrap());
        bytes.free(spans[0]);
        assert_eq!(bytes.used(), 30);
        bytes.free(spans[1]);
        assert_eq!((bytes.used(), bytes.reserve(20)), (10, Some(spans[1])));
    }
}
