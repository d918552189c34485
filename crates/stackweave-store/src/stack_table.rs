//! Stacks as integers: equal stacks have equal ids, and stacks share their callers.
//!
//! A known stack costs its hash and one lookup in the index. Only a new one uses the tree: its callers are looked
//! up, from its innermost frame outward, until a known one is found. Then the frames inside that caller get
//! consecutive nodes: a run. The index has the first and the last node of a run. The other nodes are found by
//! following the run; they are only callers (four of five nodes in programs with many stacks), and need no memory
//! in the index.
//!
//! A run is complete before its first node is in the index. Threads with the same new callers add the same stack
//! first, so they meet in the index: one of them keeps its nodes, and the others follow its run.
//!
//! Nothing here blocks. A thread that is stopped in the middle of adding a stack, by a signal handler that adds
//! the same one, or forever in a forked child, has changed nothing that other threads need: they complete the
//! stack, and it uses their id.
//!
//! Hot file: no allocation, no lock, async-signal-safe; no system call except for the memory of new stacks.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{RawFrame, StackId};

use crate::stack_hash::{InnermostHasher, StackHasher};
use crate::stack_index::StackIndex;
use crate::stack_nodes::StackNodes;

/// All stacks that were interned, for a `static` that all threads share.
///
/// A frame that no other stack shares needs 8 bytes in the tree. An interned stack needs 13 bytes in the index, or
/// 26 if it is inside callers that other stacks share. With the free slots of the index, that is up to 50 bytes,
/// once there are some tens of thousands.
#[derive(Debug)]
pub struct StackTable {
    index: StackIndex,
    nodes: StackNodes,
    refused: AtomicU64,
}

/// The contents of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackTableStats {
    /// Stacks, including those that are only callers of others, without the empty one. A few may count twice:
    /// those that threads added concurrently.
    pub stacks: u32,
    /// Number of stacks that got no id, for lack of memory or of ids.
    pub refused: u64,
    /// Bytes of address space for the tree.
    pub tree_bytes: usize,
    /// Bytes of address space for the index.
    pub index_bytes: usize,
}

impl StackTable {
    /// Creates an empty table, which needs no memory yet.
    pub const fn new() -> Self {
        Self { index: StackIndex::new(), nodes: StackNodes::new(), refused: AtomicU64::new(0) }
    }

    /// Returns the id of the stack with these frames, innermost first.
    ///
    /// `None` if it is new and the kernel provides no memory for it, or 2^32 stacks exist; such calls are counted.
    #[inline]
    pub fn intern(&self, frames: &[RawFrame]) -> Option<StackId> {
        self.intern_hashed(StackHasher::of(frames), frames)
    }

    /// Returns the id as [`StackTable::intern`] does, for a caller that has hashed the frames while walking.
    /// `hasher` must have seen exactly these frames: otherwise other stacks may get wrong frames.
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

    /// Adds a run of nodes for the unknown frames.
    ///
    /// In each round but the last, another thread has added some of the frames in the meantime, so that more are
    /// known.
    fn add(&self, hasher: StackHasher, frames: &[RawFrame]) -> Option<StackId> {
        loop {
            let mut hash = InnermostHasher::new(hasher, frames.len());
            let (callers, new) = self.known_callers(&mut hash, frames);
            let Some((outermost, inner)) = frames[..new].split_last() else {
                // If the stack was only a caller before, add it to the index, if there is memory, so that the next
                // lookup finds it.
                return Some(self.index.add(hash.finish(), callers).unwrap_or(callers));
            };
            let run = self.nodes.add(&frames[..new], callers)?;
            hash.push(*outermost);
            let id = self.index.add(hash.finish(), run.first);
            if id == Some(run.first) {
                inner.iter().rev().for_each(|frame| hash.push(*frame));
                return Some(self.index.add(hash.finish(), run.last).unwrap_or(run.last));
            }
            // Another thread was first, and its run may continue differently; or there is no memory.
            self.nodes.free(run);
            id?;
        }
    }

    /// Finds the longest known part of the stack, from its outermost frame on. Returns its id and the number of
    /// unknown frames inside of it. The hash has seen all frames before, and only the known ones afterwards.
    fn known_callers(&self, hash: &mut InnermostHasher, frames: &[RawFrame]) -> (StackId, usize) {
        let (mut callers, mut new) = (StackId::EMPTY, 0);
        // Include the whole stack: another thread may have added it since the lookup.
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

    /// Returns the frames of a stack, innermost first. There are none if this table has not returned `id`.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = RawFrame> {
        let mut stack = id;
        iter::from_fn(move || {
            let (frame, callers) = self.nodes.get(stack)?;
            stack = callers;
            Some(frame)
        })
    }

    /// Counts the frames of a stack.
    pub fn len(&self, id: StackId) -> u32 {
        iter::successors(self.parent(id), |callers| self.parent(*callers)).fold(0, |length, _| length + 1)
    }

    /// Returns the stack of its callers, without its innermost frame. `None` for the empty stack.
    pub fn parent(&self, id: StackId) -> Option<StackId> {
        self.nodes.callers(id)
    }

    /// Returns statistics of its contents.
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

    /// Returns a stack whose frames are named by letters, innermost first.
    fn stack(names: &str) -> Vec<RawFrame> {
        names.bytes().map(|name| RawFrame::native(CodeAddress::return_address(name.into()))).collect()
    }

    #[test]
    fn equal_stacks_have_equal_ids_and_keep_their_frames() {
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
    fn an_unknown_id_has_no_frames() {
        let table = StackTable::new();
        table.intern(&stack("ba"));
        for number in [1, 4, 5000, u32::MAX] {
            let id = StackId::new(number).unwrap();
            assert_eq!(table.frames(id).count(), 0, "{number}");
            assert_eq!((table.len(id), table.parent(id)), (0, None));
        }
    }

    #[test]
    fn a_table_needs_no_memory_before_its_first_stack() {
        static TABLE: StackTable = StackTable::new();
        assert_eq!(TABLE.stats(), StackTableStats::default());
        assert_eq!(TABLE.intern(&[]), Some(StackId::EMPTY));
        assert_eq!(TABLE.stats(), StackTableStats::default());
    }
}
