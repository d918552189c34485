//! The walk: from the registers of the innermost frame to the end of the stack.
//!
//! Each new frame costs a predicted cache entry, a compare, and two loads from the stack; once a frame of the last
//! stack is met, the rest is only checked (see [`last_stack`](crate::platform::last_stack)).
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::{EntryRegisters, Registers, is_user_address};
use crate::platform::last_stack::{CAPACITY, FEW, LastNativeStack, Verified, WalkedFrame};
use crate::platform::lookup::Lookup;
use crate::platform::plain_steps::{self, Pause, StepPosition, Surroundings};
use crate::platform::rule::{Rule, RuleKind};
use crate::platform::rule_cache::{Guess, RuleCache};
use crate::platform::slow_step;
use crate::platform::stack_memory::StackMemory;

/// A frame: its address, and the registers that compact rules need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkFrame {
    pub(crate) address: CodeAddress,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
}

/// The start of a walk.
#[derive(Debug)]
pub(crate) struct WalkStart<'a> {
    pub(crate) first: WalkFrame,
    pub(crate) source: RegisterSource<'a>,
}

/// The source of the other registers of the first frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegisterSource<'a> {
    /// The entry stub.
    Entry(&'a EntryRegisters),
    /// A signal context: then no lock may be taken, such as that of libgcc.
    Context(&'a Registers),
}

impl WalkStart<'_> {
    pub(crate) fn registers(&self) -> Registers {
        match self.source {
            RegisterSource::Entry(entry) => Registers::from(entry),
            RegisterSource::Context(registers) => *registers,
        }
    }

    pub(crate) fn in_signal_handler(&self) -> bool {
        matches!(self.source, RegisterSource::Context(_))
    }
}

/// The parts of its thread's state that one walk uses.
pub(crate) struct Walk<'a> {
    pub(crate) memory: StackMemory<'a>,
    pub(crate) lookup: &'a mut Lookup,
    pub(crate) cache: &'a mut RuleCache,
    pub(crate) last: &'a mut LastNativeStack,
    pub(crate) counts: WalkCounts,
}

/// The counters of one walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCounts {
    pub(crate) misses: u64,
    pub(crate) general: u64,
}

/// The end of a walk: its frames are the first `len` of [`LastNativeStack`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkEnd {
    pub(crate) len: usize,
    pub(crate) stop: StopReason,
}

