//! The stacks that a thread has captured, as a tree of runs, so that one of them only has to be checked.
//!
//! A run is a part of a stack: some frames, innermost first, and the words of memory on which they depend, inside a
//! frame of another run, where the stack continues. A capture finds the run in an [index](BranchIndex), and compares
//! run after run with memory: if all words are as expected, the stack is the same, for the reason given in
//! [`last_stack`](crate::platform::last_stack), from whose record each run was copied. The runs of a stack become
//! longer from each to the next outward, so that there are few.
//!
//! Each stack has a number, by which the layer above remembers what it made of it.
//!
//! The memory is limited: when it is full, everything is forgotten. While stacks are not captured again, fewer are
//! remembered.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::branch_index::BranchIndex;
use crate::platform::last_stack::CAPACITY;
use crate::platform::stack_runs::{RunContents, RunHead, RunId, RunPart, StackRuns};
use crate::platform::walk::WalkFrame;

/// A run that is added costs as much as this many stacks that are found save.
const COST: u32 = 4;
/// The debt up to which every run is added.
const TRUST: u32 = 64 * COST;
/// The number of searches that find nothing before there are fewer.
const PATIENCE: u32 = 64;
/// Then, one of this many runs is added, and one of this many searches is done.
const RARELY: u32 = 8;

/// A stack that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundStack {
    pub(crate) run: RunId,
    pub(crate) number: u64,
    /// Number of its frames.
    pub(crate) len: usize,
}

/// The tree. Zeroed memory is an empty one.
#[repr(C)]
pub(crate) struct RunTree {
    /// The cost of the runs that were added, less the number of stacks that were found.
    debt: u32,
    /// The number of runs that were not added since one was.
    declined: u32,
    /// The number of searches since a stack was found.
    fruitless: u32,
    index: BranchIndex,
    runs: StackRuns,
}

impl RunTree {
    /// Forgets all stacks.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.runs.clear();
    }

    /// Returns the remembered stack with this innermost frame, if memory still contains all of it, or its first
    /// `limit` frames.
    ///
    /// # Safety
    /// Memory is readable from the frame's slot up to `high`.
    #[inline(always)]
    pub(crate) unsafe fn find(&mut self, frame: &WalkFrame, limit: usize, high: u64) -> Option<FoundStack> {
        let (slot, address) = (frame.sp.wrapping_sub(8), frame.address.to_bits());
        self.fruitless = self.fruitless.wrapping_add(1);
        if self.fruitless > PATIENCE && !self.fruitless.is_multiple_of(RARELY) {
            return None;
        }
        // SAFETY: the caller promises readable memory.
        let run = unsafe { self.index.find(slot, address, high) }?;
        let head = self.runs.head(run);
        let (slots, addresses, _) = self.runs.contents(run);
        // Every run has at least one frame.
        let is_first = slots.first() == Some(&slot) && addresses.first() == Some(&address);
        let is_readable = head.extent <= high && (head.needs_fp == 0 || head.fp == frame.fp);
        let start = head.start as usize;
        // SAFETY: the words of a stack are between its first slot and its extent.
        if is_first && is_readable && unsafe { self.runs.holds(run, start.saturating_add(limit)) } {
            let found = FoundStack { run, number: head.number, len: CAPACITY - start };
            (self.debt, self.fruitless) = (self.debt.saturating_sub(1), 0);
            return Some(found);
        }
        None
    }

    /// Returns whether to add a run, which may be of no use.
    pub(crate) fn accepts(&mut self) -> bool {
        if self.debt < TRUST {
            self.debt += COST;
            return true;
        }
        self.declined = (self.declined + 1) % RARELY;
        self.declined == 0
    }

    /// Returns whether there is memory for a run of this many frames and saved words.
    pub(crate) fn has_memory(&self, frames: usize, saved: usize) -> bool {
        self.runs.has_memory(frames, saved)
    }

    /// Returns whether there would be memory for a run of this many frames and saved words if there was no other.
    pub(crate) fn could_have_memory(frames: usize, saved: usize) -> bool {
        StackRuns::could_have_memory(frames, saved)
    }

    /// Adds a run, the first of a stack with these slots and addresses. There is memory for it, and it has a frame.
    pub(crate) fn add(
        &mut self,
        head: &RunHead,
        contents: &RunContents<'_>,
        (slots, addresses): (&[u64], &[u64]),
    ) -> RunId {
        let run = self.runs.add(head, contents);
        let word_at = |slot| slots.binary_search(&slot).ok().and_then(|index| addresses.get(index).copied());
        let first = (contents.slots[0], contents.addresses[0]);
        self.index.insert(run, first, |other| self.runs.difference(other, slots, addresses), word_at);
        run
    }

    /// Returns the parts of a stack, from the innermost outward.
    #[inline(always)]
    pub(crate) fn parts(&self, run: RunId) -> impl Iterator<Item = RunPart<'_>> {
        self.runs.parts(run)
    }

    pub(crate) fn head(&self, run: RunId) -> &RunHead {
        self.runs.head(run)
    }

    /// Returns the index of the first frame that follows a run; for none, a larger index than any.
    pub(crate) fn end(&self, run: RunId) -> usize {
        if run == RunId::NONE { usize::MAX } else { self.runs.head(run).end as usize }
    }
}
