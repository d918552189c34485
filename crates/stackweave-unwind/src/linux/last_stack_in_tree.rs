//! The record of the last stack, and the tree of all stacks: what is recorded is added to the tree, and a stack that is
//! found in the tree is recorded when a walk needs it.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use super::{CAPACITY, FEW, FrameDetail, LastNativeStack, NEEDS_FP, NO_BARRIER, SAVED_CAPACITY, SavedWord, USES};
use crate::platform::run_tree::{FoundStack, RunTree};
use crate::platform::stack_runs::{RunContents, RunHead, RunId};
use crate::platform::walk::WalkFrame;

impl LastNativeStack {
    #[cold]
    pub(super) fn clear_tree(&mut self) {
        (self.found, self.run, self.remembered) = (RunId::NONE, RunId::NONE, CAPACITY);
        self.tree.clear();
    }

    /// Records the stack that was found in the tree, as far as it is not the recorded one.
    #[inline(never)]
    pub(super) fn record_found(&mut self) {
        let found = core::mem::replace(&mut self.found, RunId::NONE);
        if found == RunId::NONE {
            return;
        }
        // From `common` on, the frames are in the same runs.
        let (mut common, mut one, mut other) =
            (self.remembered.max(self.tree.head(found).start as usize), self.run, found);
        while one != other {
            let inner = if self.tree.end(one) <= self.tree.end(other) { &mut one } else { &mut other };
            common = common.max(self.tree.end(*inner));
            *inner = self.tree.head(*inner).outer;
        }
        for part in self.tree.parts(found).take_while(|part| part.start < common) {
            let count = part.slots.len().min(common - part.start);
            let range = part.start..part.start + count;
            self.slots[range.clone()].copy_from_slice(&part.slots[..count]);
            self.addresses[range.clone()].copy_from_slice(&part.addresses[..count]);
            self.details[range].copy_from_slice(&part.details[..count]);
            // Those of the common frames come last, and are recorded already.
            let saved = self.saved[part.saved_start..].iter_mut();
            for ((saved, address), value) in saved.zip(part.saved.0.iter().rev()).zip(part.saved.1.iter().rev()) {
                *saved = SavedWord { address: *address, value: *value };
            }
        }
        let head = self.tree.head(found);
        (self.top, self.saved_top) = (head.start as usize, head.saved_start as usize);
        (self.run, self.remembered, self.trial) = (found, self.top, 0);
        self.loaded = common - self.top;
    }

    /// Adds the stack that was recorded just now, with new frames before `joined`, to the tree, if as many frames as
    /// `effort` were walked or recorded for it.
    #[inline(always)]
    pub(super) fn remember(&mut self, joined: usize, effort: usize) {
        // Frames inside of the joined one are no longer recorded.
        while self.run != RunId::NONE && self.tree.end(self.run) <= joined {
            self.run = self.tree.head(self.run).outer;
        }
        self.remembered = if self.run == RunId::NONE { CAPACITY } else { self.remembered.max(joined) };
        if effort > FEW && self.top < self.remembered {
            self.add_to_tree();
        }
    }

    #[inline(never)]
    fn add_to_tree(&mut self) {
        let FrameDetail { fp, saved, barrier, hash } = self.details[self.top];
        // A barrier is a step that must be taken again each time.
        if barrier != NO_BARRIER || !self.tree.accepts() {
            return;
        }
        // Include inner runs that are not longer than what is new: so the runs become longer outward.
        while self.run != RunId::NONE && self.tree.end(self.run) - self.remembered <= self.remembered - self.top {
            (self.remembered, self.run) = (self.tree.end(self.run), self.tree.head(self.run).outer);
        }
        let saved_start = (saved & !NEEDS_FP) as usize;
        if !self.tree.has_memory(self.remembered - self.top, self.saved_end() - saved_start) {
            if !RunTree::could_have_memory(CAPACITY - self.top, SAVED_CAPACITY - saved_start) {
                return;
            }
            self.clear_tree();
        }
        let (range, saved_range) = (self.top..self.remembered, saved_start..self.saved_end());
        let head = RunHead {
            number: hash.number(),
            extent: self.slots[CAPACITY - 1].wrapping_add(8),
            fp,
            needs_fp: (saved & NEEDS_FP != 0).into(),
            outer: self.run,
            start: self.top as u32,
            end: self.remembered as u32,
            saved_start: saved_start as u32,
            saved_end: saved_range.end as u32,
        };
        let contents = RunContents {
            slots: &self.slots[range.clone()],
            addresses: &self.addresses[range.clone()],
            details: &self.details[range],
            saved: &self.saved[saved_range],
        };
        let stack = (&self.slots[self.top..CAPACITY], &self.addresses[self.top..]);
        (self.run, self.remembered) = (self.tree.add(&head, &contents, stack), self.top);
    }

    /// Returns the first saved word of the recorded frame `remembered`.
    fn saved_end(&self) -> usize {
        self.details.get(self.remembered).map_or(SAVED_CAPACITY, |detail| (detail.saved & !NEEDS_FP) as usize)
    }

    /// Finds the stack with this innermost frame in the tree, at most `limit` frames, if it still is the same.
    ///
    /// # Safety
    /// Memory is readable from the frame's slot up to `high`.
    #[inline(always)]
    pub(crate) unsafe fn find(&mut self, frame: &WalkFrame, limit: usize, high: u64) -> Option<usize> {
        // SAFETY: passed on to the caller.
        let FoundStack { run, number, len } = unsafe { self.tree.find(frame, limit, high) }?;
        let is_recorded = run == self.run && self.remembered == self.top && self.pending == 0;
        (self.found, self.number) = (if is_recorded { RunId::NONE } else { run }, number);
        if self.doubt != 0 {
            self.lower_doubt();
        }
        Some(len)
    }

    /// Notes that remembering a stack was useful.
    #[cold]
    #[inline(never)]
    fn lower_doubt(&mut self) {
        self.uses = (self.uses + 1) % USES;
        if self.uses == 0 {
            self.doubt -= 1;
        }
    }

    /// Copies a stack that was found in the tree as [`LastNativeStack::copy`] does.
    #[inline(always)]
    pub(super) fn copy_found(&self, skip: usize, addresses: &mut [u64], mut each_slot: impl FnMut(usize, u64)) {
        let (mut skip, mut done) = (skip, 0);
        for part in self.tree.parts(self.found) {
            let skipped = skip.min(part.slots.len());
            skip -= skipped;
            let count = (part.slots.len() - skipped).min(addresses.len() - done);
            addresses[done..done + count].copy_from_slice(&part.addresses[skipped..skipped + count]);
            for (index, slot) in part.slots[skipped..skipped + count].iter().enumerate() {
                each_slot(done + index, *slot);
            }
            done += count;
            if done == addresses.len() {
                return;
            }
        }
    }
}
