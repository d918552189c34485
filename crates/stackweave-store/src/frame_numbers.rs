//! Frames as numbers of 31 bits, so that a node of the tree of stacks fits in one word.
//!
//! A program has tens of thousands of different frames, and millions of stacks.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::RawFrame;

use crate::address_map::AddressMap;
use crate::id_table::IdTable;

/// The number of the frame whose bits are all zero, which the map cannot hold.
const ZERO: u32 = 1;
/// Numbers have 31 bits.
pub(crate) const LARGEST: u32 = u32::MAX >> 1;

#[derive(Debug)]
pub(crate) struct FrameNumbers {
    numbers: AddressMap,
    frames: IdTable<AtomicU64>,
}

impl FrameNumbers {
    pub(crate) const fn new() -> Self {
        Self { numbers: AddressMap::new(), frames: IdTable::starting_with(ZERO + 1) }
    }

    /// Returns the number of a frame, and assigns one if it is new; `None` if there is no memory, or no number
    /// left.
    pub(crate) fn number(&self, frame: RawFrame) -> Option<u32> {
        let bits = frame.to_bits();
        if bits == 0 {
            return Some(ZERO);
        }
        self.numbers.get(bits).or_else(|| self.add(bits))
    }

    fn add(&self, bits: u64) -> Option<u32> {
        let (new_number, frame) = self.frames.allocate()?;
        frame.store(bits, Ordering::Relaxed);
        // The map makes what was written before visible to the thread that gets the number.
        let number = if new_number <= LARGEST { self.numbers.insert(bits, new_number) } else { None };
        if number != Some(new_number) {
            self.frames.free(new_number);
        }
        number
    }

    /// Returns the frame with this number.
    pub(crate) fn frame(&self, number: u32) -> Option<RawFrame> {
        let bits = if number == ZERO { 0 } else { self.frames.get(number)?.load(Ordering::Relaxed) };
        RawFrame::from_bits(bits)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.frames.mapped_bytes() + self.numbers.stats().mapped_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::CodeAddress;

    #[test]
    fn a_frame_keeps_its_number() {
        let numbers = FrameNumbers::new();
        let frames: Vec<RawFrame> =
            (0..10_000).map(|address| RawFrame::native(CodeAddress::from_bits(address * 16))).collect();
        let given: Vec<u32> = frames.iter().map(|frame| numbers.number(*frame).unwrap()).collect();
        assert_eq!(given, (1..=10_000).collect::<Vec<u32>>());
        assert!(frames.iter().zip(&given).all(|(frame, number)| numbers.number(*frame) == Some(*number)));
        assert!(frames.iter().zip(&given).all(|(frame, number)| numbers.frame(*number) == Some(*frame)));
    }
}
