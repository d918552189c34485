//! Very many blocks by address.

use std::hash::{Hash, Hasher};

use stackweave_profile::WordMap;

use super::live::Block;

/// So many maps hold the blocks of a process. One that grows is there twice for a moment: with many, that is little.
/// Their number is a power of two.
const PARTS: usize = 64;

/// Very many blocks by address, in 21 bytes each and what a map has free.
#[derive(Debug)]
pub(super) struct Blocks {
    parts: Vec<WordMap<Address, Packed>>,
}

/// An address that need not be aligned as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address([u32; 2]);

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[1]) << 32 | u64::from(self.0[0]));
    }
}

/// A block, with a size of 48 bits: more than there are addresses.
#[derive(Clone, Copy, Debug)]
struct Packed {
    size_low: u32,
    stack: u32,
    size_high: u16,
    first: u8,
    is_wanted: bool,
}

impl From<Block> for Packed {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of 48 bits")]
    fn from(block: Block) -> Self {
        let Block { size, stack, first, is_wanted } = block;
        let size = size.min((1 << 48) - 1);
        Self { size_low: size as u32, stack, size_high: (size >> 32) as u16, first, is_wanted }
    }
}

impl From<Packed> for Block {
    fn from(packed: Packed) -> Self {
        let Packed { size_low, stack, size_high, first, is_wanted } = packed;
        Self { size: u64::from(size_high) << 32 | u64::from(size_low), stack, first, is_wanted }
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| WordMap::default()).collect() }
    }
}

impl Blocks {
    /// The map that an address is in, and as what.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of an address, and less than there are parts")]
    const fn place(address: u64) -> (usize, Address) {
        // Blocks are a multiple of 16 bytes apart, and pages have one size of blocks.
        let part = (address >> 4 ^ address >> 10 ^ address >> 16) as usize % PARTS;
        (part, Address([address as u32, (address >> 32) as u32]))
    }

    pub(super) fn insert(&mut self, address: u64, block: Block) -> Option<Block> {
        let (part, address) = Self::place(address);
        self.parts[part].insert(address, block.into()).map(Block::from)
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<Block> {
        let (part, address) = Self::place(address);
        self.parts[part].remove(&address).map(Block::from)
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let (part, address) = Self::place(address);
        self.parts[part].contains_key(&address)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = Block> {
        self.parts.iter().flat_map(WordMap::values).map(|block| Block::from(*block))
    }

    /// Moments have these places now.
    pub(super) fn move_to(&mut self, places: &[u8]) {
        for block in self.parts.iter_mut().flat_map(WordMap::values_mut) {
            block.first = places.get(usize::from(block.first)).copied().unwrap_or(block.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_as_they_were() {
        let mut blocks = Blocks::default();
        let block = |size| Block { size, stack: u32::MAX, first: 200, is_wanted: true };
        let sizes = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 48) - 1];
        let address = |place: usize| 0x7fff_0000_0010 + ((place as u64) << 33);
        for (place, size) in sizes.into_iter().enumerate() {
            assert!(blocks.insert(address(place), block(size)).is_none());
        }
        assert_eq!(blocks.insert(address(1), block(9)).map(|old| old.size), Some(1));
        assert_eq!(blocks.values().count(), sizes.len());
        for (place, size) in sizes.into_iter().enumerate().filter(|(place, _)| *place != 1) {
            assert!(blocks.contains(address(place)));
            let found = blocks.remove(address(place)).map(|of| (of.size, of.stack, of.first, of.is_wanted));
            assert_eq!(found, Some((size, u32::MAX, 200, true)));
            assert!(blocks.remove(address(place)).is_none());
        }
        assert_eq!(size_of::<(Address, Packed)>(), 20);
    }
}
