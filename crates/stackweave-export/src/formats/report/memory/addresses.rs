//! Live blocks by address, in little memory.

use std::hash::{Hash, Hasher};

use stackweave_profile::WordMap;

use super::live::LiveBlock;

/// The number of maps for the blocks of a process, a power of two. A map needs twice its memory while it grows, so
/// there are many small ones.
const PARTS: usize = 64;

/// Blocks by address. Each needs 21 bytes, and its share of the free space of a map.
#[derive(Debug)]
pub(super) struct BlocksByAddress {
    parts: Vec<WordMap<PackedAddress, PackedBlock>>,
}

/// An address without the alignment of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedAddress([u32; 2]);

impl Hash for PackedAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[1]) << 32 | u64::from(self.0[0]));
    }
}

/// A block with a size of 48 bits, which is enough for all addresses.
#[derive(Clone, Copy, Debug)]
struct PackedBlock {
    size_low: u32,
    stack: u32,
    size_high: u16,
    first: u8,
    is_selected: bool,
}

impl From<LiveBlock> for PackedBlock {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of 48 bits")]
    fn from(block: LiveBlock) -> Self {
        let LiveBlock { size, stack, first, is_selected } = block;
        let size = size.min((1 << 48) - 1);
        Self { size_low: size as u32, stack, size_high: (size >> 32) as u16, first, is_selected }
    }
}

impl From<PackedBlock> for LiveBlock {
    fn from(packed: PackedBlock) -> Self {
        let PackedBlock { size_low, stack, size_high, first, is_selected } = packed;
        Self { size: u64::from(size_high) << 32 | u64::from(size_low), stack, first, is_selected }
    }
}

impl Default for BlocksByAddress {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| WordMap::default()).collect() }
    }
}

impl BlocksByAddress {
    /// Returns the index of the map for an address, and the key.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of an address, and less than there are parts")]
    const fn part_and_key(address: u64) -> (usize, PackedAddress) {
        // Addresses of blocks are multiples of 16, and a page has blocks of one size.
        let part = (address >> 4 ^ address >> 10 ^ address >> 16) as usize % PARTS;
        (part, PackedAddress([address as u32, (address >> 32) as u32]))
    }

    pub(super) fn insert(&mut self, address: u64, block: LiveBlock) -> Option<LiveBlock> {
        let (part, address) = Self::part_and_key(address);
        self.parts[part].insert(address, block.into()).map(LiveBlock::from)
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<LiveBlock> {
        let (part, address) = Self::part_and_key(address);
        self.parts[part].remove(&address).map(LiveBlock::from)
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let (part, address) = Self::part_and_key(address);
        self.parts[part].contains_key(&address)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = LiveBlock> {
        self.parts.iter().flat_map(WordMap::values).map(|block| LiveBlock::from(*block))
    }

    /// Changes the indexes of moments to these.
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        for block in self.parts.iter_mut().flat_map(WordMap::values_mut) {
            block.first = indexes.get(usize::from(block.first)).copied().unwrap_or(block.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_stored_without_loss() {
        let mut blocks = BlocksByAddress::default();
        let block = |size| LiveBlock { size, stack: u32::MAX, first: 200, is_selected: true };
        let sizes = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 48) - 1];
        let address = |index: usize| 0x7fff_0000_0010 + ((index as u64) << 33);
        for (index, size) in sizes.into_iter().enumerate() {
            assert!(blocks.insert(address(index), block(size)).is_none());
        }
        assert_eq!(blocks.insert(address(1), block(9)).map(|old| old.size), Some(1));
        assert_eq!(blocks.values().count(), sizes.len());
        for (index, size) in sizes.into_iter().enumerate().filter(|(index, _)| *index != 1) {
            assert!(blocks.contains(address(index)));
            let found =
                blocks.remove(address(index)).map(|block| (block.size, block.stack, block.first, block.is_selected));
            assert_eq!(found, Some((size, u32::MAX, 200, true)));
            assert!(blocks.remove(address(index)).is_none());
        }
        assert_eq!(size_of::<(PackedAddress, PackedBlock)>(), 20);
    }
}
