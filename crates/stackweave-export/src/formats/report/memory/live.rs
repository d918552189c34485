//! What is live of a device, block by block, by the rules of the ledger that recorders and reports count with.
//!
//! `activity::LiveMemory` has what formats of single events need, in three times the memory for each block; the ledger counts
//! by place, and does not know when a block was taken. The tests hold this to the ledger, moment by moment.

use stackweave_profile::WordMap;

use super::addresses::Blocks;
use super::ranges::{Mapped, Ranges};
use super::rows::{Rows, Stay};
use super::scale::{Scale, Weight};

/// A block that is live.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: u64,
    pub(super) stack: u32,
    /// The place of the first moment at which it is there.
    pub(super) first: u8,
    /// Whether its thread is asked for.
    pub(super) is_wanted: bool,
}

/// What an event is told with: whose it is, how many moments have passed, and where rows go.
#[derive(Debug)]
pub(super) struct Now<'r> {
    pub(super) process: u32,
    pub(super) passed: u8,
    pub(super) scale: Scale,
    pub(super) rows: &'r mut Rows,
}

impl Now<'_> {
    /// From a moment on until now.
    pub(super) fn stay(&self, stack: u32, first: u8) -> Stay {
        Stay { process: self.process, stack, first, behind: self.passed }
    }

    fn lose(&mut self, block: &Block) -> u64 {
        let weight = self.scale.weight(block.size, block.size);
        if block.is_wanted {
            self.rows.add(self.stay(block.stack, block.first), weight);
        }
        weight.bytes
    }
}

/// The memory of one device that one process has taken.
#[derive(Debug, Default)]
pub(super) struct Live {
    blocks: Blocks,
    ranges: Ranges,
    /// What each thread gave back last, and where: it may say that it did not.
    given: WordMap<u64, (u64, Given)>,
    /// The bytes of all, as a sum of weights.
    bytes: u64,
}

#[derive(Debug)]
enum Given {
    Block(Block, Stay),
    Ranges(Vec<Mapped>),
}

impl Live {
    /// The sum of the weights of all bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn allocate(&mut self, address: u64, block: Block, now: &mut Now<'_>) {
        if let Some(replaced) = self.blocks.insert(address, block) {
            self.bytes = self.bytes.saturating_sub(now.lose(&replaced));
        }
        self.bytes = self.bytes.saturating_add(now.scale.weight(block.size, block.size).bytes);
    }

    pub(super) fn free(&mut self, thread: u32, address: u64, now: &mut Now<'_>) {
        let Some(block) = self.blocks.remove(address).filter(|_| address != 0) else {
            if address != 0 {
                self.given.remove(&thread.into());
            }
            return;
        };
        self.bytes = self.bytes.saturating_sub(now.lose(&block));
        let stay = now.stay(block.stack, block.first);
        self.given.insert(thread.into(), (address, Given::Block(block, stay)));
    }

    pub(super) fn map(&mut self, address: u64, block: Block, now: &mut Now<'_>) {
        let (gone, _) = self.ranges.cut(address, block.size, now);
        self.bytes = self.bytes.saturating_sub(gone);
        if block.size > 0 {
            self.ranges.insert(address, block);
            self.bytes = self.bytes.saturating_add(now.scale.weight(block.size, block.size).bytes);
        }
    }

    pub(super) fn unmap(&mut self, thread: u32, (address, size): (u64, u64), now: &mut Now<'_>) {
        let (gone, pieces) = self.ranges.cut(address, size, now);
        self.bytes = self.bytes.saturating_sub(gone);
        if pieces.is_empty() {
            self.given.remove(&thread.into());
        } else {
            self.given.insert(thread.into(), (address, Given::Ranges(pieces)));
        }
    }

    /// What the thread gave back last, at this address, was not given back after all.
    pub(super) fn keep(&mut self, thread: u32, address: u64, now: &mut Now<'_>) {
        let Some((_, given)) = self.given.remove(&thread.into()).filter(|(of, _)| *of == address) else { return };
        match given {
            Given::Block(block, stay) => {
                if self.blocks.contains(address) {
                    return;
                }
                self.blocks.insert(address, block);
                let weight = now.scale.weight(block.size, block.size);
                if block.is_wanted {
                    now.rows.take_back(stay, weight);
                }
                self.bytes = self.bytes.saturating_add(weight.bytes);
            }
            Given::Ranges(pieces) => {
                for piece in pieces {
                    self.bytes = self.bytes.saturating_add(self.ranges.restore(&piece, now));
                }
            }
        }
    }

    /// Nothing happens any more: all that is live has been there until now.
    pub(super) fn finish(self, now: &mut Now<'_>) {
        for block in self.blocks.values() {
            now.lose(&block);
        }
        self.ranges.finish(now);
    }

    /// Moments have these places now.
    pub(super) fn move_to(&mut self, places: &[u8]) {
        let place = |of: &mut u8| *of = places.get(usize::from(*of)).copied().unwrap_or(*of);
        self.blocks.move_to(places);
        self.ranges.move_to(places);
        for (_, given) in self.given.values_mut() {
            match given {
                Given::Block(block, stay) => {
                    place(&mut block.first);
                    *stay = stay.moved_to(places);
                }
                Given::Ranges(pieces) => pieces.iter_mut().for_each(|piece| piece.move_to(places)),
            }
        }
    }
}

/// A weight of bytes only, or of blocks only.
pub(super) const fn of_bytes(weight: Weight) -> Weight {
    Weight { blocks: 0, ..weight }
}

pub(super) const fn of_blocks(weight: Weight) -> Weight {
    Weight { bytes: 0, ..weight }
}
