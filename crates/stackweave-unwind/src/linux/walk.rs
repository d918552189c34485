//! The walk: from the registers of the innermost frame to the end of the stack.
//!
//! Each new frame costs a predicted cache entry, a compare, and two loads from the stack; as soon as a
//! frame of the last stack is met, the rest is only checked (see [`last_stack`](crate::platform::last_stack)).
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::{EntryRegisters, Registers, is_user_address};
use crate::platform::last_stack::{CAPACITY, LastStack, Verified, Walked};
use crate::platform::lookup::Lookup;
use crate::platform::plain_steps::{self, Pause, Position, Surroundings};
use crate::platform::rule::{Kind, Rule};
use crate::platform::rule_cache::{Guess, RuleCache};
use crate::platform::slow_step;
use crate::platform::stack_memory::StackMemory;

/// A frame: where it is, and the registers that compact rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) address: CodeAddress,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
}

/// Where a walk begins.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) first: Frame,
    pub(crate) source: Source<'a>,
}

/// Who knows the other registers of the first frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// The entry stub.
    Entry(&'a EntryRegisters),
    /// A signal context: a lock that libgcc might take is out of the question.
    Context(&'a Registers),
}

impl Start<'_> {
    pub(crate) fn registers(&self) -> Registers {
        match self.source {
            Source::Entry(entry) => Registers::from(entry),
            Source::Context(registers) => *registers,
        }
    }

    pub(crate) fn in_signal_handler(&self) -> bool {
        matches!(self.source, Source::Context(_))
    }
}

/// What one walk uses of its thread's state.
pub(crate) struct Walk<'a> {
    pub(crate) memory: StackMemory<'a>,
    pub(crate) lookup: &'a mut Lookup,
    pub(crate) cache: &'a mut RuleCache,
    pub(crate) last: &'a mut LastStack,
    pub(crate) counts: Counts,
}

/// What happened in one walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) misses: u64,
    pub(crate) general: u64,
}

/// How a walk ended: its frames are the first `len` of [`LastStack`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) len: usize,
    pub(crate) stop: StopReason,
}

