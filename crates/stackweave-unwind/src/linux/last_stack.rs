//! The thread's last stack, kept so that the next capture only has to check it.
//!
//! Most captures see most of the stack that the last one saw. Where a walk meets a frame of the last stack (same
//! address, same stack pointer, and same frame pointer if that matters), the rest depends on memory only: on each
//! further return address, and on each saved word that determines the address of a later frame. If all of those
//! words are unchanged, the rest of the stack is the same, by induction over the frames. Stopping at the first
//! match instead would be wrong: a different caller can call the same function at the same depth.
//!
//! Frames are stored leaf first, with the root at the end of the arrays, so that new leaves are added in front and
//! a result is one copy. The record is only a guess: it may contain frames that no longer exist, because every use
//! checks it.
//!
//! Many new frames at once are recorded only when the next capture begins, and less and less often while recording
//! them has not been useful: a stack that changes with every capture then costs only its walk.
//!
//! A stack that was expensive to walk is also added to the [tree](RunTree) of stacks, where it is found later. The record
//! remains the stack that was walked last, until a walk begins after a stack was found in the tree: then that stack
//! is recorded, since the one to be walked is likely to share most of it.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::captured::StackMark;
use crate::platform::frame_hash::FrameHash;
use crate::platform::rule::{Rule, RuleKind};
use crate::platform::run_tree::RunTree;
use crate::platform::stack_memory::read_word;
use crate::platform::stack_runs::RunId;
use crate::platform::walk::WalkFrame;

/// The maximum depth of a walk.
pub(crate) const CAPACITY: usize = 1 << 16;
const SAVED_CAPACITY: usize = 2 * CAPACITY;

/// A frame found by walking: its registers, and the rule by which its caller was found.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct WalkedFrame {
    /// `CodeAddress` bits.
    pub(crate) address: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    pub(crate) rule: Rule,
}

/// Rarely needed data of a recorded frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct FrameDetail {
    fp: u64,
    /// The index of the first saved word on which the step of this frame, or of one further out, depends.
    saved: u32,
    /// The next frame outward, including this one, whose step must be taken again; [`NO_BARRIER`].
    barrier: u32,
    /// The hash of the slots and addresses of this frame and those further out.
    hash: FrameHash,
}

/// Set in `FrameDetail::saved` if this frame's own frame pointer determines the address of a later frame.
const NEEDS_FP: u32 = 1 << 31;
const NO_BARRIER: u32 = u32::MAX;

/// A word of the stack on which the record depends.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SavedWord {
    pub(crate) address: u64,
    pub(crate) value: u64,
}

/// The record of the last stack. Zeroed memory, followed by [`LastNativeStack::clear`], makes an empty one.
#[repr(C)]
pub(crate) struct LastNativeStack {
    /// The number of the stack that was captured last.
    number: u64,
    /// The number of stacks that were not hashed. Never reset.
    unhashed: u64,
    /// Frames are `top..CAPACITY`.
    top: usize,
    /// Saved words are `saved_top..SAVED_CAPACITY`.
    saved_top: usize,
    /// Number of frames of `walked` that precede `top` but have not been recorded.
    pending: usize,
    /// The end of the frames that `record_pending` recorded last; 0: their usefulness has been rated.
    trial: usize,
    /// The number of consecutive times that they were not useful, and of batches that were skipped since.
    doubt: u32,
    skipped: u32,
    /// The number of stacks that were found in the tree since the doubt was lower.
    uses: u32,
    /// The stack that was captured last, if it was found in the tree and is not recorded.
    found: RunId,
    /// The run that contains the recorded frame `remembered`; those further out are in it and in the runs around it.
    run: RunId,
    /// The first recorded frame that is in the tree; `CAPACITY`: none is.
    remembered: usize,
    /// How well it went to walk until the record is met, of late.
    luck: u32,
    /// The number of frames from the tree that were recorded before this walk.
    loaded: usize,
    addresses: [u64; CAPACITY],
    /// The address of each frame's return address: 8 below its stack pointer. An additional word ends every
    /// search.
    slots: [u64; CAPACITY + 1],
    details: [FrameDetail; CAPACITY],
    saved: [SavedWord; SAVED_CAPACITY],
    /// The new frames of the current or last walk, leaf first.
    walked: [WalkedFrame; CAPACITY],
    tree: RunTree,
}

/// This many new frames are recorded immediately. Stacks that cost more are added to the tree.
pub(crate) const FEW: usize = 8;

/// The maximum doubt: then one batch in 2 to this power is recorded.
const MAX_DOUBT: u32 = 5;

