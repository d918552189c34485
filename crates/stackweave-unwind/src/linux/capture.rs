//! One capture, from the entry stub or a signal context to the caller's buffer.
//!
//! Hot file: no allocation, no lock, async-signal-safe once warm.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use stackweave_core::{CodeAddress, StackPointer, StopReason};

use crate::captured::Captured;
use crate::platform::arch::{EntryRegisters, Registers};
use crate::platform::counters::add;
use crate::platform::last_stack::CAPACITY;
use crate::platform::stack_memory::StackMemory;
use crate::platform::thread_state::{Own, ThreadState};
use crate::platform::walk::{Counts, Ended, Frame, Source, Start, Walk};

/// Where the frames go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    frames: *mut u64,
    stack_pointers: *mut u64,
    limit: usize,
    skip: usize,
}

impl Output {
    pub(crate) fn new(frames: &mut [CodeAddress], stack_pointers: Option<&mut [StackPointer]>, skip: usize) -> Self {
        let (stack_pointers, room) = match stack_pointers {
            Some(slice) => (slice.as_mut_ptr().cast(), slice.len()),
            None => (ptr::null_mut(), usize::MAX),
        };
        Self { frames: frames.as_mut_ptr().cast(), stack_pointers, limit: frames.len().min(room), skip }
    }

    /// Writes the frames of the walk that just ended.
    ///
    /// # Safety
    /// The buffers have room for `limit` words.
    #[inline(always)]
    unsafe fn write(&self, own: &Own, ended: Ended) -> Captured {
        let len = ended.len.saturating_sub(self.skip);
        // SAFETY: a walk ends after `skip + limit` frames, so len <= limit, which the caller vouches for.
        let frames = unsafe { core::slice::from_raw_parts_mut(self.frames, len) };
        if self.stack_pointers.is_null() {
            own.last.copy(self.skip, ended.len, frames, |_, _| {});
        } else {
            own.last.copy(self.skip, ended.len, frames, |index, slot| {
                // SAFETY: index < len, as above.
                unsafe { *self.stack_pointers.add(index) = slot.wrapping_add(8) };
            });
        }
        Captured { len, stop: ended.stop }
    }
}

const STOP_SHIFT: u32 = 56;

/// A result as one word, which the entry stub can return in a register.
#[inline(always)]
fn pack(captured: Captured) -> u64 {
    captured.len as u64 | (captured.stop as u64) << STOP_SHIFT
}

/// The inverse of [`pack`].
#[inline(always)]
pub(crate) fn unpack(word: u64) -> Captured {
    let len = (word & ((1 << STOP_SHIFT) - 1)) as usize;
    Captured { len, stop: StopReason::ALL[(word >> STOP_SHIFT) as usize % StopReason::ALL.len()] }
}

/// What the entry stub calls.
pub(crate) unsafe extern "sysv64" fn enter(
    frames: *mut u64,
    limit: usize,
    skip: usize,
    stack_pointers: *mut u64,
    entry: &EntryRegisters,
) -> u64 {
    let output = Output { frames, stack_pointers, limit, skip };
    let first = Frame { address: CodeAddress::return_address(entry.pc), sp: entry.sp, fp: entry.fp };
    let start = Start { first, source: Source::Entry(entry) };
    // SAFETY: the stub's caller vouches for the buffers.
    pack(unsafe { capture(&start, &output) })
}

/// Captures the stack that `registers` describe.
///
/// # Safety
/// `output` has room for what it says.
pub(crate) unsafe fn capture_registers(registers: &Registers, output: &Output) -> Captured {
    let address = CodeAddress::instruction_pointer(registers.pc());
    let first = Frame { address, sp: registers.sp(), fp: registers.fp() };
    let start = Start { first, source: Source::Context(registers) };
    // SAFETY: the caller vouches for the output.
    unsafe { capture(&start, output) }
}

#[inline(always)]
unsafe fn capture(start: &Start<'_>, output: &Output) -> Captured {
    if output.limit == 0 {
        return Captured { len: 0, stop: StopReason::DepthLimit };
    }
    let here = stack_pointer();
    match ThreadState::current() {
        Some(state) if state.busy.load(Ordering::Relaxed) == 0 => {
            // SAFETY: this thread's own state, in use by no other capture; the output is vouched for.
            unsafe { capture_with(state, here, start, output) }
        }
        // SAFETY: the output is vouched for.
        current => unsafe { capture_aside(current, here, start, output) },
    }
}

/// A thread's first capture, or one in a signal handler that interrupted another.
#[cold]
#[inline(never)]
unsafe fn capture_aside(
    current: Option<&'static ThreadState>,
    here: u64,
    start: &Start<'_>,
    output: &Output,
) -> Captured {
    const NO_MEMORY: Captured = Captured { len: 0, stop: StopReason::BadMemory };
    let Some(busy) = current else {
        let Some(state) = ThreadState::attach() else { return NO_MEMORY };
        // SAFETY: just claimed for this thread; the output is vouched for.
        return unsafe { capture_with(state, here, start, output) };
    };
    // SAFETY: only reads the bounds, which the interrupted capture changes to valid values only.
    let stacks = unsafe { &(*busy.own.get()).stacks };
    let interrupted = busy.busy.load(Ordering::Relaxed);
    if interrupted < here && stacks.owns_both(interrupted, here) {
        // That capture's frame is gone: a handler jumped out of it.
        // SAFETY: so nobody uses the state; its record is only a guess, and its cache is consistent
        // after each store.
        return unsafe { capture_with(busy, here, start, output) };
    }
    let Some(spare) = ThreadState::claim() else { return NO_MEMORY };
    // SAFETY: just claimed.
    let captured = unsafe { capture_with(spare, here, start, output) };
    spare.release();
    captured
}

/// # Safety
/// Nobody else uses `state`, and `output` has room for what it says.
#[inline(always)]
unsafe fn capture_with(state: &ThreadState, here: u64, start: &Start<'_>, output: &Output) -> Captured {
    state.busy.store(here, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller says nobody else uses it, and `busy` keeps signal handlers away.
    let own = unsafe { &mut *state.own.get() };
    if !own.watch.is_quiet() && own.watch.has_lost_code(start.in_signal_handler()) {
        reset(state, own);
    }
    let mut walk = Walk {
        memory: StackMemory::new(&mut own.stacks),
        lookup: &mut own.lookup,
        cache: &mut own.cache,
        last: &mut own.last,
        counts: Counts::default(),
    };
    let ended = walk.run(start, output.skip.saturating_add(output.limit).min(CAPACITY));
    let counts = walk.counts;
    // SAFETY: vouched for by the caller.
    let captured = unsafe { output.write(own, ended) };
    compiler_fence(Ordering::SeqCst);
    state.busy.store(0, Ordering::Relaxed);
    let counters = &state.counters;
    add(&counters.frames, ended.len as u64);
    add(&counters.stops[ended.stop as usize], 1);
    if counts.misses + counts.general != 0 {
        add(&counters.misses, counts.misses);
        add(&counters.unsupported, counts.general);
    }
    captured
}

/// Forgets everything read from modules: one of them is gone.
#[cold]
#[inline(never)]
fn reset(state: &ThreadState, own: &mut Own) {
    own.cache.clear();
    own.lookup.clear();
    own.last.clear();
    add(&state.counters.resets, 1);
}

/// About where this capture's own frame is.
#[inline(always)]
fn stack_pointer() -> u64 {
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
