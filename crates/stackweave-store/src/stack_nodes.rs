//! The tree of stacks: each node has the innermost frame of a stack, and the id of its callers' stack.
//!
//! Nodes that were added together form a run: the callers of each node, except the first, are the previous node.
//! So a run is found by its first node, and the other nodes need no entry in the index.
//!
//! A node has 8 bytes, in blocks that are added and never move. It is written once, before any other thread gets
//! its id. It is one atomic word, so that looking up an invalid id is harmless.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};

use crate::frame_numbers::FrameNumbers;
use crate::id_table::IdTable;

/// Flag: the node is the first of a run.
const FIRST: u64 = 1 << 63;
const FRAME_SHIFT: u32 = 32;

/// The ids of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRun {
    pub(crate) first: StackId,
    pub(crate) last: StackId,
}

#[derive(Debug)]
pub(crate) struct StackNodes {
    frames: FrameNumbers,
    /// [`FIRST`] or not, the number of the frame (31 bits), and the id of the callers' stack (32 bits). 0: no
    /// node.
    nodes: IdTable<AtomicU64>,
}

impl StackNodes {
    pub(crate) const fn new() -> Self {
        Self { frames: FrameNumbers::new(), nodes: IdTable::starting_with(StackId::EMPTY.get() + 1) }
    }

    /// Adds a run of nodes for these frames, innermost first, called from `callers`. Returns its ids; `None` if
    /// there is no memory, no id left, or no frame.
    pub(crate) fn add(&self, frames: &[RawFrame], callers: StackId) -> Option<IdRun> {
        // Get the numbers first: a thread that fails here has allocated no id.
        frames.iter().try_for_each(|frame| self.frames.number(*frame).map(|_| ()))?;
        let length = u32::try_from(frames.len()).ok().filter(|length| *length > 0)?;
        let first = self.nodes.allocate_run(length)?;
        let (mut above, mut flag) = (callers.get(), FIRST);
        for (number, frame) in (first..).zip(frames.iter().rev()) {
            let frame = u64::from(self.frames.number(*frame)?) << FRAME_SHIFT;
            self.nodes.get(number)?.store(flag | frame | u64::from(above), Ordering::Relaxed);
            (above, flag) = (number, 0);
        }
        Some(IdRun { first: StackId::new(first)?, last: StackId::new(above)? })
    }

    /// Frees a run whose ids no other thread has seen.
    pub(crate) fn free(&self, run: IdRun) {
        for number in run.first.get()..=run.last.get() {
            if let Some(node) = self.nodes.get(number) {
                node.store(0, Ordering::Relaxed);
            }
        }
        self.nodes.free_run(run.first.get(), run.last.get() - run.first.get() + 1);
    }

    /// Returns the node that follows `id` in its run, and its frame. Other threads know `id`, and so the whole
    /// run.
    pub(crate) fn next_in_run(&self, id: StackId) -> Option<(StackId, RawFrame)> {
        let next = StackId::new(id.get().checked_add(1)?)?;
        let node = self.word(next)?;
        if node & FIRST != 0 || low(node) != id.get() {
            return None;
        }
        Some((next, self.frame(node)?))
    }

    /// Returns the innermost frame of a stack, and the stack of its callers; `None` for the empty stack.
    pub(crate) fn get(&self, id: StackId) -> Option<(RawFrame, StackId)> {
        let node = self.word(id)?;
        let callers = StackId::new(low(node))?;
        Some((self.frame(node)?, callers))
    }

    /// Returns the stack of its callers; `None` for the empty stack.
    pub(crate) fn callers(&self, id: StackId) -> Option<StackId> {
        StackId::new(low(self.word(id)?))
    }

    fn word(&self, id: StackId) -> Option<u64> {
        Some(self.nodes.get(id.get())?.load(Ordering::Relaxed))
    }

    fn frame(&self, node: u64) -> Option<RawFrame> {
        self.frames.frame(low((node & !FIRST) >> FRAME_SHIFT))
    }

    /// Returns the highest id that was allocated.
    pub(crate) fn last(&self) -> u32 {
        self.nodes.last()
    }

    pub(crate) fn mapped_bytes(&self) -> usize {
        self.nodes.mapped_bytes() + self.frames.mapped_bytes()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is needed")]
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
    fn nodes_keep_their_frames_and_callers() {
        let nodes = StackNodes::new();
        let mut callers = StackId::EMPTY;
        for number in 0..20_000 {
            let id = nodes.add(&[frame(number)], callers).unwrap().last;
            assert_eq!(nodes.get(id), Some((frame(number), callers)));
            assert_eq!(nodes.callers(id), Some(callers));
            callers = id;
        }
        assert_eq!(nodes.last(), 20_001);
    }

    #[test]
    fn a_freed_node_is_reused() {
        let nodes = StackNodes::new();
        let run = nodes.add(&[frame(1)], StackId::EMPTY).unwrap();
        nodes.free(run);
        assert_eq!((nodes.get(run.first), nodes.callers(run.first)), (None, None));
        assert_eq!(nodes.add(&[frame(2)], StackId::EMPTY), Some(run));
        assert_eq!(nodes.get(run.first), Some((frame(2), StackId::EMPTY)));
    }

    #[test]
    fn following_a_run_ends_at_its_last_node() {
        let nodes = StackNodes::new();
        let callers = nodes.add(&[frame(1)], StackId::EMPTY).unwrap().last;
        let run = nodes.add(&[frame(4), frame(3), frame(2)], callers).unwrap();
        let behind = nodes.add(&[frame(5)], run.last).unwrap();
        assert_eq!(behind.first.get(), run.last.get() + 1);
        assert_eq!(nodes.get(run.first), Some((frame(2), callers)));
        assert_eq!(nodes.next_in_run(callers), None, "a different run begins there");
        let second = nodes.next_in_run(run.first).unwrap();
        assert_eq!(second.1, frame(3));
        assert_eq!(nodes.next_in_run(second.0), Some((run.last, frame(4))));
        assert_eq!(nodes.next_in_run(run.last), None, "the node behind it belongs to another run");
        nodes.free(behind);
        nodes.free(run);
        assert_eq!(nodes.next_in_run(run.first), None);
    }
}
