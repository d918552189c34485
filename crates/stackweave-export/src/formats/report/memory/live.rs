//! The live blocks of a device, by the rules of the ledger that recorders and reports use.
//!
//! `activity::LiveMemory`, for formats of events, needs three times the memory for each block. The ledger has only sums
//! by stack, without the times of allocations. The tests compare the moments with the ledger.

use stackweave_profile::WordMap;

use super::addresses::BlocksByAddress;
use super::mappings::{FreedPart, Mappings};
use super::rows::{LiveInterval, Rows};
use super::scale::{Scale, Weight};

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveBlock {
    pub(super) size: u64,
    pub(super) stack: u32,
    /// The index of the first moment at which it is live.
    pub(super) first: u8,
    /// Whether its thread is selected.
    pub(super) is_selected: bool,
}

/// The context of an event: its process, the number of moments before it, and the rows.
#[derive(Debug)]
pub(super) struct EventContext<'r> {
    pub(super) process: u32,
    pub(super) passed: u8,
    pub(super) scale: Scale,
    pub(super) rows: &'r mut Rows,
}

impl EventContext<'_> {
    /// Returns the interval from a moment until this event.
    pub(super) fn interval(&self, stack: u32, first: u8) -> LiveInterval {
        LiveInterval { process: self.process, stack, first, end: self.passed }
    }

    /// Adds the row of a block that is not live any more, and returns its bytes.
    fn remove(&mut self, block: &LiveBlock) -> u64 {
        let weight = self.scale.weight(block.size, block.size);
        if block.is_selected {
            self.rows.add(self.interval(block.stack, block.first), weight);
        }
        weight.bytes
    }
}

/// The live memory of one process on one device.
#[derive(Debug, Default)]
pub(super) struct LiveBlocks {
    blocks: BlocksByAddress,
    mappings: Mappings,
    /// The address and the memory of each thread's last free, which may have failed.
    last_freed: WordMap<u64, (u64, LastFree)>,
    /// The sum of the weights of all bytes.
    bytes: u64,
}

#[derive(Debug)]
enum LastFree {
    Block(LiveBlock, LiveInterval),
    Mappings(Vec<FreedPart>),
}

impl LiveBlocks {
    /// Returns the sum of the weights of all bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn allocate(&mut self, address: u64, block: LiveBlock, context: &mut EventContext<'_>) {
        if let Some(replaced) = self.blocks.insert(address, block) {
            self.bytes = self.bytes.saturating_sub(context.remove(&replaced));
        }
        self.bytes = self.bytes.saturating_add(context.scale.weight(block.size, block.size).bytes);
    }

    pub(super) fn free(&mut self, thread: u32, address: u64, context: &mut EventContext<'_>) {
        let Some(block) = self.blocks.remove(address).filter(|_| address != 0) else {
            if address != 0 {
                self.last_freed.remove(&thread.into());
            }
            return;
        };
        self.bytes = self.bytes.saturating_sub(context.remove(&block));
        let interval = context.interval(block.stack, block.first);
        self.last_freed.insert(thread.into(), (address, LastFree::Block(block, interval)));
    }

    pub(super) fn map(&mut self, address: u64, block: LiveBlock, context: &mut EventContext<'_>) {
        let (gone, _) = self.mappings.cut(address, block.size, context);
        self.bytes = self.bytes.saturating_sub(gone);
        if block.size > 0 {
            self.mappings.insert(address, block);
            self.bytes = self.bytes.saturating_add(context.scale.weight(block.size, block.size).bytes);
        }
    }

    pub(super) fn unmap(&mut self, thread: u32, (address, size): (u64, u64), context: &mut EventContext<'_>) {
        let (gone, parts) = self.mappings.cut(address, size, context);
        self.bytes = self.bytes.saturating_sub(gone);
        if parts.is_empty() {
            self.last_freed.remove(&thread.into());
        } else {
            self.last_freed.insert(thread.into(), (address, LastFree::Mappings(parts)));
        }
    }

    /// Undoes the last free of a thread, at this address, which failed.
    pub(super) fn keep(&mut self, thread: u32, address: u64, context: &mut EventContext<'_>) {
        let last_free = self.last_freed.remove(&thread.into()).filter(|(freed, _)| *freed == address);
        let Some((_, last_free)) = last_free else { return };
        match last_free {
            LastFree::Block(block, interval) => {
                if self.blocks.contains(address) {
                    return;
                }
                self.blocks.insert(address, block);
                let weight = context.scale.weight(block.size, block.size);
                if block.is_selected {
                    context.rows.undo(interval, weight);
                }
                self.bytes = self.bytes.saturating_add(weight.bytes);
            }
            LastFree::Mappings(parts) => {
                for part in parts {
                    self.bytes = self.bytes.saturating_add(self.mappings.restore(&part, context));
                }
            }
        }
    }

    /// Adds the rows of all blocks that are live at the end.
    pub(super) fn finish(self, context: &mut EventContext<'_>) {
        for block in self.blocks.values() {
            context.remove(&block);
        }
        self.mappings.finish(context);
    }

    /// Changes the indexes of moments to these.
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        let renumber = |index: &mut u8| *index = indexes.get(usize::from(*index)).copied().unwrap_or(*index);
        self.blocks.renumber(indexes);
        self.mappings.renumber(indexes);
        for (_, last_free) in self.last_freed.values_mut() {
            match last_free {
                LastFree::Block(block, interval) => {
                    renumber(&mut block.first);
                    *interval = interval.renumbered(indexes);
                }
                LastFree::Mappings(parts) => parts.iter_mut().for_each(|part| part.renumber(indexes)),
            }
        }
    }
}

/// Returns the bytes of a weight, without its blocks.
pub(super) const fn of_bytes(weight: Weight) -> Weight {
    Weight { blocks: 0, ..weight }
}

/// Returns the blocks of a weight, without its bytes.
pub(super) const fn of_blocks(weight: Weight) -> Weight {
    Weight { bytes: 0, ..weight }
}
