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
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::rule::{Kind, Rule};
use crate::platform::stack_memory::{StackMemory, read_word};

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
    /// Frames are `top..CAPACITY`.
    top: usize,
    /// Saved words are `saved_top..SAVED_CAPACITY`.
    saved_top: usize,
    addresses: [u64; CAPACITY],
    /// Where each frame's return address lies: 8 below its stack pointer. One more ends every search.
    slots: [u64; CAPACITY + 1],
    details: [Detail; CAPACITY],
    saved: [SavedWord; SAVED_CAPACITY],
}

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
        self.top = CAPACITY;
        self.saved_top = SAVED_CAPACITY;
        self.slots[CAPACITY] = u64::MAX;
    }

    /// The innermost frame.
    #[inline(always)]
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// The addresses of `count` frames from `first` on.
    #[inline(always)]
    pub(crate) fn addresses(&self, first: usize, count: usize) -> &[u64] {
        &self.addresses[first..first + count]
    }

    /// As [`LastStack::addresses`]: where their return addresses lie.
    #[inline(always)]
    pub(crate) fn slots(&self, first: usize, count: usize) -> &[u64] {
        &self.slots[first..first + count]
    }

    /// A recorded frame's address, stack pointer and frame pointer.
    pub(crate) fn frame(&self, index: usize) -> (u64, u64, u64) {
        (self.addresses[index], self.slots[index].wrapping_add(8), self.details[index].fp)
    }

    /// The first frame from `cursor` on whose stack pointer is not below `sp`.
    #[inline(always)]
    pub(crate) fn seek(&self, mut cursor: usize, sp: u64) -> usize {
        let slot = sp.wrapping_sub(8);
        debug_assert!(cursor <= CAPACITY);
        // SAFETY: the word at CAPACITY is u64::MAX, so the search ends there at the latest.
        while unsafe { *self.slots.get_unchecked(cursor) } < slot {
            cursor += 1;
        }
        cursor
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

    /// Checks the record from the frame at `at`, known to be there, outwards: at most `limit` frames,
    /// `at` included.
    #[inline(always)]
    pub(crate) fn verify(&self, at: usize, limit: usize, memory: &mut StackMemory<'_>) -> Verified {
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
        if !memory.reaches(self.slots[end].wrapping_add(8)) {
            return Verified::Changed(at + 1);
        }
        // SAFETY: at <= end < CAPACITY. All slots up to `end` lie between the current stack pointer
        // and what `reaches` has confirmed, since they increase up to the next barrier; so do all saved
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
        let differs = |slot: &u64, address: &u64| unsafe { read_word(*slot) } ^ *address;
        let (slot_groups, slot_rest) = slots.as_chunks::<8>();
        let (address_groups, address_rest) = addresses.as_chunks::<8>();
        for (slots, addresses) in slot_groups.iter().zip(address_groups) {
            let mut difference = 0;
            for lane in 0..8 {
                difference |= differs(&slots[lane], &addresses[lane]);
            }
            if difference != 0 {
                return false;
            }
        }
        let mut difference = 0;
        for (slot, address) in slot_rest.iter().zip(address_rest) {
            difference |= differs(slot, address);
        }
        difference == 0
    }

    /// Whether the saved words of the steps of frames `at..end` are as recorded.
    ///
    /// # Safety
    /// `at <= end < CAPACITY`, and those words are readable.
    #[inline(always)]
    unsafe fn saved_hold(&self, at: usize, end: usize) -> bool {
        let words = self.saved_words(at, end);
        let mut difference = 0;
        for word in words {
            // SAFETY: the caller vouches for the words.
            difference |= unsafe { read_word(word.address) } ^ word.value;
        }
        difference == 0
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

    /// Puts newly walked frames in front of the recorded frame `joined`, or of nothing
    /// (`joined == CAPACITY`). `walked.len() <= joined`.
    #[inline(always)]
    pub(crate) fn put_before(&mut self, joined: usize, walked: &[Walked]) {
        let mut index = joined;
        // Of the frame outside the current one: where it is, and whether its frame pointer matters.
        let (mut outer_sp, mut outer_frame_pointer, mut wants_fp, mut barrier);
        let mut frames = walked.iter().rev();
        if joined == CAPACITY {
            self.saved_top = SAVED_CAPACITY;
            let Some(last) = frames.next() else { return self.top = CAPACITY };
            index -= 1;
            // Only an outermost frame ends the stack whatever memory holds.
            let is_whole = last.rule.kind() == Kind::End;
            barrier = if is_whole { NO_BARRIER } else { index as u32 };
            (outer_sp, outer_frame_pointer, wants_fp) = (last.sp, last.fp, !is_whole);
            self.store(index, last, wants_fp, barrier);
        } else {
            let detail = self.details[joined];
            self.saved_top = (detail.saved & !NEEDS_FP) as usize;
            (outer_sp, outer_frame_pointer) = (self.slots[joined].wrapping_add(8), detail.fp);
            (wants_fp, barrier) = (detail.saved & NEEDS_FP != 0, detail.barrier);
        }
        for frame in frames {
            index -= 1;
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
            self.store(index, frame, needs_fp, barrier);
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