/// The doubt is lower by one after this many stacks were found in the tree.
const USES: u32 = 8;

/// Beyond half of this, a stack is walked before it is searched.
const MAX_LUCK: u32 = 4;

/// The part of the record that is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// Up to and including this frame, which is the outermost one.
    Complete(usize),
    /// Up to and including this frame, whose step must be taken again.
    Barrier(usize),
    /// As many frames as were requested, ending with this one.
    Limit(usize),
    /// Up to this frame, which has changed.
    Changed(usize),
}

impl LastNativeStack {
    pub(crate) fn clear(&mut self) {
        (self.number, self.loaded, self.luck) = (0, 0, 0);
        self.top = CAPACITY;
        self.saved_top = SAVED_CAPACITY;
        (self.pending, self.trial, self.doubt, self.skipped, self.uses) = (0, 0, 0, 0, 0);
        self.slots[CAPACITY] = u64::MAX;
        self.clear_tree();
    }

    /// Returns the number of the recorded stack.
    #[inline(always)]
    fn recorded_number(&self) -> u64 {
        self.details.get(self.top).map_or(0, |detail| detail.hash.number())
    }

    /// Prepares the record for a walk: records the stack that was captured last, or skips it. Returns whether the
    /// record has changed.
    #[inline(always)]
    pub(crate) fn prepare(&mut self) -> bool {
        let is_changed = self.pending != 0 || self.found != RunId::NONE;
        if is_changed {
            self.put_pending();
            self.record_found();
        }
        is_changed
    }

    #[inline(never)]
    fn put_pending(&mut self) {
        let count = core::mem::take(&mut self.pending);
        if count == 0 {
            return;
        }
        if self.skipped < (1 << self.doubt) - 1 {
            self.skipped += 1;
        } else {
            (self.skipped, self.trial) = (0, self.top);
            let joined = self.top;
            self.put_before(joined, count);
            self.remember(joined, count);
        }
    }

    /// Returns whether a walk is likely to meet the record soon, and better than a search in the tree.
    #[inline(always)]
    pub(crate) fn changes_little(&self) -> bool {
        self.luck > MAX_LUCK / 2
    }

    /// Notes that a walk has not met the record soon.
    pub(crate) fn note_bad_luck(&mut self) {
        (self.luck, self.loaded) = (self.luck.saturating_sub(1), 0);
    }

    /// Notes whether the frames that `record_pending` recorded were useful: frame `joined` was met again.
    #[cold]
    #[inline(never)]
    fn rate_usefulness(&mut self, joined: usize) {
        let was_of_use = joined < core::mem::take(&mut self.trial);
        self.doubt = if was_of_use { 0 } else { (self.doubt + 1).min(MAX_DOUBT) };
    }

    /// Ends a walk of `count` new frames, which precede the recorded frame `joined`, or nothing (`joined ==
    /// CAPACITY`).
    #[inline(always)]
    pub(crate) fn keep(&mut self, joined: usize, count: usize) {
        if self.trial != 0 {
            self.rate_usefulness(joined);
        }
        let is_lucky = count <= FEW && joined != CAPACITY;
        self.luck = if is_lucky { (self.luck + 1).min(MAX_LUCK) } else { self.luck.saturating_sub(1) };
        if count > FEW {
            (self.top, self.pending, self.loaded) = (joined, count, 0);
            self.unhashed += 1;
            self.number = self.unhashed | StackMark::ONCE;
            return;
        }
        if count != 0 || joined != self.top {
            self.put_before(joined, count);
            let loaded = core::mem::take(&mut self.loaded);
            self.remember(joined, count + loaded);
        }
        self.number = self.recorded_number();
    }

    /// Returns the number of the stack that was captured last. Equal numbers mean equal stacks; equal stacks may have
    /// several.
    #[inline(always)]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the index of the innermost frame.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// Returns memory for new frames, and the slots to compare them with (the last of which is `u64::MAX`).
    #[inline(always)]
    pub(crate) fn walked_and_slots(&mut self) -> (&mut [WalkedFrame; CAPACITY], &[u64]) {
        (&mut self.walked, &self.slots)
    }