impl Walk<'_> {
    /// Walks at most `limit` frames (1 to `CAPACITY`). Frames of the last stack before `cursor` are known to be
    /// gone.
    #[inline(always)]
    pub(crate) fn run(&mut self, start: &Start<'_>, limit: usize, cursor: usize) -> Ended {
        let Frame { address, sp, fp } = start.first;
        if !self.memory.enter(sp) {
            return self.end_at_first(start.first);
        }
        let cursor = if self.last.settle() { self.last.top() } else { cursor };
        let guess = self.cache.first_guess();
        let mut position =
            Position { address: address.to_bits(), sp, fp, guess, before: Guess::NONE, cursor, count: 0 };
        loop {
            let (walked, slots) = self.last.walked_and_slots();
            let walked = &mut walked[..limit];
            let mut surroundings = Surroundings { cache: self.cache, slots, walked, high: self.memory.high() };
            // SAFETY: `memory` vouches for the stack up to `high`; cursor and count only move forward
            // inside their slices, and count == limit ends this loop below.
            let pause = unsafe { plain_steps::walk(&mut position, &mut surroundings) };
            let ended = match pause {
                Pause::Met => self.meet(start, &mut position, limit),
                Pause::WrongGuess => {
                    let address = CodeAddress::from_bits(position.address);
                    position.guess = self.find(position.before, address).0;
                    if position.guess == Guess::NONE { self.step_uncached(start, &mut position, limit) } else { None }
                }
                Pause::NotPlain => self.step_on(start, &mut position, limit),
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// The last stack has a frame where the current one is: follows it if it is the same.
    #[inline(always)]
    fn meet(&mut self, start: &Start<'_>, position: &mut Position, limit: usize) -> Option<Ended> {
        let Position { address, sp, fp, cursor, count, .. } = *position;
        position.cursor += 1;
        if !self.last.is_at(cursor, address, sp, fp) || cursor <= count {
            return None;
        }
        match self.follow(start, cursor, limit - count) {
            Ok((frames, stop)) => {
                self.last.keep(cursor, count);
                return Some(Ended { len: count + frames, stop });
            }
            // The step after the outermost frame may be the one that changed.
            Err(changed) => position.cursor = (changed + 1).min(CAPACITY),
        }
        // Following may have left this stack for another one.
        if self.memory.enter(sp) { None } else { Some(self.end_walked(count, StopReason::BadMemory)) }
    }

    /// Steps from the frame written last, whose rule is not for the hot loop.
    #[cold]
    #[inline(never)]
    fn step_on(&mut self, start: &Start<'_>, position: &mut Position, limit: usize) -> Option<Ended> {
        let count = position.count;
        let Walked { address, sp, fp, rule } = self.last.walked_and_slots().0[count - 1];
        if count == limit && rule.kind() != Kind::End {
            return Some(self.end_walked(count, StopReason::DepthLimit));
        }
        let frame = Frame { address: CodeAddress::from_bits(address), sp, fp };
        match self.step_slowly(start, frame, rule) {
            Ok(caller) => {
                (position.address, position.sp, position.fp) = (caller.address.to_bits(), caller.sp, caller.fp);
                None
            }
            Err(stop) => Some(self.end_walked(count, stop)),
        }
    }

    /// Steps from the current frame, whose rule is not kept in the cache.
    #[cold]
    #[inline(never)]
    fn step_uncached(&mut self, start: &Start<'_>, position: &mut Position, limit: usize) -> Option<Ended> {
        let Position { address, sp, fp, .. } = *position;
        self.last.walked_and_slots().0[position.count] = Walked { address, sp, fp, rule: Rule::of(Kind::NoModule) };
        position.count += 1;
        (position.guess, position.before) = (self.cache.first_guess(), Guess::NONE);
        self.step_on(start, position, limit)
    }

    /// Follows the last stack from `cursor`, a frame of it that is on this stack too: how many frames
    /// of it still hold and why it ends there, or the first frame that does not hold.
    #[inline(always)]
    fn follow(&mut self, start: &Start<'_>, cursor: usize, limit: usize) -> Result<(usize, StopReason), usize> {
        match self.verify(cursor, limit) {
            Verified::Whole(end) => Ok((end + 1 - cursor, StopReason::EndOfStack)),
            Verified::Limit(end) => Ok((end + 1 - cursor, StopReason::DepthLimit)),
            Verified::Changed(index) => Err(index),
            Verified::Barrier(barrier) => self.follow_across(start, cursor, barrier, limit),
        }
    }

    /// Checks the record from `at` on, after making sure that what it speaks of can be read.
    #[inline(always)]
    fn verify(&mut self, at: usize, limit: usize) -> Verified {
        if self.memory.is_foreign() {
            self.memory.reaches(self.last.extent(at));
        }
        self.last.verify(at, limit, self.memory.high())
    }

    /// As [`Walk::follow`], beyond frames whose step must be taken anew.
    #[cold]
    #[inline(never)]
    fn follow_across(
        &mut self,
        start: &Start<'_>,
        cursor: usize,
        mut barrier: usize,
        limit: usize,
    ) -> Result<(usize, StopReason), usize> {
        loop {
            let (address, sp, fp) = self.last.frame(barrier);
            let frame = Frame { address: CodeAddress::from_bits(address), sp, fp };
            let rule = self.find(Guess::NONE, frame.address).1;
            if barrier + 1 - cursor == limit && rule.kind() != Kind::End {
                return Ok((limit, StopReason::DepthLimit));
            }
            let caller = match self.step_slowly(start, frame, rule) {
                Ok(caller) => caller,
                Err(stop) => return Ok((barrier + 1 - cursor, stop)),
            };
            let next = barrier + 1;
            if !self.last.is_at(next, caller.address.to_bits(), caller.sp, caller.fp) {
                return Err(next);
            }
            match self.verify(next, limit - (next - cursor)) {
                Verified::Whole(end) => return Ok((end + 1 - cursor, StopReason::EndOfStack)),
                Verified::Limit(end) => return Ok((end + 1 - cursor, StopReason::DepthLimit)),
                Verified::Changed(index) => return Err(index),
                Verified::Barrier(end) => barrier = end,
            }
        }
    }

    /// The rule for `address`, from the cache or from unwind tables.
    #[inline(never)]
    pub(crate) fn find(&mut self, before: Guess, address: CodeAddress) -> (Guess, Rule) {
        let found = self.cache.find(address.to_bits());
        let (place, rule) = found.unwrap_or_else(|| self.look_up(address));
        self.cache.predict(before, place);
        (place, rule)
    }

    #[cold]
    fn look_up(&mut self, address: CodeAddress) -> (Guess, Rule) {
        self.counts.misses += 1;
        let rule = self.lookup.rule(address);
        if rule.kind() == Kind::NoModule {
            return (Guess::NONE, rule);
        }
        (self.cache.insert(address.to_bits(), rule), rule)
    }

    /// The long form of the check of a plain step, for stacks that are probed as they are walked.
    #[cold]
    #[inline(never)]
    fn admits(&mut self, sp: u64, cfa: u64) -> bool {
        cfa >= sp.saturating_add(8) && self.memory.reaches(cfa)
    }

    /// A plain step, away from the hot loop.
    fn step_plainly(&mut self, frame: Frame, rule: Rule) -> Result<Frame, StopReason> {
        let cfa = if rule.counts_from_fp() { frame.fp } else { frame.sp }.wrapping_add(rule.cfa_offset());
        if !self.admits(frame.sp, cfa) {
            return Err(StopReason::BadMemory);
        }
        let slot = cfa.wrapping_add(rule.fp_offset());
        let fp = if rule.fp_offset() == 0 { Some(frame.fp) } else { self.memory.read(slot) };
        let return_address = self.memory.read(cfa - 8);
        match fp.zip(return_address) {
            Some((fp, return_address)) if slot >= frame.sp => caller(return_address, cfa, fp),
            _ => Err(StopReason::BadMemory),
        }
    }

    /// A step of any kind, away from the hot loop.
    #[cold]
    #[inline(never)]
    fn step_slowly(&mut self, start: &Start<'_>, frame: Frame, rule: Rule) -> Result<Frame, StopReason> {
        match rule.kind() {
            Kind::Sp | Kind::Fp => self.step_plainly(frame, rule),
            Kind::FpDeref => self.step_realigned(frame, rule),
            _ => slow_step::step(self, start, frame, rule),
        }
    }

    /// A [`Kind::FpDeref`] step: both words must lie inside the frame, as the record relies on that.
    fn step_realigned(&mut self, frame: Frame, rule: Rule) -> Result<Frame, StopReason> {
        let (cfa_slot, fp_slot) = (frame.fp.wrapping_add(rule.cfa_offset()), frame.fp.wrapping_add(rule.fp_offset()));
        let read = |memory: &mut StackMemory<'_>, slot: u64| {
            if slot < frame.sp { None } else { memory.read(slot) }
        };
        let cfa = read(&mut self.memory, cfa_slot).ok_or(StopReason::BadMemory)?;
        let fp = read(&mut self.memory, fp_slot).ok_or(StopReason::BadMemory)?;
        if cfa_slot.max(fp_slot) + 8 > cfa {
            return Err(StopReason::BadMemory);
        }
        let return_address = self.memory.read(cfa.wrapping_sub(8)).ok_or(StopReason::BadMemory)?;
        caller(return_address, cfa, fp)
    }

    #[inline(always)]
    fn end_walked(&mut self, count: usize, stop: StopReason) -> Ended {
        self.last.keep(CAPACITY, count);
        Ended { len: count, stop }
    }

    /// A walk that could not even begin: its stack can't be read.
    #[cold]
    fn end_at_first(&mut self, first: Frame) -> Ended {
        let unstepped = Rule::of(Kind::General);
        let Frame { address, sp, fp } = first;
        self.last.walked_and_slots().0[0] = Walked { address: address.to_bits(), sp, fp, rule: unstepped };
        self.end_walked(1, StopReason::BadMemory)
    }
}

/// The frame that a return address leads to; a null one ends the stack.
pub(crate) fn caller(return_address: u64, sp: u64, fp: u64) -> Result<Frame, StopReason> {
    match return_address {
        0 => Err(StopReason::EndOfStack),
        address if is_user_address(address) => Ok(Frame { address: CodeAddress::return_address(address), sp, fp }),
        _ => Err(StopReason::BadMemory),
    }
}
