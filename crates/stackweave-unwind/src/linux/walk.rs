//! The walk: from the registers of the innermost frame to the end of the stack.
//!
//! Each new frame costs a predicted cache entry, a compare, and two loads from the stack; as soon as a
//! frame of the last stack is met, the rest is only checked (see [`last_stack`](crate::platform::last_stack)).
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::{CodeAddress, StopReason};

use crate::platform::arch::{EntryRegisters, Registers};
use crate::platform::last_stack::{CAPACITY, LastStack, Verified, Walked};
use crate::platform::lookup::Lookup;
use crate::platform::rule::{Kind, Rule};
use crate::platform::rule_cache::{Place, RuleCache};
use crate::platform::slow_step;
use crate::platform::stack_memory::{StackMemory, read_word};

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
    pub(crate) walked: &'a mut [Walked; CAPACITY],
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
    /// Walks at most `limit` frames (1 to `CAPACITY`).
    #[inline(always)]
    pub(crate) fn run(&mut self, start: &Start<'_>, limit: usize) -> Ended {
        let mut frame = start.first;
        if !self.memory.enter(frame.sp) {
            return self.end(&[Walked::unstepped(frame)], StopReason::BadMemory);
        }
        let mut cursor = self.last.top();
        let mut count = 0;
        let mut place = Place::NONE;
        let mut guess = self.cache.first_guess();
        loop {
            cursor = self.last.seek(cursor, frame.sp);
            if self.last.is_at(cursor, frame.address.to_bits(), frame.sp, frame.fp) && cursor > count {
                match self.follow(start, cursor, limit - count) {
                    Ok((frames, stop)) => {
                        self.last.put_before(cursor, &self.walked[..count]);
                        return Ended { len: count + frames, stop };
                    }
                    Err(changed) => cursor = changed + 1,
                }
                // Following may have left this stack for another one.
                if !self.memory.enter(frame.sp) {
                    return self.end_walked(count, StopReason::BadMemory);
                }
            }
            let (found, rule) = match self.cache.predicted(guess, frame.address.to_bits()) {
                Some(hit) => hit,
                None => self.find(place, frame.address),
            };
            (place, guess) = (found, rule.tag());
            self.walked[count] = Walked { address: frame.address.to_bits(), sp: frame.sp, fp: frame.fp, rule };
            count += 1;
            if count == limit && rule.kind() != Kind::End {
                return self.end_walked(count, StopReason::DepthLimit);
            }
            let stepped = if rule.is_plain() { self.step(frame, rule) } else { self.step_slowly(start, frame, rule) };
            match stepped {
                Ok(caller) => frame = caller,
                Err(stop) => return self.end_walked(count, stop),
            }
        }
    }

    /// Follows the last stack from `cursor`, a frame of it that is on this stack too: how many frames
    /// of it still hold and why it ends there, or the first frame that does not hold.
    #[inline(always)]
    fn follow(&mut self, start: &Start<'_>, cursor: usize, limit: usize) -> Result<(usize, StopReason), usize> {
        match self.last.verify(cursor, limit, &mut self.memory) {
            Verified::Whole(end) => Ok((end + 1 - cursor, StopReason::EndOfStack)),
            Verified::Limit(end) => Ok((end + 1 - cursor, StopReason::DepthLimit)),
            Verified::Changed(index) => Err(index),
            Verified::Barrier(barrier) => self.follow_across(start, cursor, barrier, limit),
        }
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
            let rule = self.find(Place::NONE, frame.address).1;
            if barrier + 1 - cursor == limit && rule.kind() != Kind::End {
                return Ok((limit, StopReason::DepthLimit));
            }
            let stepped = if rule.is_plain() { self.step(frame, rule) } else { self.step_slowly(start, frame, rule) };
            let caller = match stepped {
                Ok(caller) => caller,
                Err(stop) => return Ok((barrier + 1 - cursor, stop)),
            };
            let next = barrier + 1;
            if !self.last.is_at(next, caller.address.to_bits(), caller.sp, caller.fp) {
                return Err(next);
            }
            match self.last.verify(next, limit - (next - cursor), &mut self.memory) {
                Verified::Whole(end) => return Ok((end + 1 - cursor, StopReason::EndOfStack)),
                Verified::Limit(end) => return Ok((end + 1 - cursor, StopReason::DepthLimit)),
                Verified::Changed(index) => return Err(index),
                Verified::Barrier(end) => barrier = end,
            }
        }
    }

    /// The rule for `address`, from the cache or from unwind tables.
    #[inline(never)]
    pub(crate) fn find(&mut self, previous: Place, address: CodeAddress) -> (Place, Rule) {
        let found = self.cache.find(address.to_bits());
        let (place, rule) = found.unwrap_or_else(|| self.look_up(address));
        self.cache.predict(previous, place);
        (place, rule)
    }

    #[cold]
    fn look_up(&mut self, address: CodeAddress) -> (Place, Rule) {
        self.counts.misses += 1;
        let rule = self.lookup.rule(address);
        if rule.kind() == Kind::NoModule {
            return (Place::NONE, rule);
        }
        (self.cache.insert(address.to_bits(), rule), rule)
    }

    /// One compact step: a [`Kind::Sp`] or [`Kind::Fp`] rule.
    #[inline(always)]
    fn step(&mut self, frame: Frame, rule: Rule) -> Result<Frame, StopReason> {
        let from_fp = rule.counts_from_fp();
        let cfa = if from_fp { frame.fp } else { frame.sp }.wrapping_add(rule.cfa_offset());
        if cfa < frame.sp + 8 || cfa > self.memory.high() {
            self.check(frame, cfa)?;
        }
        let mut fp = frame.fp;
        let fp_offset = rule.fp_offset();
        if fp_offset != 0 {
            let slot = cfa.wrapping_add(fp_offset);
            if from_fp && slot < frame.sp {
                return Err(StopReason::BadMemory);
            }
            // SAFETY: sp <= slot (by the rule's making, or checked above) and slot + 8 < cfa <= high.
            fp = unsafe { read_word(slot) };
        }
        // SAFETY: sp + 8 <= cfa <= high.
        let return_address = unsafe { read_word(cfa - 8) };
        if return_address == 0 {
            return Err(StopReason::EndOfStack);
        }
        Ok(Frame { address: CodeAddress::return_address(return_address), sp: cfa, fp })
    }

    /// The long form of the check in [`Walk::step`], for stacks that are probed as they are walked.
    #[cold]
    #[inline(never)]
    fn check(&mut self, frame: Frame, cfa: u64) -> Result<(), StopReason> {
        let is_above = cfa >= frame.sp.saturating_add(8);
        if is_above && self.memory.reaches(cfa) { Ok(()) } else { Err(StopReason::BadMemory) }
    }

    /// A step that a plain rule can't say.
    #[cold]
    #[inline(never)]
    fn step_slowly(&mut self, start: &Start<'_>, frame: Frame, rule: Rule) -> Result<Frame, StopReason> {
        if rule.kind() == Kind::FpDeref {
            self.step_realigned(frame, rule)
        } else {
            slow_step::step(self, start, frame, rule)
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
        if cfa_slot.max(fp_slot) >= cfa {
            return Err(StopReason::BadMemory);
        }
        let return_address = self.memory.read(cfa.wrapping_sub(8)).ok_or(StopReason::BadMemory)?;
        if return_address == 0 {
            return Err(StopReason::EndOfStack);
        }
        Ok(Frame { address: CodeAddress::return_address(return_address), sp: cfa, fp })
    }

    #[cold]
    fn end_walked(&mut self, count: usize, stop: StopReason) -> Ended {
        self.last.put_before(CAPACITY, &self.walked[..count]);
        Ended { len: count, stop }
    }

    #[cold]
    fn end(&mut self, walked: &[Walked], stop: StopReason) -> Ended {
        self.last.put_before(CAPACITY, walked);
        Ended { len: walked.len(), stop }
    }
}

impl Walked {
    fn unstepped(frame: Frame) -> Self {
        Self { address: frame.address.to_bits(), sp: frame.sp, fp: frame.fp, rule: Rule::of(Kind::General) }
    }
}
