//! Stacks as integers: equal stacks have equal ids, and callers are shared.
//!
//! A stack that is known costs its hash and one look into the index. Only one that is new touches the tree:
//! from its innermost frame outward its callers are looked up until one is known, then the frames inside it
//! get a node each, in a row: a run. The index has the first node of a run, and the last. The others are found by going
//! along the run; those are only callers, four of five in programs with many stacks, and take no room in the index.
//!
//! A run is written whole before its first node is in the index. Threads with the same new callers add the same stack
//! first, so they meet in the index there: one of them keeps its nodes, and the others go along its run.
//!
//! Nothing here waits. A thread that is stopped in the middle of adding a stack, be it by a signal handler that
//! adds the same one, or in a forked child for good, has changed nothing that others need: they finish what it
//! began, and it takes their id.
//!
//! Hot file: no allocation, no lock, async-signal-safe; no system call but for the memory of new stacks.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};

use crate::stack_hash::{InnermostFirst, StackHasher};
use crate::stack_index::StackIndex;
use crate::stack_nodes::StackNodes;

/// All stacks seen so far. Made to be a `static`, and shared by all threads.
///
/// A frame that no other stack shares with this one keeps 8 bytes in the tree. A stack that was interned keeps 13 bytes in
/// the index, or 26 where it is inside of callers that others share. With the room that the index leaves free that makes
/// up to 50, once there are some tens of thousands.
#[derive(Debug)]
pub struct StackTable {
    index: StackIndex,
    nodes: StackNodes,
    refused: AtomicU64,
}

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackTableStats {
    /// Stacks, with those that are only callers of others, without the empty one. A few may count twice: threads
    /// that met in a new one.
    pub stacks: u32,
    /// How many times a stack got no id, for want of memory or of ids.
    pub refused: u64,
    /// Bytes of address space for the tree.
    pub tree_bytes: usize,
    /// Bytes of address space for the index.
    pub index_bytes: usize,
}

impl StackTable {
    /// A table without stacks, which takes no memory yet.
    pub const fn new() -> Self {
        Self { index: StackIndex::new(), nodes: StackNodes::new(), refused: AtomicU64::new(0) }
    }

    /// The id of the stack with these frames, innermost first.
    ///
    /// `None` if it is new and the kernel gives no memory for it, or 2^32 stacks are there; that is counted.
    #[inline]
    pub fn intern(&self, frames: &[RawFrame]) -> Option<StackId> {
        self.intern_hashed(StackHasher::of(frames), frames)
    }

    /// The same, for who has hashed the frames while walking. `hasher` must have seen these frames and no others:
    /// else other stacks may get wrong frames.
    #[inline]
    pub fn intern_hashed(&self, hasher: StackHasher, frames: &[RawFrame]) -> Option<StackId> {
        match self.index.find(hasher.finish()) {
            Some(id) => Some(id),
            None => self.intern_new(hasher, frames),
        }
    }

    #[cold]
    #[inline(never)]
    fn intern_new(&self, hasher: StackHasher, frames: &[RawFrame]) -> Option<StackId> {
        debug_assert_eq!(hasher, StackHasher::of(frames));
        if frames.is_empty() {
            return Some(StackId::EMPTY);
        }
        let id = self.add(hasher, frames);
        if id.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        id
    }

    /// Adds a run of nodes for the frames that are not known.
    ///
    /// Each round but the last knows more frames than the one before: those that another thread has added meanwhile.
    fn add(&self, hasher: StackHasher, frames: &[RawFrame]) -> Option<StackId> {
        loop {
            let mut hash = InnermostFirst::new(hasher, frames.len());
            let (callers, new) = self.known_callers(&mut hash, frames);
            let Some((outermost, inner)) = frames[..new].split_last() else {
                // If it was a caller of others only, it is found at once from now on, if there is memory for that.
                return Some(self.index.add(hash.finish(), callers).unwrap_or(callers));
            };
            let run = self.nodes.add(&frames[..new], callers)?;
            hash.push(*outermost);
            let id = self.index.add(hash.finish(), run.first);
            if id == Some(run.first) {
                inner.iter().rev().for_each(|frame| hash.push(*frame));
                return Some(self.index.add(hash.finish(), run.last).unwrap_or(run.last));
            }
            // Another thread was first, and its run may go on differently; or there is no memory.
            self.nodes.give_back(run);
            id?;
        }
    }

