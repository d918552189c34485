//! One capture, from the entry stub or a signal context to the caller's buffer.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use stackweave_core::{CodeAddress, StackPointer, StopReason};

use crate::captured::{Captured, StackMark};
use crate::platform::arch::{EntryRegisters, Registers};
use crate::platform::last_stack::{CAPACITY, Verified};
use crate::platform::stack_memory::StackMemory;
use crate::platform::thread_counters::add;
use crate::platform::thread_state::{CaptureState, ThreadState};
use crate::platform::walk::{RegisterSource, Walk, WalkCounts, WalkEnd, WalkFrame, WalkStart, found_end};

/// The output of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureOutput {
    frames: *mut u64,
    stack_pointers: *mut u64,
    limit: usize,
    skip: usize,
    mark: *mut StackMark,
}

impl CaptureOutput {
    pub(crate) fn new(frames: &mut [CodeAddress], stack_pointers: Option<&mut [StackPointer]>, skip: usize) -> Self {
        let (stack_pointers, room) = match stack_pointers {
            Some(slice) => (slice.as_mut_ptr().cast(), slice.len()),
            None => (ptr::null_mut(), usize::MAX),
        };
        Self {
            frames: frames.as_mut_ptr().cast(),
            stack_pointers,
            limit: frames.len().min(room),
            skip,
            mark: ptr::null_mut(),
        }
    }

    /// Creates the output of the entry stub, for whose arguments see there.
    #[inline(always)]
    fn of_stub(frames: *mut u64, limit: usize, skip: usize, stack_pointers: *mut u64) -> Self {
        let mark = if frames.is_null() { stack_pointers.cast() } else { ptr::null_mut() };
        Self { frames, stack_pointers, limit, skip, mark }
    }

    /// Returns how many frames a walk has to find, including the skipped ones.
    #[inline(always)]
    fn total(&self) -> usize {
        self.skip.saturating_add(self.limit).min(CAPACITY)
    }

    /// Writes the frames of the walk that just ended.
    ///
    /// # Safety
    /// The buffers have room for `limit` words.
    #[inline(always)]
    unsafe fn write(&self, state: &ThreadState, own: &CaptureState, ended: WalkEnd) -> Captured {
        let len = ended.len.saturating_sub(self.skip);
        if !self.mark.is_null() {
            let mark = StackMark { thread_state: ptr::from_ref(state).addr() as u64, number: own.last.number() };
            // SAFETY: the caller promises a valid mark.
            unsafe { self.mark.write(mark) };
            return Captured { len, stop: ended.stop };
        }
        // SAFETY: a walk ends after `skip + limit` frames, so len <= limit, which the caller promises to be valid.
        let frames = unsafe { core::slice::from_raw_parts_mut(self.frames, len) };
        if self.stack_pointers.is_null() {
            own.last.copy(self.skip, ended.len, frames, |_, _| {});
        } else {
            own.last.copy(self.skip, ended.len, frames, |index, slot| {
                // SAFETY: index < len.
                unsafe { *self.stack_pointers.add(index) = slot.wrapping_add(8) };
            });
        }
        Captured { len, stop: ended.stop }
    }
}

const STOP_SHIFT: u32 = 56;

/// Packs a result into one word, which the entry stub can return in a register.
#[inline(always)]
fn pack(captured: Captured) -> u64 {
    captured.len as u64 | (captured.stop as u64) << STOP_SHIFT
}

/// Reverses [`pack`].
#[inline(always)]
pub(crate) fn unpack(word: u64) -> Captured {
    let len = (word & ((1 << STOP_SHIFT) - 1)) as usize;
    Captured { len, stop: StopReason::ALL[(word >> STOP_SHIFT) as usize % StopReason::ALL.len()] }
}

