//! The thread's last stack, kept so that the next capture need only check it.
//!
//! Most captures see most of the stack that the last one saw. Where a walk meets a frame of the last
//! stack (same address, same stack pointer, and same frame pointer if that matters), the rest follows
//! from memory alone: each further return address, and each saved word that decides where a later
//! frame lies. If all of those words still hold what they held, the rest of the stack is the same, by
//! induction over the frames. Stopping at the first match instead would be wrong: the same function can
//! be called at the same depth by another caller.
//!
//! Frames lie leaf first, the root at the end of the arrays, so that new leaves are put in front and a
//! result is one copy. The record is only a guess: it may hold frames long gone, as every use checks it.
//!
//! Many new frames at once are recorded only when the next capture begins, and less and less often while
//! recording them has been of no use: a stack that moves with every capture then costs its walk alone.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::rule::{Kind, Rule};
use crate::platform::stack_memory::read_word;
use crate::platform::walk::Frame;

/// The deepest stack that is walked.
pub(crate) const CAPACITY: usize = 1 << 16;
const SAVED_CAPACITY: usize = 2 * CAPACITY;

/// A frame found by walking: where it is, and how its caller was found.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Walked {
    /// `CodeAddress` bits.
    pub(crate) address: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    pub(crate) rule: Rule,
}

/// What is seldom needed of a recorded frame.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Detail {
    fp: u64,
    /// The first saved word that this frame's step, or one further out, depends on.
    saved: u32,
    /// The next frame outwards, this one included, whose step must be taken anew; [`NO_BARRIER`].
    barrier: u32,
}

/// Set in `Detail::saved` when this frame's own frame pointer decides where a later frame lies.
const NEEDS_FP: u32 = 1 << 31;
const NO_BARRIER: u32 = u32::MAX;

/// A word of stack on which the record depends.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct SavedWord {
    address: u64,
    value: u64,
}

/// See the module's documentation. Zeroed memory, then [`LastStack::clear`], makes an empty one.
#[repr(C)]
pub(crate) struct LastStack {
    /// How often another stack was recorded. Never starts again.
    version: u64,
    /// Frames are `top..CAPACITY`.
    top: usize,
    /// Saved words are `saved_top..SAVED_CAPACITY`.
    saved_top: usize,
    /// How many frames of `walked` stand before `top` but have not been recorded.
    pending: usize,
    /// Where the frames end that `settle` recorded last; 0: they have been judged.
    trial: usize,
    /// How often in a row they were of no use, and how many batches have been left out since.
    doubt: u32,
    left_out: u32,
    addresses: [u64; CAPACITY],
    /// Where each frame's return address lies: 8 below its stack pointer. One more ends every search.
    slots: [u64; CAPACITY + 1],
    details: [Detail; CAPACITY],
    saved: [SavedWord; SAVED_CAPACITY],
    /// The new frames of the current or last walk, leaf first.
    walked: [Walked; CAPACITY],
}

/// As many new frames are recorded at once.
const FEW: usize = 8;

/// In the greatest doubt, one batch in 2 to this power is recorded.
const MOST_DOUBT: u32 = 5;

/// How far the record was found to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// Up to and including this frame, and it is the outermost one.
    Whole(usize),
    /// Up to and including this frame; its step must be taken anew.
    Barrier(usize),
    /// As many frames as were asked for, ending with this one.
    Limit(usize),
    /// This frame is no longer there.
    Changed(usize),
}

impl LastStack {
    pub(crate) fn clear(&mut self) {
        self.version += 1;
        self.top = CAPACITY;
        self.saved_top = SAVED_CAPACITY;
        (self.pending, self.trial, self.doubt, self.left_out) = (0, 0, 0, 0);
        self.slots[CAPACITY] = u64::MAX;
    }

    /// Records the frames that wait for it, or leaves them out; whether any waited.
    #[inline(always)]
    pub(crate) fn settle(&mut self) -> bool {
        let is_pending = self.pending != 0;
        if is_pending {
            self.settle_pending();
        }
        is_pending
    }

    #[inline(never)]
    fn settle_pending(&mut self) {
        self.version += 1;
        let count = core::mem::take(&mut self.pending);
        if self.left_out < (1 << self.doubt) - 1 {
            self.left_out += 1;
        } else {
            (self.left_out, self.trial) = (0, self.top);
            self.put_before(self.top, count);
        }
    }

