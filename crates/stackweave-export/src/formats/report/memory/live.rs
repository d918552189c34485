//! The live memory of a device, and the moments between its allocation and its free.
//!
//! The tests compare the moments with the ledger.

use stackweave_heap::{Cut, Kept, LiveBlock, LiveHeap, MappingPart, Restored, Scale, Weight};

use super::rows::{LiveInterval, Rows};

/// How a block or mapping was allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllocationOrigin {
    stack: u32,
    /// The index of the first moment at which it is live.
    first: u8,
    /// The same of a part of a mapping as a block. Its bytes count from the first moment of the mapping.
    first_as_block: u8,
    /// Whether its thread is selected.
    is_selected: bool,
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
    /// Returns the origin of memory that is allocated by this event.
    pub(super) const fn origin(&self, stack: u32, is_selected: bool) -> AllocationOrigin {
        AllocationOrigin { stack, first: self.passed, first_as_block: self.passed, is_selected }
    }

    fn weight(&self, part: &MappingPart<AllocationOrigin>) -> Weight {
        self.scale.weight_of_part(part.whole, part.size())
    }

    /// Changes the rows of selected memory that was freed after `end` moments: for its bytes, and for its blocks.
    fn change(
        &mut self,
        origin: AllocationOrigin,
        end: u8,
        weight: Weight,
        change: fn(&mut Rows, LiveInterval, Weight),
    ) {
        if !origin.is_selected {
            return;
        }
        let interval = |first| LiveInterval { process: self.process, stack: origin.stack, first, end };
        if origin.first == origin.first_as_block {
            change(self.rows, interval(origin.first), weight);
        } else {
            change(self.rows, interval(origin.first), Weight { blocks: 0, ..weight });
            change(self.rows, interval(origin.first_as_block), Weight { bytes: 0, ..weight });
        }
    }

    /// Adds the rows of memory that is freed.
    fn add(&mut self, origin: AllocationOrigin, weight: Weight) {
        self.change(origin, self.passed, weight, Rows::add);
    }

    /// Removes the rows of memory whose free, after `end` moments, had failed.
    fn undo(&mut self, origin: AllocationOrigin, end: u8, weight: Weight) {
        self.change(origin, end, weight, Rows::undo);
    }

    /// Returns what a freed part counts for: it was a block if nothing is left of it.
    fn weight_of_freed(&self, cut: &Cut<AllocationOrigin>) -> Weight {
        let weight = self.weight(&cut.gone);
        if cut.is_whole() { weight } else { Weight { blocks: 0, ..weight } }
    }
}

/// The live memory of one process on one device.
#[derive(Debug, Default)]
pub(super) struct MemoryAtMoments {
    /// The note about a free is the number of moments before it.
    live: LiveHeap<AllocationOrigin, u8>,
    /// The sum of the weights of all bytes.
    bytes: u64,
}

impl MemoryAtMoments {
    /// Returns the sum of the weights of all bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn allocate(
        &mut self,
        address: u64,
        size: u64,
        origin: AllocationOrigin,
        context: &mut EventContext<'_>,
    ) {
        // A block for which there is no memory is not live.
        let Ok(replaced) = self.live.allocate(address, size, origin) else { return };
        if let Some(block) = replaced {
            self.remove(&block, context);
        }
        self.gain(context.scale.weight(size));
    }

    pub(super) fn free(&mut self, thread: u32, address: u64, context: &mut EventContext<'_>) {
        if let Some((block, _)) = self.live.free(thread, address, |_| context.passed) {
            self.remove(&block, context);
        }
    }

    pub(super) fn map(&mut self, address: u64, size: u64, origin: AllocationOrigin, context: &mut EventContext<'_>) {
        let (replaced, part) = self.live.map(address, size, origin);
        for cut in &replaced {
            self.cut(cut, context);
        }
        if let Some(part) = part {
            self.gain(context.weight(&part));
        }
    }

    pub(super) fn unmap(&mut self, thread: u32, (address, size): (u64, u64), context: &mut EventContext<'_>) {
        for (cut, _) in self.live.unmap(thread, address, size, |_| context.passed) {
            self.cut(&cut, context);
        }
    }

    /// Undoes the last free of a thread, at this address, which failed.
    pub(super) fn keep(&mut self, thread: u32, address: u64, context: &mut EventContext<'_>) {
        match self.live.keep(thread, address) {
            Kept::Nothing | Kept::Unknown => {}
            Kept::Block(block, passed) => {
                let weight = context.scale.weight(block.size);
                context.undo(block.value, passed, weight);
                self.gain(weight);
            }
            Kept::Ranges(restored) => {
                for (cut, passed, restored) in &restored {
                    context.undo(cut.gone.value, *passed, context.weight_of_freed(cut));
                    self.restore(restored, context);
                }
            }
        }
    }

    fn gain(&mut self, weight: Weight) {
        self.bytes = self.bytes.saturating_add(weight.bytes);
    }

    fn lose(&mut self, weight: Weight) {
        self.bytes = self.bytes.saturating_sub(weight.bytes);
    }

    fn remove(&mut self, block: &LiveBlock<AllocationOrigin>, context: &mut EventContext<'_>) {
        let weight = context.scale.weight(block.size);
        context.add(block.value, weight);
        self.lose(weight);
    }

    fn cut(&mut self, cut: &Cut<AllocationOrigin>, context: &mut EventContext<'_>) {
        context.add(cut.gone.value, context.weight_of_freed(cut));
        self.lose(context.weight(&cut.before));
        cut.left.iter().flatten().for_each(|part| self.gain(context.weight(part)));
        // Of two parts that are left, one is a block from now on.
        if let [Some(_), Some(last)] = cut.left
            && let Some(origin) = self.live.range_value_mut(last.start)
        {
            origin.first_as_block = context.passed;
        }
    }

    fn restore(&mut self, restored: &Restored<AllocationOrigin>, context: &EventContext<'_>) {
        let Restored { joined, now } = restored;
        joined.iter().flatten().for_each(|part| self.lose(context.weight(part)));
        self.gain(context.weight(now));
        if let Some(origin) = self.live.range_value_mut(now.start) {
            let joined = joined.iter().flatten().map(|part| part.value.first_as_block);
            origin.first_as_block = joined.fold(origin.first_as_block, u8::min);
        }
    }

    /// Adds the rows of all memory that is live at the end.
    pub(super) fn finish(self, context: &mut EventContext<'_>) {
        for (_, block) in self.live.blocks() {
            context.add(block.value, context.scale.weight(block.size));
        }
        for part in self.live.ranges() {
            context.add(part.value, context.weight(part));
        }
    }

    /// Changes the indexes of moments to these.
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        let renumber = |index: &mut u8| *index = indexes.get(usize::from(*index)).copied().unwrap_or(*index);
        let renumber_origin = |origin: &mut AllocationOrigin| {
            renumber(&mut origin.first);
            renumber(&mut origin.first_as_block);
        };
        self.live.update(renumber_origin, renumber);
    }
}