/// Captures the stack for the entry stub, which calls it.
pub(crate) unsafe extern "sysv64" fn enter(
    frames: *mut u64,
    limit: usize,
    skip: usize,
    stack_pointers: *mut u64,
    entry: &EntryRegisters,
) -> u64 {
    let first = WalkFrame { address: CodeAddress::return_address(entry.pc), sp: entry.sp, fp: entry.fp };
    let output = CaptureOutput::of_stub(frames, limit, skip, stack_pointers);
    // A stack that was captured before is found by its first frame: that case is completely handled here.
    if let Some(state) = ThreadState::current()
        && state.busy.load(Ordering::Relaxed) == 0
        && limit != 0
    {
        let lease = Lease::take(state);
        // SAFETY: this thread's own state, whose `busy` was not set.
        let own = unsafe { &mut *state.own.get() };
        if own.watch.is_unchanged() && own.stacks.owns(first.sp) {
            let (total, high) = (output.total(), own.stacks.own_end());
            let mut ended = match own.last.verify_all(&first, total, high) {
                Verified::Complete(end) => Ok(WalkEnd { len: end + 1 - own.last.top(), stop: StopReason::EndOfStack }),
                Verified::Limit(end) => Ok(WalkEnd { len: end + 1 - own.last.top(), stop: StopReason::DepthLimit }),
                Verified::Changed(cursor) => Err(cursor),
                Verified::Barrier(_) => Err(own.last.top()),
            };
            if ended.is_err()
                && !own.last.changes_little()
                // SAFETY: the thread's own stack is readable up to its end, from the word before its stack pointer,
                // which the call of the entry stub has pushed.
                && let Some(len) = unsafe { own.last.find(&first, total, high) }
            {
                ended = Ok(found_end(len, total));
            }
            return pack(match ended {
                // SAFETY: the stub's caller promises valid buffers.
                Ok(ended) => unsafe { finish(lease, ended, &output) },
                // SAFETY: the stub's caller promises valid buffers, and no other capture uses the state.
                Err(cursor) => unsafe { walk(lease, entry, &output, cursor) },
            });
        }
        lease.end();
    }
    let start = WalkStart { first, source: RegisterSource::Entry(entry) };
    // SAFETY: the stub's caller promises valid buffers.
    pack(unsafe { capture(&start, &output) })
}

/// Walks a stack whose first frames are new.
#[inline(never)]
unsafe fn walk(lease: Lease<'_>, entry: &EntryRegisters, output: &CaptureOutput, cursor: usize) -> Captured {
    let first = WalkFrame { address: CodeAddress::return_address(entry.pc), sp: entry.sp, fp: entry.fp };
    // SAFETY: the caller keeps this function's contract, which is the same.
    unsafe { walk_from(lease, &WalkStart { first, source: RegisterSource::Entry(entry) }, output, Some(cursor)) }
}

/// Captures the stack that `registers` describe.
///
/// # Safety
/// The buffers of `output` have its lengths.
pub(crate) unsafe fn capture_registers(registers: &Registers, output: &CaptureOutput) -> Captured {
    let address = CodeAddress::instruction_pointer(registers.pc());
    let first = WalkFrame { address, sp: registers.sp(), fp: registers.fp() };
    let start = WalkStart { first, source: RegisterSource::Context(registers) };
    // SAFETY: the caller promises a valid output.
    unsafe { capture(&start, output) }
}

/// Captures without assuming that any part of the stack is unchanged.
#[inline(never)]
unsafe fn capture(start: &WalkStart<'_>, output: &CaptureOutput) -> Captured {
    const NO_MEMORY: Captured = Captured { len: 0, stop: StopReason::BadMemory };
    if output.limit == 0 {
        return Captured { len: 0, stop: StopReason::DepthLimit };
    }
    let Some(state) = ThreadState::current().or_else(ThreadState::attach) else { return NO_MEMORY };
    let is_abandoned = state.busy.load(Ordering::Relaxed) != 0 && was_abandoned(state, &state.busy);
    if is_abandoned {
        // SAFETY: this thread's own state, whose last user has left it.
        unsafe { (*state.own.get()).last.clear() };
    }
    if is_abandoned || state.busy.load(Ordering::Relaxed) == 0 {
        // SAFETY: this thread's own state, which no other capture uses; the caller promises a valid output.
        return unsafe { walk_from(Lease::take(state), start, output, None) };
    }
    // This signal handler has interrupted a capture.
    let Some(spare) = ThreadState::claim() else { return NO_MEMORY };
    // SAFETY: just claimed.
    let captured = unsafe { walk_from(Lease::take(spare), start, output, None) };
    spare.release();
    captured
}

