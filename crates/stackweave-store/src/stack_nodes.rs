//! The tree of stacks: a node for each, with its innermost frame and the stack of its callers.
//!
//! 16 bytes each, in blocks that grow and never move. A node is written before its id is given to
//! anyone, and not again. Its words are atomic so that looking up an id that was never given is harmless.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};

use crate::lazy_block::ZeroIsValid;
use crate::numbered::Numbered;

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
    nodes: Numbered<Node>,
}

impl StackNodes {
    pub(crate) const fn new() -> Self {
        Self { nodes: Numbered::starting_with(StackId::EMPTY.get() + 1) }
    }

    /// A node for `frame`, called from `callers`; `None` if there is no memory, or no id left.
    pub(crate) fn add(&self, frame: RawFrame, callers: StackId) -> Option<StackId> {
        let length = u64::from(self.len(callers)) + 1;
        let (number, node) = self.nodes.take()?;
        node.frame.store(frame.to_bits(), Ordering::Relaxed);
        node.callers.store(length << 32 | u64::from(callers.get()), Ordering::Relaxed);
        StackId::new(number)
    }

    /// Takes back a node whose id nobody has seen.
    pub(crate) fn give_back(&self, id: StackId) {
        if let Some(node) = self.nodes.get(id.get()) {
            node.callers.store(0, Ordering::Relaxed);
        }
        self.nodes.give_back(id.get());
    }

    /// The innermost frame of a stack, and the stack of its callers; `None` for the empty stack.
    pub(crate) fn get(&self, id: StackId) -> Option<(RawFrame, StackId)> {
        let node = self.nodes.get(id.get())?;
        let callers = StackId::new(low(node.callers.load(Ordering::Relaxed)))?;
        Some((RawFrame::from_bits(node.frame.load(Ordering::Relaxed))?, callers))
    }

    /// How many frames a stack has.
    pub(crate) fn len(&self, id: StackId) -> u32 {
        self.nodes.get(id.get()).map_or(0, |node| low(node.callers.load(Ordering::Relaxed) >> 32))
    }

    /// The highest id that was taken.
    pub(crate) fn last(&self) -> u32 {
        self.nodes.last()
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.nodes.mapped_bytes()
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
}