    /// Finds the longest part of the stack that is known, from its outermost frame on. Returns it, with the number of
    /// frames inside of it that are not known. The hash has seen all frames, and afterwards only the known ones.
    fn known_callers(&self, hash: &mut InnermostFirst, frames: &[RawFrame]) -> (StackId, usize) {
        let (mut callers, mut new) = (StackId::EMPTY, 0);
        // The whole stack too: another thread may have added it since it was looked for.
        while new < frames.len() {
            if let Some(known) = self.index.find(hash.finish()) {
                callers = known;
                break;
            }
            hash.pop(frames[new]);
            new += 1;
        }
        while new > 0
            && let Some((next, frame)) = self.nodes.next_in_run(callers)
            && frame == frames[new - 1]
        {
            hash.push(frame);
            (callers, new) = (next, new - 1);
        }
        (callers, new)
    }

    /// The frames of a stack, innermost first. There are none if this table has not given out `id`.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = RawFrame> {
        let mut stack = id;
        iter::from_fn(move || {
            let (frame, callers) = self.nodes.get(stack)?;
            stack = callers;
            Some(frame)
        })
    }

    /// Returns how many frames a stack has. Counts them.
    pub fn len(&self, id: StackId) -> u32 {
        iter::successors(self.parent(id), |callers| self.parent(*callers)).fold(0, |length, _| length + 1)
    }

    /// The stack of its callers: itself without its innermost frame. `None` for the empty stack.
    pub fn parent(&self, id: StackId) -> Option<StackId> {
        self.nodes.callers(id)
    }

    /// What it holds.
    pub fn stats(&self) -> StackTableStats {
        StackTableStats {
            stacks: self.nodes.last() - StackId::EMPTY.get(),
            refused: self.refused.load(Ordering::Relaxed),
            tree_bytes: self.nodes.mapped_bytes(),
            index_bytes: self.index.mapped_bytes(),
        }
    }
}

impl Default for StackTable {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackweave_core::CodeAddress;

    /// A stack named by letters, innermost first.
    fn stack(names: &str) -> Vec<RawFrame> {
        names.bytes().map(|name| RawFrame::native(CodeAddress::return_address(name.into()))).collect()
    }

    #[test]
    fn equal_stacks_have_equal_ids_and_come_back_whole() {
        let table = StackTable::new();
        let ids = ["cba", "cb", "b", "cba", "dba", "abc", ""].map(|names| table.intern(&stack(names)).unwrap());
        assert_eq!(ids[0], ids[3]);
        assert_eq!(ids[6], StackId::EMPTY);
        for (id, names) in ids.iter().zip(["cba", "cb", "b", "cba", "dba", "abc", ""]) {
            assert_eq!(table.frames(*id).collect::<Vec<_>>(), stack(names), "{names}");
            assert_eq!(table.len(*id) as usize, names.len());
        }
    }

    #[test]
    fn callers_are_shared() {
        let table = StackTable::new();
        let inner = table.intern(&stack("dcba")).unwrap();
        assert_eq!(table.stats().stacks, 4);
        let callers = table.intern(&stack("cba")).unwrap();
        assert_eq!(table.parent(inner), Some(callers));
        let other = table.intern(&stack("xcba")).unwrap();
        assert_eq!(table.parent(other), Some(callers));
        assert_eq!(table.stats().stacks, 5);
        assert_eq!(table.parent(table.intern(&stack("a")).unwrap()), Some(StackId::EMPTY));
        assert_eq!(table.parent(StackId::EMPTY), None);
    }

    #[test]
    fn ids_are_dense() {
        let table = StackTable::new();
        let ids: Vec<u32> =
            ["a", "b", "ba", "cba"].iter().filter_map(|names| table.intern(&stack(names))).map(StackId::get).collect();
        assert_eq!(ids, [2, 3, 4, 5]);
    }

    #[test]
    fn an_id_that_was_never_given_has_no_frames() {
        let table = StackTable::new();
        table.intern(&stack("ba"));
        for number in [1, 4, 5000, u32::MAX] {
            let id = StackId::new(number).unwrap();
            assert_eq!(table.frames(id).count(), 0, "{number}");
            assert_eq!((table.len(id), table.parent(id)), (0, None));
        }
    }

    #[test]
    fn a_table_takes_no_memory_before_its_first_stack() {
        static TABLE: StackTable = StackTable::new();
        assert_eq!(TABLE.stats(), StackTableStats::default());
        assert_eq!(TABLE.intern(&[]), Some(StackId::EMPTY));
        assert_eq!(TABLE.stats(), StackTableStats::default());
    }
}