    /// Copies the addresses of frames `skip..len` of the last walk, and calls `each_slot` with the slot of each.
    #[inline(always)]
    pub(crate) fn copy(&self, skip: usize, len: usize, addresses: &mut [u64], mut each_slot: impl FnMut(usize, u64)) {
        debug_assert!(addresses.len() == len.saturating_sub(skip));
        if self.found != RunId::NONE {
            return self.copy_found(skip, addresses, each_slot);
        }
        let from_walked = self.pending.min(len).saturating_sub(skip);
        let (new, recorded) = addresses.split_at_mut(from_walked);
        for (index, (address, frame)) in new.iter_mut().zip(&self.walked[skip.min(CAPACITY)..]).enumerate() {
            *address = frame.address;
            each_slot(index, frame.sp.wrapping_sub(8));
        }
        let first = self.top + skip.min(len).saturating_sub(self.pending);
        let range = first..first + recorded.len();
        for (index, slot) in self.slots[range.clone()].iter().enumerate() {
            each_slot(from_walked + index, *slot);
        }
        recorded.copy_from_slice(&self.addresses[range]);
    }

    /// Returns a recorded frame's address, stack pointer and frame pointer.
    pub(crate) fn frame(&self, index: usize) -> (u64, u64, u64) {
        (self.addresses[index], self.slots[index].wrapping_add(8), self.details[index].fp)
    }

    /// Returns whether the recorded frame at `cursor` has this address and these registers.
    #[inline(always)]
    pub(crate) fn is_at(&self, cursor: usize, address: u64, sp: u64, fp: u64) -> bool {
        if self.slots[cursor] != sp.wrapping_sub(8) || cursor >= CAPACITY || self.addresses[cursor] != address {
            return false;
        }
        let detail = &self.details[cursor];
        detail.fp == fp || detail.saved & NEEDS_FP == 0
    }

    /// Checks the whole record against a stack that is readable up to `high`, with the given innermost frame.
    /// [`Verified::Changed`] has the first recorded frame that may still exist.
    #[inline(always)]
    pub(crate) fn verify_all(&mut self, frame: &WalkFrame, limit: usize, high: u64) -> Verified {
        if self.pending != 0 || !self.is_at(self.top, frame.address.to_bits(), frame.sp, frame.fp) {
            return Verified::Changed(self.top);
        }
        match self.verify(self.top, limit, high) {
            Verified::Changed(index) => Verified::Changed(index + 1),
            verified => {
                (self.found, self.number) = (RunId::NONE, self.recorded_number());
                verified
            }
        }
    }

    /// Returns how far up the stack the record extends from the frame at `at`, up to the next barrier.
    pub(crate) fn extent(&self, at: usize) -> u64 {
        let barrier = self.details[at].barrier;
        let end = if barrier == NO_BARRIER { CAPACITY - 1 } else { barrier as usize };
        self.slots[end].wrapping_add(8)
    }

    /// Checks the record outward from the frame at `at`, which is known to be valid: at most `limit` frames,
    /// including `at`. The stack is readable up to `high`.
    #[inline(always)]
    pub(crate) fn verify(&self, at: usize, limit: usize, high: u64) -> Verified {
        let detail = &self.details[at];
        let root = CAPACITY - 1;
        let (mut end, mut outcome) = (root, Verified::Complete(root));
        if detail.barrier != NO_BARRIER {
            end = detail.barrier as usize;
            outcome = Verified::Barrier(end);
        }
        if end - at >= limit {
            end = at + limit - 1;
            outcome = Verified::Limit(end);
        }
        if self.slots[end].wrapping_add(8) > high {
            return Verified::Changed(at + 1);
        }
        // SAFETY: at <= end < CAPACITY. All slots up to `end` are between the current stack pointer and `high`,
        // because they increase up to the next barrier; so are all saved words of the steps between, which are
        // inside their frames.
        if unsafe { self.slots_hold(at + 1, end) && self.saved_hold(at, end) } {
            outcome
        } else {
            Verified::Changed(self.first_changed(at, end))
        }
    }

    /// Returns whether the slots of frames `from..=end` still contain their return addresses.
    ///
    /// # Safety
    /// `end < CAPACITY`, and those slots are readable.
    #[inline(always)]
    unsafe fn slots_hold(&self, from: usize, end: usize) -> bool {
        let count = end + 1 - from;
        // SAFETY: from..=end are in bounds, as the caller promises.
        let (slots, addresses) =
            unsafe { (self.slots.get_unchecked(from..from + count), self.addresses.get_unchecked(from..from + count)) };
        // SAFETY: the caller promises readable slots.
        let holds = |(slot, address): (&u64, &u64)| unsafe { read_word(*slot) } == *address;
        let (slot_groups, slot_rest) = slots.as_chunks::<8>();
        let (address_groups, address_rest) = addresses.as_chunks::<8>();
        slot_groups.iter().zip(address_groups).all(|(slots, addresses)| slots.iter().zip(addresses).all(holds))
            && slot_rest.iter().zip(address_rest).all(holds)
    }

