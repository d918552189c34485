//! The tree of stacks: a node for each, with its innermost frame and the stack of its callers.
//!
//! 16 bytes each, in blocks that grow and never move. A node is written before its id is given to
//! anyone, and not again. Its words are atomic so that looking up an id that was never given is harmless.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};

use crate::lazy_block::{LazyBlock, ZeroIsValid};

/// 64 KiB.
const FIRST_NODES: usize = 1 << 12;
const BLOCKS: usize = 21;

#[derive(Debug)]
#[repr(C)]
struct Node {
    frame: AtomicU64,
    /// The id of the callers' stack, and above it the number of frames. 0: nobody's node.
    callers: AtomicU64,
}

// SAFETY: numbers with any bits.
unsafe impl ZeroIsValid for Node {}

#[derive(Debug)]
pub(crate) struct StackNodes {
    blocks: [LazyBlock<Node>; BLOCKS],
    /// The next id that nobody has had; 0 when there are no more.
    next: AtomicU32,
    /// An id that was taken and is not needed; 0: none.
    spare: AtomicU32,
}

impl StackNodes {
    pub(crate) const fn new() -> Self {
        Self {
            blocks: LazyBlock::doubling(FIRST_NODES),
            next: AtomicU32::new(StackId::EMPTY.get() + 1),
            spare: AtomicU32::new(0),
        }
    }

    /// A node for `frame`, called from `callers`; `None` if there is no memory, or no id left.
    pub(crate) fn add(&self, frame: RawFrame, callers: StackId) -> Option<StackId> {
        let length = u64::from(self.len(callers)) + 1;
        let id = self.take_id()?;
        let Some(node) = self.node_or_map(id) else {
            self.give_back(id);
            return None;
        };
        node.frame.store(frame.to_bits(), Ordering::Relaxed);
        node.callers.store(length << 32 | u64::from(callers.get()), Ordering::Relaxed);
        Some(id)
    }

    /// Takes back a node whose id nobody has seen.
    pub(crate) fn give_back(&self, id: StackId) {
        if let Some(node) = self.node(id) {
            node.callers.store(0, Ordering::Relaxed);
        }
        // If there is a spare one already, this node stays nobody's: two threads met in the same new stack
        // twice, before another one was new.
        let _ = self.spare.compare_exchange(0, id.get(), Ordering::Release, Ordering::Relaxed);
    }

    /// The innermost frame of a stack, and the stack of its callers; `None` for the empty stack.
    pub(crate) fn get(&self, id: StackId) -> Option<(RawFrame, StackId)> {
        let node = self.node(id)?;
        let callers = StackId::new(low(node.callers.load(Ordering::Relaxed)))?;
        Some((RawFrame::from_bits(node.frame.load(Ordering::Relaxed))?, callers))
    }

    /// How many frames a stack has.
    pub(crate) fn len(&self, id: StackId) -> u32 {
        self.node(id).map_or(0, |node| low(node.callers.load(Ordering::Relaxed) >> 32))
    }

    /// The highest id that was taken.
    pub(crate) fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1)
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.blocks.iter().map(LazyBlock::mapped_bytes).sum()
    }

    fn take_id(&self) -> Option<StackId> {
        if self.spare.load(Ordering::Relaxed) != 0
            && let Some(id) = StackId::new(self.spare.swap(0, Ordering::Acquire))
        {
            return Some(id);
        }
        let more = |next: u32| (next != 0).then(|| next.wrapping_add(1));
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().and_then(StackId::new)
    }

    fn node(&self, id: StackId) -> Option<&Node> {
        let (block, offset) = place(id);
        self.blocks[block].get()?.get(offset)
    }

    fn node_or_map(&self, id: StackId) -> Option<&Node> {
        let (block, offset) = place(id);
        self.blocks[block].get_or_map()?.get(offset)
    }
}

/// In which block a node lies, and where in it.
fn place(id: StackId) -> (usize, usize) {
    let number = id.get() as usize - 1;
    match (number / FIRST_NODES).checked_ilog2() {
        None => (0, number),
        Some(doublings) => (doublings as usize + 1, number - (FIRST_NODES << doublings)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
fn low(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::CodeAddress;

    fn frame(address: u64) -> RawFrame {
        RawFrame::native(CodeAddress::return_address(address))
    }

    #[test]
    fn a_node_is_two_words() {
        assert_eq!(size_of::<Node>(), 16);
    }

    #[test]
    fn every_id_has_its_own_place() {
        let nodes = StackNodes::new();
        let mut expected = (0, 0);
        for id in (1..40_000).filter_map(StackId::new) {
            assert_eq!(place(id), expected);
            expected.1 += 1;
            if nodes.blocks[expected.0].length() == expected.1 {
                expected = (expected.0 + 1, 0);
            }
        }
        let (block, offset) = place(StackId::new(u32::MAX).unwrap());
        assert_eq!((block, offset + 2), (BLOCKS - 1, nodes.blocks[block].length()));
    }

    #[test]
    fn nodes_keep_what_they_were_given() {
        let nodes = StackNodes::new();
        let mut callers = StackId::EMPTY;
        for number in 0..20_000 {
            let id = nodes.add(frame(number), callers).unwrap();
            assert_eq!(nodes.get(id), Some((frame(number), callers)));
            assert_eq!(u64::from(nodes.len(id)), number + 1);
            callers = id;
        }
        assert_eq!(nodes.last(), 20_001);
    }

    #[test]
    fn a_node_that_was_given_back_is_given_out_again() {
        let nodes = StackNodes::new();
        let id = nodes.add(frame(1), StackId::EMPTY).unwrap();
        nodes.give_back(id);
        assert_eq!((nodes.get(id), nodes.len(id)), (None, 0));
        assert_eq!(nodes.add(frame(2), StackId::EMPTY), Some(id));
        assert_eq!(nodes.get(id), Some((frame(2), StackId::EMPTY)));
    }

    #[test]
    fn the_last_id_is_followed_by_none() {
        let nodes = StackNodes::new();
        nodes.next.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(nodes.take_id().map(StackId::get), Some(u32::MAX));
        assert_eq!(nodes.take_id(), None);
        assert_eq!(nodes.take_id(), None);
        assert_eq!(nodes.last(), u32::MAX);
    }
}