/// Returns whether the capture that has marked `state` as `busy` is no longer on the stack: a signal handler
/// jumped out of it. (The cache is consistent after each store; the record of the last stack is not.)
#[cold]
pub(crate) fn was_abandoned(state: &ThreadState, busy: &AtomicU64) -> bool {
    // SAFETY: only reads the bounds, which an interrupted capture only changes to valid values.
    let stacks = unsafe { &(*state.own.get()).stacks };
    let (interrupted, here) = (busy.load(Ordering::Relaxed), stack_pointer());
    interrupted < here && stacks.owns_both(interrupted, here)
}

/// Exclusive use of a thread's state, until [`Lease::end`]: signal handlers see that it is in use.
#[must_use = "a state stays busy until its lease is ended"]
struct Lease<'a>(&'a ThreadState);

impl<'a> Lease<'a> {
    #[inline(always)]
    fn take(state: &'a ThreadState) -> Self {
        state.busy.store(stack_pointer(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(state)
    }

    #[inline(always)]
    fn end(self) {
        compiler_fence(Ordering::SeqCst);
        self.0.busy.store(0, Ordering::Relaxed);
    }
}

/// Implements [`write_last_stack`](crate::write_last_stack).
#[inline(always)]
pub(crate) fn write_last_stack(
    mark: StackMark,
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> bool {
    let Some(state) = ThreadState::current().filter(|state| ptr::from_ref(*state).addr() as u64 == mark.thread_state)
    else {
        return false;
    };
    if state.busy.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let lease = Lease::take(state);
    // SAFETY: this thread's own state, whose `busy` was not set.
    let own = unsafe { &*state.own.get() };
    let is_last = own.last.number() == mark.number;
    if is_last {
        let output = CaptureOutput::new(frames, Some(stack_pointers), skip);
        let ended = WalkEnd { len: output.limit + skip, stop: StopReason::EndOfStack };
        // SAFETY: the output was made from slices.
        unsafe { output.write(state, own, ended) };
    }
    lease.end();
    is_last
}

/// Walks, writes and counts. If `cursor` is given, frames of the last stack before it are known to be gone.
///
/// # Safety
/// No other capture uses the state, and the buffers of `output` have its lengths.
#[inline(always)]
unsafe fn walk_from(
    lease: Lease<'_>,
    start: &WalkStart<'_>,
    output: &CaptureOutput,
    cursor: Option<usize>,
) -> Captured {
    let state = lease.0;
    // SAFETY: the caller promises that no other capture uses it, and `busy` keeps signal handlers away.
    let own = unsafe { &mut *state.own.get() };
    if !own.watch.is_unchanged() && own.watch.has_lost_code(start.in_signal_handler()) {
        reset(state, own);
    }
    let may_find = cursor.is_some() && own.last.changes_little();
    let cursor = cursor.unwrap_or(own.last.top());
    let mut walk = Walk {
        memory: StackMemory::new(&mut own.stacks),
        lookup: &mut own.lookup,
        cache: &mut own.cache,
        last: &mut own.last,
        counts: WalkCounts::default(),
    };
    let ended = walk.run(start, output.total(), cursor, may_find);
    let counts = walk.counts;
    if counts.misses + counts.general != 0 {
        add(&state.counters.misses, counts.misses);
        add(&state.counters.unsupported, counts.general);
    }
    // SAFETY: the caller promises a valid output.
    unsafe { finish(lease, ended, output) }
}

/// Writes and counts the captured frames.
///
/// # Safety
/// The same as for [`walk_from`].
#[inline(always)]
unsafe fn finish(lease: Lease<'_>, ended: WalkEnd, output: &CaptureOutput) -> Captured {
    let state = lease.0;
    // SAFETY: the caller promises a valid output.
    let captured = unsafe { output.write(state, &*state.own.get(), ended) };
    lease.end();
    add(&state.counters.frames, ended.len as u64);
    add(&state.counters.stops[ended.stop as usize], 1);
    captured
}

/// Drops everything that was read from modules: one of them has been unloaded.
#[cold]
#[inline(never)]
fn reset(state: &ThreadState, own: &mut CaptureState) {
    own.cache.clear();
    own.lookup.clear();
    own.last.clear();
    add(&state.counters.resets, 1);
}

/// Returns the approximate stack pointer of this capture.
#[inline(always)]
pub(crate) fn stack_pointer() -> u64 {
    let marker = 0u8;
    (&raw const marker).addr() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_length_and_reason() {
        for stop in StopReason::ALL {
            let captured = Captured { len: CAPACITY, stop };
            assert_eq!(unpack(pack(captured)), captured);
        }
    }
}
