//! The hot loop: plain steps by predicted rules, one after the other.
//!
//! It is separate so that everything is in registers: the guess for the next entry must not wait for memory. A wrong
//! guess is corrected here. It handles only these cases and returns at the first frame that is different.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::arch::is_user_address;
use crate::platform::last_stack::WalkedFrame;
use crate::platform::rule_cache::{Guess, RuleCache};
use crate::platform::stack_memory::read_word;

/// The position of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPosition {
    /// The current frame: `CodeAddress` bits, stack pointer, frame pointer.
    pub(crate) address: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// The cache entry that the current frame is likely to have, and that of the previous frame.
    pub(crate) guess: Guess,
    pub(crate) before: Guess,
    /// The first frame of the last stack that is not inside the current frame.
    pub(crate) cursor: usize,
    /// Number of frames that have been written.
    pub(crate) count: usize,
}

/// The reason why the loop returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The last stack has a frame at the current stack pointer, which may be the same.
    Met,
    /// The rule of the current frame is not in the cache.
    NotCached,
    /// The frame written last needs a different kind of step, or ends the stack, or filled the buffer.
    NotPlain,
}

/// The inputs and outputs of the loop.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) cache: &'a mut RuleCache,
    /// The slots of the last stack; the last word is `u64::MAX`.
    pub(crate) slots: &'a [u64],
    /// Memory for the walked frames: the loop stops when it is full.
    pub(crate) walked: &'a mut [WalkedFrame],
    /// The end of the stack that is being read.
    pub(crate) high: u64,
}

/// Takes steps from `position` while the steps are plain and the guesses right.
///
/// # Safety
/// The stack is readable from `position.sp` to `high`; `position.cursor` is an index into `slots`, and
/// `position.count` is an index into `walked`.
#[inline(never)]
pub(crate) unsafe fn walk(position: &mut StepPosition, surroundings: &mut Surroundings<'_>) -> Pause {
    let StepPosition { mut address, mut sp, mut fp, mut guess, mut before, mut cursor, count } = *position;
    let (cache, high, slots) = (&mut *surroundings.cache, surroundings.high, surroundings.slots);
    let first = surroundings.walked.as_mut_ptr();
    // SAFETY: an index into the slice, as the caller promises.
    let mut next = unsafe { first.add(count) };
    // SAFETY: one past the end of the slice.
    let full = unsafe { first.add(surroundings.walked.len()) };
    let pause = loop {
        let own_slot = sp.wrapping_sub(8);
        // SAFETY: an index into the slice, whose last word is u64::MAX: the search ends there.
        while unsafe { *slots.get_unchecked(cursor) } < own_slot {
            cursor += 1;
        }
        // SAFETY: the search above ends inside the slice.
        if unsafe { *slots.get_unchecked(cursor) } == own_slot {
            break Pause::Met;
        }
        let rule = match cache.guessed(guess, address) {
            Some(rule) => rule,
            None => match cache.find(address) {
                Some((place, rule)) => {
                    cache.predict(before, place);
                    guess = place;
                    rule
                }
                None => break Pause::NotCached,
            },
        };
        before = guess;
        guess = rule.guess();
        // SAFETY: next < full.
        unsafe { next.write(WalkedFrame { address, sp, fp, rule }) };
        // SAFETY: at most one past the end.
        next = unsafe { next.add(1) };
        let cfa = if rule.counts_from_fp() { fp } else { sp }.wrapping_add(rule.cfa_offset());
        if !rule.is_plain() || cfa < sp + 8 || cfa > high || next == full {
            break Pause::NotPlain;
        }
        let mut callers_fp = fp;
        if rule.fp_offset() != 0 {
            let saved = cfa.wrapping_add(rule.fp_offset());
            if saved < sp {
                break Pause::NotPlain;
            }
            // SAFETY: sp <= saved, and saved + 8 < cfa <= high, by the construction of rules.
            callers_fp = unsafe { read_word(saved) };
        }
        // SAFETY: sp + 8 <= cfa <= high.
        let return_address = unsafe { read_word(cfa - 8) };
        if !is_user_address(return_address) {
            break Pause::NotPlain;
        }
        (address, sp, fp) = (return_address, cfa, callers_fp);
    };
    // SAFETY: advanced within the slice.
    let count = unsafe { next.offset_from_unsigned(first) };
    *position = StepPosition { address, sp, fp, guess, before, cursor, count };
    pause
}