impl Walk<'_> {
    /// Walks at most `limit` frames (1 to `CAPACITY`). Frames of the last stack before `cursor` are known to be
    /// gone. If `may_find` is set, the start is on the thread's own stack, and the tree has not been searched.
    #[inline(always)]
    pub(crate) fn run(&mut self, start: &WalkStart<'_>, limit: usize, cursor: usize, may_find: bool) -> WalkEnd {
        let WalkFrame { address, sp, fp } = start.first;
        if !self.memory.enter(sp) {
            return self.end_at_first(start.first);
        }
        let cursor = if self.last.prepare() { self.last.top() } else { cursor };
        let guess = self.cache.first_guess();
        let mut position =
            StepPosition { address: address.to_bits(), sp, fp, guess, before: Guess::NONE, cursor, count: 0 };
        let high = self.memory.high();
        let mut room = if may_find { limit.min(FEW + 1) } else { limit };
        loop {
            if position.count >= room {
                // A step that is not plain has written the last of them.
                room = limit;
            }
            let (walked, slots) = self.last.walked_and_slots();
            let walked = &mut walked[..room];
            let mut surroundings = Surroundings { cache: self.cache, slots, walked, high: self.memory.high() };
            // SAFETY: `memory` guarantees that the stack is readable up to `high`; cursor and count only move
            // forward inside their slices, and count == limit ends this loop below.
            let pause = unsafe { plain_steps::walk(&mut position, &mut surroundings) };
            let ended = match pause {
                Pause::Met => self.follow_last_stack(start, &mut position, limit),
                Pause::NotCached => {
                    let address = CodeAddress::from_bits(position.address);
                    position.guess = self.find(position.before, address).0;
                    if position.guess == Guess::NONE { self.step_uncached(start, &mut position, limit) } else { None }
                }
                Pause::NotPlain if position.count == room && room < limit => {
                    room = limit;
                    self.last.note_bad_luck();
                    // SAFETY: the thread's own stack is readable, as the caller promises.
                    match unsafe { self.last.find(&start.first, limit, high) } {
                        Some(len) => Some(found_end(len, limit)),
                        None => self.step_on(start, &mut position, limit),
                    }
                }
                Pause::NotPlain => self.step_on(start, &mut position, limit),
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Follows the last stack from the frame at the current stack pointer, if it is the current frame.
    #[inline(always)]
    fn follow_last_stack(
        &mut self,
        start: &WalkStart<'_>,
        position: &mut StepPosition,
        limit: usize,
    ) -> Option<WalkEnd> {
        let StepPosition { address, sp, fp, cursor, count, .. } = *position;
        position.cursor += 1;
        if !self.last.is_at(cursor, address, sp, fp) || cursor <= count {
            return None;
        }
        match self.follow(start, cursor, limit - count) {
            Ok((frames, stop)) => {
                self.last.keep(cursor, count);
                return Some(WalkEnd { len: count + frames, stop });
            }
            // The step after the outermost frame may be the one that changed.
            Err(changed) => position.cursor = (changed + 1).min(CAPACITY),
        }
        // Following may have entered another stack.
        if self.memory.enter(sp) { None } else { Some(self.end_walked(count, StopReason::BadMemory)) }
    }

    /// Takes a step from the frame written last, whose rule is not plain.
    #[cold]
    #[inline(never)]
    fn step_on(&mut self, start: &WalkStart<'_>, position: &mut StepPosition, limit: usize) -> Option<WalkEnd> {
        let count = position.count;
        let WalkedFrame { address, sp, fp, rule } = self.last.walked_and_slots().0[count - 1];
        if count == limit && rule.kind() != RuleKind::End {
            return Some(self.end_walked(count, StopReason::DepthLimit));
        }
        let frame = WalkFrame { address: CodeAddress::from_bits(address), sp, fp };
        match self.step_slowly(start, frame, rule) {
            Ok(caller) => {
                (position.address, position.sp, position.fp) = (caller.address.to_bits(), caller.sp, caller.fp);
                None
            }
            Err(stop) => Some(self.end_walked(count, stop)),
        }
    }

    /// Takes a step from the current frame, whose rule is not in the cache.
    #[cold]
    #[inline(never)]
    fn step_uncached(&mut self, start: &WalkStart<'_>, position: &mut StepPosition, limit: usize) -> Option<WalkEnd> {
        let StepPosition { address, sp, fp, .. } = *position;
        self.last.walked_and_slots().0[position.count] =
            WalkedFrame { address, sp, fp, rule: Rule::of(RuleKind::NoModule) };
        position.count += 1;
        (position.guess, position.before) = (self.cache.first_guess(), Guess::NONE);
        self.step_on(start, position, limit)
    }

    /// Follows the last stack from `cursor`, a frame of it that is also on this stack. Returns how many of its
    /// frames are still valid and why it ends there, or the first frame that has changed.
    #[inline(always)]
    fn follow(&mut self, start: &WalkStart<'_>, cursor: usize, limit: usize) -> Result<(usize, StopReason), usize> {
        match self.verify(cursor, limit) {
            Verified::Complete(end) => Ok((end + 1 - cursor, StopReason::EndOfStack)),
            Verified::Limit(end) => Ok((end + 1 - cursor, StopReason::DepthLimit)),
            Verified::Changed(index) => Err(index),
            Verified::Barrier(barrier) => self.follow_across(start, cursor, barrier, limit),
        }
    }

    /// Checks the record from `at` on, after making sure that the words it depends on can be read.
    #[inline(always)]
    fn verify(&mut self, at: usize, limit: usize) -> Verified {
        if self.memory.is_foreign() {
            self.memory.reaches(self.last.extent(at));
        }
        self.last.verify(at, limit, self.memory.high())
    }

    /// Continues [`Walk::follow`] beyond frames whose step must be taken again.
    #[cold]
    #[inline(never)]
    fn follow_across(
        &mut self,
        start: &WalkStart<'_>,
        cursor: usize,
        mut barrier: usize,
        limit: usize,
    ) -> Result<(usize, StopReason), usize> {
        loop {
            let (address, sp, fp) = self.last.frame(barrier);
            let frame = WalkFrame { address: CodeAddress::from_bits(address), sp, fp };
            let rule = self.find(Guess::NONE, frame.address).1;
            if barrier + 1 - cursor == limit && rule.kind() != RuleKind::End {
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
                Verified::Complete(end) => return Ok((end + 1 - cursor, StopReason::EndOfStack)),
                Verified::Limit(end) => return Ok((end + 1 - cursor, StopReason::DepthLimit)),
                Verified::Changed(index) => return Err(index),
                Verified::Barrier(end) => barrier = end,
            }
        }
    }

    /// Returns the rule for `address`, from the cache or from unwind tables.
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
        if rule.kind() == RuleKind::NoModule {
            return (Guess::NONE, rule);
        }
        (self.cache.insert(address.to_bits(), rule), rule)
    }

    /// Returns whether a plain step is valid, for stacks that are probed as they are walked.
    #[cold]
    #[inline(never)]
    fn is_valid_step(&mut self, sp: u64, cfa: u64) -> bool {
        cfa >= sp.saturating_add(8) && self.memory.reaches(cfa)
    }

    /// Takes a plain step outside of the hot loop.
    fn step_plainly(&mut self, frame: WalkFrame, rule: Rule) -> Result<WalkFrame, StopReason> {
        let cfa = if rule.counts_from_fp() { frame.fp } else { frame.sp }.wrapping_add(rule.cfa_offset());
        if !self.is_valid_step(frame.sp, cfa) {
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

    /// Takes a step of any kind outside of the hot loop.
    #[cold]
    #[inline(never)]
    fn step_slowly(&mut self, start: &WalkStart<'_>, frame: WalkFrame, rule: Rule) -> Result<WalkFrame, StopReason> {
        match rule.kind() {
            RuleKind::Sp | RuleKind::Fp => self.step_plainly(frame, rule),
            RuleKind::FpDeref => self.step_realigned(frame, rule),
            _ => slow_step::step(self, start, frame, rule),
        }
    }

    /// Takes a [`RuleKind::FpDeref`] step: both words must be inside the frame, because the record relies on that.
    fn step_realigned(&mut self, frame: WalkFrame, rule: Rule) -> Result<WalkFrame, StopReason> {
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
    fn end_walked(&mut self, count: usize, stop: StopReason) -> WalkEnd {
        self.last.keep(CAPACITY, count);
        WalkEnd { len: count, stop }
    }

    /// Ends a walk whose stack cannot be read at the first frame.
    #[cold]
    fn end_at_first(&mut self, first: WalkFrame) -> WalkEnd {
        let unstepped = Rule::of(RuleKind::General);
        let WalkFrame { address, sp, fp } = first;
        self.last.walked_and_slots().0[0] = WalkedFrame { address: address.to_bits(), sp, fp, rule: unstepped };
        self.end_walked(1, StopReason::BadMemory)
    }
}

/// Returns the end of a walk that found the stack in the tree.
#[inline(always)]
pub(crate) fn found_end(len: usize, limit: usize) -> WalkEnd {
    let stop = if len > limit { StopReason::DepthLimit } else { StopReason::EndOfStack };
    WalkEnd { len: len.min(limit), stop }
}

/// Returns the frame of a return address; null ends the stack.
pub(crate) fn caller(return_address: u64, sp: u64, fp: u64) -> Result<WalkFrame, StopReason> {
    match return_address {
        0 => Err(StopReason::EndOfStack),
        address if is_user_address(address) => Ok(WalkFrame { address: CodeAddress::return_address(address), sp, fp }),
        _ => Err(StopReason::BadMemory),
    }
}