    /// Takes note of whether the frames that `settle` recorded were of use: frame `joined` was met again.
    #[cold]
    #[inline(never)]
    fn judge(&mut self, joined: usize) {
        let was_of_use = joined < core::mem::take(&mut self.trial);
        self.doubt = if was_of_use { 0 } else { (self.doubt + 1).min(MOST_DOUBT) };
    }

    /// Ends a walk of `count` new frames before the recorded frame `joined`, or before nothing
    /// (`joined == CAPACITY`).
    #[inline(always)]
    pub(crate) fn keep(&mut self, joined: usize, count: usize) {
        self.version += 1;
        if self.trial != 0 {
            self.judge(joined);
        }
        if count <= FEW {
            self.put_before(joined, count);
        } else {
            (self.top, self.pending) = (joined, count);
        }
    }

    /// Changes whenever the record does.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The innermost frame.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// Room for new frames, and the slots to compare them with (the last of which is `u64::MAX`).
    #[inline(always)]
    pub(crate) fn walked_and_slots(&mut self) -> (&mut [Walked; CAPACITY], &[u64]) {
        (&mut self.walked, &self.slots)
    }

    /// Calls `each` with the address and the slot of frames `skip..len` of the last walk, in turn.
    #[inline(always)]
    pub(crate) fn copy(&self, skip: usize, len: usize, addresses: &mut [u64], mut each_slot: impl FnMut(usize, u64)) {
        debug_assert!(addresses.len() == len.saturating_sub(skip));
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

    /// A recorded frame's address, stack pointer and frame pointer.
    pub(crate) fn frame(&self, index: usize) -> (u64, u64, u64) {
        (self.addresses[index], self.slots[index].wrapping_add(8), self.details[index].fp)
    }

    /// Whether the recorded frame at `cursor` is this one.
    #[inline(always)]
    pub(crate) fn is_at(&self, cursor: usize, address: u64, sp: u64, fp: u64) -> bool {
        if self.slots[cursor] != sp.wrapping_sub(8) || cursor >= CAPACITY || self.addresses[cursor] != address {
            return false;
        }
        let detail = &self.details[cursor];
        detail.fp == fp || detail.saved & NEEDS_FP == 0
    }

    /// Checks the whole record against a stack that is readable up to `high` and whose innermost frame is
    /// given: [`Verified::Changed`] with the first recorded frame that may still be there.
    #[inline(always)]
    pub(crate) fn verify_all(&self, frame: &Frame, limit: usize, high: u64) -> Verified {
        if self.pending != 0 || !self.is_at(self.top, frame.address.to_bits(), frame.sp, frame.fp) {
            return Verified::Changed(self.top);
        }
        match self.verify(self.top, limit, high) {
            Verified::Changed(index) => Verified::Changed(index + 1),
            verified => verified,
        }
    }

    /// How far up the stack the record reaches from the frame at `at`, up to the next barrier.
    pub(crate) fn extent(&self, at: usize) -> u64 {
        let barrier = self.details[at].barrier;
        let end = if barrier == NO_BARRIER { CAPACITY - 1 } else { barrier as usize };
        self.slots[end].wrapping_add(8)
    }

    /// Checks the record from the frame at `at`, known to be there, outwards: at most `limit` frames,
    /// `at` included. The stack is readable up to `high`.
    #[inline(always)]
    pub(crate) fn verify(&self, at: usize, limit: usize, high: u64) -> Verified {
        let detail = &self.details[at];
        let root = CAPACITY - 1;
        let (mut end, mut outcome) = (root, Verified::Whole(root));
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
        // SAFETY: at <= end < CAPACITY. All slots up to `end` lie between the current stack pointer
        // and `high`, since they increase up to the next barrier; so do all saved
        // words of the steps between, which lie inside their frames.
        if unsafe { self.slots_hold(at + 1, end) && self.saved_hold(at, end) } {
            outcome
        } else {
            Verified::Changed(self.first_changed(at, end))
        }
    }

    /// Whether the return addresses of frames `from..=end` are in their slots.
    ///
    /// # Safety
    /// `end < CAPACITY`, and those slots are readable.
    #[inline(always)]
    unsafe fn slots_hold(&self, from: usize, end: usize) -> bool {
        let count = end + 1 - from;
        // SAFETY: from..=end are in bounds by the caller's word.
        let (slots, addresses) =
            unsafe { (self.slots.get_unchecked(from..from + count), self.addresses.get_unchecked(from..from + count)) };
        // SAFETY: the caller vouches for the slots.
        let holds = |(slot, address): (&u64, &u64)| unsafe { read_word(*slot) } == *address;
        let (slot_groups, slot_rest) = slots.as_chunks::<8>();
        let (address_groups, address_rest) = addresses.as_chunks::<8>();
        slot_groups.iter().zip(address_groups).all(|(slots, addresses)| slots.iter().zip(addresses).all(holds))
            && slot_rest.iter().zip(address_rest).all(holds)
    }

    /// Whether the saved words of the steps of frames `at..end` are as recorded.
    ///
    /// # Safety
    /// `at <= end < CAPACITY`, and those words are readable.
    #[inline(always)]
    unsafe fn saved_hold(&self, at: usize, end: usize) -> bool {
        let (groups, rest) = self.saved_words(at, end).as_chunks::<8>();
        // SAFETY: the caller vouches for the words.
        let holds = |word: &SavedWord| unsafe { read_word(word.address) } == word.value;
        groups.iter().all(|group| group.iter().all(holds)) && rest.iter().all(holds)
    }

    #[inline(always)]
    fn saved_words(&self, at: usize, end: usize) -> &[SavedWord] {
        let first = |index: usize| (self.details[index].saved & !NEEDS_FP) as usize;
        &self.saved[first(at)..first(end)]
    }

    /// The first frame after `at` that is not as recorded.
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

    /// Records the first `count` walked frames in front of the recorded frame `joined`, or of nothing
    /// (`joined == CAPACITY`). `count <= joined`.
    #[inline(always)]
    fn put_before(&mut self, joined: usize, count: usize) {
        let mut index = joined;
        // Of the frame outside the current one: where it is, and whether its frame pointer matters.
        let (mut outer_sp, mut outer_frame_pointer, mut wants_fp, mut barrier);
        let mut left = count;
        if joined == CAPACITY {
            self.saved_top = SAVED_CAPACITY;
            if count == 0 {
                return self.top = CAPACITY;
            }
            (index, left) = (index - 1, left - 1);
            let last = self.walked[left];
            // Only an outermost frame ends the stack whatever memory holds.
            let is_whole = last.rule.kind() == Kind::End;
            barrier = if is_whole { NO_BARRIER } else { index as u32 };
            (outer_sp, outer_frame_pointer, wants_fp) = (last.sp, last.fp, !is_whole);
            self.store(index, &last, wants_fp, barrier);
        } else {
            let detail = self.details[joined];
            self.saved_top = (detail.saved & !NEEDS_FP) as usize;
            (outer_sp, outer_frame_pointer) = (self.slots[joined].wrapping_add(8), detail.fp);
            (wants_fp, barrier) = (detail.saved & NEEDS_FP != 0, detail.barrier);
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
                if rule.kind() == Kind::FpDeref {
                    self.save(frame.fp.wrapping_add(rule.cfa_offset()), outer_sp);
                    if wants_fp {
                        self.save(frame.fp.wrapping_add(rule.fp_offset()), outer_frame_pointer);
                    }
                } else {
                    barrier = index as u32;
                }
            }
            self.store(index, &frame, needs_fp, barrier);
            (outer_sp, outer_frame_pointer, wants_fp) = (frame.sp, frame.fp, needs_fp);
        }
        self.top = index;
    }

    #[inline(always)]
    fn store(&mut self, index: usize, frame: &Walked, needs_fp: bool, barrier: u32) {
        self.addresses[index] = frame.address;
        self.slots[index] = frame.sp.wrapping_sub(8);
        let saved = self.saved_top as u32 | if needs_fp { NEEDS_FP } else { 0 };
        self.details[index] = Detail { fp: frame.fp, saved, barrier };
    }

    /// Two words a frame at the most, so there is always room.
    #[inline(always)]
    fn save(&mut self, address: u64, value: u64) {
        self.saved_top -= 1;
        self.saved[self.saved_top] = SavedWord { address, value };
    }
}