    /// Returns whether the saved words of the steps of frames `at..end` are unchanged.
    ///
    /// # Safety
    /// `at <= end < CAPACITY`, and those words are readable.
    #[inline(always)]
    unsafe fn saved_hold(&self, at: usize, end: usize) -> bool {
        let (groups, rest) = self.saved_words(at, end).as_chunks::<8>();
        // SAFETY: the caller promises readable words.
        let holds = |word: &SavedWord| unsafe { read_word(word.address) } == word.value;
        groups.iter().all(|group| group.iter().all(holds)) && rest.iter().all(holds)
    }

    #[inline(always)]
    fn saved_words(&self, at: usize, end: usize) -> &[SavedWord] {
        let first = |index: usize| (self.details[index].saved & !NEEDS_FP) as usize;
        &self.saved[first(at)..first(end)]
    }

    /// Returns the first frame after `at` that has changed.
    #[cold]
    #[inline(never)]
    fn first_changed(&self, at: usize, end: usize) -> usize {
        for index in at..end {
            // SAFETY: as in `verify`, which calls this.
            if unsafe { !self.saved_hold(index, index + 1) || !self.slots_hold(index + 1, index + 1) } {
                return index + 1;
            }
        }
        end
    }

    /// Records the first `count` walked frames in front of the recorded frame `joined`, or of nothing (`joined ==
    /// CAPACITY`). `count <= joined`.
    #[inline(always)]
    fn put_before(&mut self, joined: usize, count: usize) {
        let mut index = joined;
        // The next frame outward: its index, and whether its frame pointer matters.
        let (mut outer_sp, mut outer_frame_pointer, mut wants_fp, mut barrier);
        let mut hash;
        let mut left = count;
        if joined == CAPACITY {
            self.saved_top = SAVED_CAPACITY;
            if count == 0 {
                return self.top = CAPACITY;
            }
            (index, left) = (index - 1, left - 1);
            let last = self.walked[left];
            // Only an outermost frame ends the stack independent of memory.
            let is_complete = last.rule.kind() == RuleKind::End;
            barrier = if is_complete { NO_BARRIER } else { index as u32 };
            (outer_sp, outer_frame_pointer, wants_fp) = (last.sp, last.fp, !is_complete);
            hash = FrameHash::default().and(&last);
            self.store(index, &last, wants_fp, (barrier, hash));
        } else {
            let detail = self.details[joined];
            self.saved_top = (detail.saved & !NEEDS_FP) as usize;
            (outer_sp, outer_frame_pointer) = (self.slots[joined].wrapping_add(8), detail.fp);
            (wants_fp, barrier, hash) = (detail.saved & NEEDS_FP != 0, detail.barrier, detail.hash);
        }
        while left > 0 {
            (index, left) = (index - 1, left - 1);
            let frame = self.walked[left];
            let rule = frame.rule;
            let saves_fp = rule.fp_offset() != 0;
            let needs_fp;
            if rule.is_plain() {
                if saves_fp && wants_fp {
                    self.save(outer_sp.wrapping_add(rule.fp_offset()), outer_frame_pointer);
                }
                needs_fp = rule.counts_from_fp() || (!saves_fp && wants_fp);
            } else {
                needs_fp = true;
                if rule.kind() == RuleKind::FpDeref {
                    self.save(frame.fp.wrapping_add(rule.cfa_offset()), outer_sp);
                    if wants_fp {
                        self.save(frame.fp.wrapping_add(rule.fp_offset()), outer_frame_pointer);
                    }
                } else {
                    barrier = index as u32;
                }
            }
            hash = hash.and(&frame);
            self.store(index, &frame, needs_fp, (barrier, hash));
            (outer_sp, outer_frame_pointer, wants_fp) = (frame.sp, frame.fp, needs_fp);
        }
        self.top = index;
    }

    #[inline(always)]
    fn store(&mut self, index: usize, frame: &WalkedFrame, needs_fp: bool, (barrier, hash): (u32, FrameHash)) {
        self.addresses[index] = frame.address;
        self.slots[index] = frame.sp.wrapping_sub(8);
        let saved = self.saved_top as u32 | if needs_fp { NEEDS_FP } else { 0 };
        self.details[index] = FrameDetail { fp: frame.fp, saved, barrier, hash };
    }

    /// Saves a word. A frame has at most two saved words, so there is always enough space.
    #[inline(always)]
    fn save(&mut self, address: u64, value: u64) {
        self.saved_top -= 1;
        self.saved[self.saved_top] = SavedWord { address, value };
    }
}

#[path = "last_stack_in_tree.rs"]
mod in_tree;
#[cfg(test)]
#[path = "last_stack_tests.rs"]
mod tests;
