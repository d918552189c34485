//! Which blocks of memory were not freed.

use crate::aggregate::stack_costs::Place;
use crate::word_hash::WordMap;

/// The blocks of one process that are taken, by address. To be told of events in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct LiveBlocks {
    blocks: WordMap<u64, Block>,
    pub(crate) replaced: u64,
    pub(crate) unknown_frees: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Whose it is; `None` if it is of no thread or time that was asked for.
    pub(crate) group: Option<usize>,
    pub(crate) place: Place,
    pub(crate) size: u64,
}

impl LiveBlocks {
    pub(crate) fn allocate(&mut self, address: u64, block: Block) {
        let replaced = self.blocks.insert(address, block);
        self.replaced += u64::from(replaced.is_some());
    }

    pub(crate) fn free(&mut self, address: u64) {
        // Freeing nothing is no free.
        if self.blocks.remove(&address).is_none() && address != 0 {
            self.unknown_frees += 1;
        }
    }

    /// What was not freed: group, place and size.
    pub(crate) fn left(&self) -> impl Iterator<Item = (usize, Place, i64)> {
        let size = |block: &Block| i64::try_from(block.size).unwrap_or(i64::MAX);
        self.blocks.values().filter_map(move |block| Some((block.group?, block.place, size(block))))
    }
}
