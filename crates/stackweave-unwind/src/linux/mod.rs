//! Capture on Linux. Each platform (see also `unsupported.rs`) provides `capture`, `capture_with_stack_pointers`,
//! `capture_from_context`, `prepare`, `stats`, `modules`, `loads_counter`, `register_code`, `RegisteredCode` and
//! `ThreadMemory`.

mod arch;
mod branch_index;
mod capture;
mod cfi;
mod dwarf_step;
mod frame_hash;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod last_stack;
mod list_lock;
mod loaded_objects;
mod loader;
mod lookup;
mod module_list;
mod plain_steps;
mod process_count;
mod registered_code;
mod rule;
mod rule_cache;
mod run_tree;
mod slow_step;
mod stack_memory;
mod stack_runs;
mod step_without_entry;
pub mod stepping;
mod thread_counters;
mod thread_memory;
mod thread_state;
mod unload_watch;
mod walk;

use core::ffi::c_void;

use stackweave_core::{CodeAddress, StackPointer};

use crate::captured::{Captured, StackMark};
use capture::CaptureOutput;

pub(crate) use capture::write_last_stack;
pub(crate) use module_list::modules;
pub use registered_code::{RegisteredCode, register_code};
pub use thread_memory::ThreadMemory;
pub(crate) use thread_state::stats;
pub(crate) use unload_watch::{loader_locks, loads_counter};

#[inline(always)]
pub(crate) fn capture(frames: &mut [CodeAddress], skip: usize) -> Captured {
    // SAFETY: the buffer is `frames`, of that length.
    let word = unsafe { arch::enter(frames.as_mut_ptr().cast(), frames.len(), skip, core::ptr::null_mut()) };
    capture::unpack(word)
}

#[inline(always)]
pub(crate) fn capture_with_stack_pointers(
    frames: &mut [CodeAddress],
    stack_pointers: &mut [StackPointer],
    skip: usize,
) -> Captured {
    let limit = frames.len().min(stack_pointers.len());
    // SAFETY: both buffers have at least `limit` words.
    let word = unsafe { arch::enter(frames.as_mut_ptr().cast(), limit, skip, stack_pointers.as_mut_ptr().cast()) };
    capture::unpack(word)
}

#[inline(always)]
pub(crate) fn capture_mark(limit: usize, skip: usize) -> (Captured, StackMark) {
    let mut mark = StackMark::default();
    // SAFETY: without frames, the last argument is for a mark.
    let word = unsafe { arch::enter(core::ptr::null_mut(), limit, skip, (&raw mut mark).cast()) };
    (capture::unpack(word), mark)
}

/// # Safety
/// `context` points to a `ucontext_t` that the kernel, or code imitating it, initialised.
pub(crate) unsafe fn capture_from_context(
    context: *const c_void,
    frames: &mut [CodeAddress],
    stack_pointers: Option<&mut [StackPointer]>,
    skip: usize,
) -> Captured {
    // SAFETY: the caller promises a valid context.
    let registers = unsafe { arch::Registers::from_context(context.cast()) };
    let output = CaptureOutput::new(frames, stack_pointers, skip);
    // SAFETY: the output was made from slices.
    unsafe { capture::capture_registers(&registers, &output) }
}

pub(crate) fn prepare() {
    capture(&mut [CodeAddress::default(); 64], 0);
}
