//! The live mappings, which may be unmapped in parts. Each remaining part of a mapping is a block.

use std::collections::BTreeMap;

use super::live::{EventContext, LiveBlock, of_blocks, of_bytes};

/// The kernel maps whole pages.
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// By their first addresses. They do not overlap.
    parts: BTreeMap<u64, MappedPart>,
    mappings: u64,
}

/// A part of a mapping without gaps.
#[derive(Clone, Copy, Debug)]
struct MappedPart {
    start: u64,
    end: u64,
    /// The whole mapping as a block, and its number.
    block: LiveBlock,
    mapping: u64,
    /// The first moment at which the part is counted as a block. Its bytes count from the first moment of the mapping.
    first_as_block: u8,
}

/// A part that was unmapped. It is restored if the call failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreedPart {
    part: MappedPart,
    /// Whether the call unmapped the whole remaining part.
    is_whole: bool,
    /// The number of moments before it was unmapped.
    passed: u8,
}

impl MappedPart {
    fn within(&self, start: u64, end: u64) -> Option<Self> {
        let (start, end) = (self.start.max(start), self.end.min(end));
        (start < end).then_some(Self { start, end, ..*self })
    }

    fn bytes(&self, context: &EventContext<'_>) -> u64 {
        context.scale.weight(self.block.size, self.end - self.start).bytes
    }

    /// Adds the rows of a part that is not mapped any more. It counted as a block if `is_whole`.
    fn remove(&self, is_whole: bool, context: &mut EventContext<'_>) {
        if self.block.is_selected {
            let weight = context.scale.weight(self.block.size, self.end - self.start);
            context.rows.add(context.interval(self.block.stack, self.block.first), of_bytes(weight));
            if is_whole {
                context.rows.add(context.interval(self.block.stack, self.first_as_block), of_blocks(weight));
            }
        }
    }
}

impl Mappings {
    pub(super) fn insert(&mut self, address: u64, block: LiveBlock) {
        self.mappings += 1;
        let (end, mapping) = (address.saturating_add(block.size), self.mappings);
        self.parts.insert(address, MappedPart { start: address, end, block, mapping, first_as_block: block.first });
    }

    /// Unmaps these addresses, up to the end of the last page. Returns the weight of the bytes, and the parts.
    pub(super) fn cut(&mut self, address: u64, size: u64, context: &mut EventContext<'_>) -> (u64, Vec<FreedPart>) {
        let end = address.saturating_add(size);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
        let (mut bytes, mut gone) = (0_u64, Vec::new());
        while let Some(before) = self.first_in(address, end) {
            let Some(part) = before.within(address, end) else { break };
            self.parts.remove(&before.start);
            let left = [before.within(0, address), before.within(end, u64::MAX)];
            let is_whole = left.iter().all(Option::is_none);
            bytes = bytes.saturating_add(before.bytes(context));
            for (number, left) in left.into_iter().flatten().enumerate() {
                bytes = bytes.saturating_sub(left.bytes(context));
                let first_as_block = if number == 0 { before.first_as_block } else { context.passed };
                self.parts.insert(left.start, MappedPart { first_as_block, ..left });
            }
            part.remove(is_whole, context);
            gone.push(FreedPart { part, is_whole, passed: context.passed });
        }
        (bytes, gone)
    }

    fn first_in(&self, start: u64, end: u64) -> Option<MappedPart> {
        let containing = self.parts.range(..=start).next_back().filter(|(_, part)| start < part.end);
        containing.or_else(|| self.parts.range(start..end).next()).map(|(_, part)| *part)
    }

    /// Restores a part, unless its addresses are mapped again, and joins it with adjacent parts of its mapping. Returns
    /// the weight of its bytes.
    pub(super) fn restore(&mut self, freed: &FreedPart, context: &mut EventContext<'_>) -> u64 {
        let FreedPart { mut part, is_whole, passed } = *freed;
        if self.first_in(part.start, part.end).is_some() {
            return 0;
        }
        let bytes = part.bytes(context);
        if part.block.is_selected {
            let weight = context.scale.weight(part.block.size, part.end - part.start);
            let interval =
                |first| super::rows::LiveInterval { end: passed, ..context.interval(part.block.stack, first) };
            let (as_bytes, as_block) = (interval(part.block.first), interval(part.first_as_block));
            context.rows.undo(as_bytes, of_bytes(weight));
            if is_whole {
                context.rows.undo(as_block, of_blocks(weight));
            }
        }
        let before = self.parts.range(..part.start).next_back().map(|(_, other)| *other);
        let before = before.filter(|other| other.end == part.start);
        let after = self.parts.get(&part.end).copied();
        for other in [before, after].into_iter().flatten().filter(|other| other.mapping == part.mapping) {
            self.parts.remove(&other.start);
            (part.start, part.end) = (part.start.min(other.start), part.end.max(other.end));
            part.first_as_block = part.first_as_block.min(other.first_as_block);
        }
        self.parts.insert(part.start, part);
        bytes
    }

    pub(super) fn finish(&self, context: &mut EventContext<'_>) {
        self.parts.values().for_each(|part| part.remove(true, context));
    }

    /// Changes the indexes of moments to these.
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        self.parts.values_mut().for_each(|part| part.renumber(indexes));
    }
}

impl MappedPart {
    fn renumber(&mut self, indexes: &[u8]) {
        for index in [&mut self.block.first, &mut self.first_as_block] {
            *index = indexes.get(usize::from(*index)).copied().unwrap_or(*index);
        }
    }
}

impl FreedPart {
    pub(super) fn renumber(&mut self, indexes: &[u8]) {
        self.part.renumber(indexes);
        self.passed = indexes.get(usize::from(self.passed)).copied().unwrap_or(self.passed);
    }
}
