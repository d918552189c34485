//! The hooks of `malloc` and related functions.
//!
//! Hot file: see `hook_wrappers.rs`. Each returns what its original returns, and leaves `errno` as the original does.

use std::ffi::{c_int, c_void};

use stackweave_recording::events::Allocator;

use super::hook_wrappers::{
    record_allocation, record_allocation_by_another, record_free, record_free_by_another, record_reallocation,
};
use super::originals;
use crate::hook_event::{HookEvent, stack_address};
use crate::state::{self, hook_mode};

type Pointer = *mut c_void;

pub(crate) unsafe extern "C" fn malloc(size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_allocation(Allocator::Malloc, size, || unsafe { originals::malloc(size) })
}

pub(crate) unsafe extern "C" fn free(block: Pointer) {
    // SAFETY: passed on to the caller.
    record_free(block, || unsafe { originals::free(block) });
}

pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> Pointer {
    let bytes = count.saturating_mul(size);
    // SAFETY: passed on to the caller.
    record_allocation(Allocator::Calloc, bytes, || unsafe { originals::calloc(count, size) })
}

pub(crate) unsafe extern "C" fn realloc(block: Pointer, size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_reallocation(Allocator::Realloc, block, size, || unsafe { originals::realloc(block, size) })
}

pub(crate) unsafe extern "C" fn reallocarray(block: Pointer, count: usize, size: usize) -> Pointer {
    let bytes = count.saturating_mul(size);
    let mode = state::current_mode();
    let event = if mode == hook_mode::OFF { None } else { HookEvent::begin(stack_address()) };
    // SAFETY: passed on to the caller.
    let original = || unsafe { originals::reallocarray(block, count, size) };
    let Some(event) = event else { return original() };
    let was_recorded = !block.is_null() && event.about_to_free_if_known(mode, block.addr());
    let new = original();
    if !new.is_null() {
        event.allocated_if_wanted(mode, Allocator::ReallocArray, new.addr(), bytes);
    } else if bytes > 0 {
        event.kept_if_recorded(was_recorded, mode, block.addr());
        event.failed(Allocator::ReallocArray, bytes);
    }
    new
}

pub(crate) unsafe extern "C" fn posix_memalign(block: *mut Pointer, alignment: usize, size: usize) -> c_int {
    let mode = state::current_mode();
    let is_on = matches!(mode, hook_mode::ALL | hook_mode::SAMPLED);
    let event = if is_on { HookEvent::begin(stack_address()) } else { None };
    // SAFETY: passed on to the caller.
    let result = unsafe { originals::posix_memalign(block, alignment, size) };
    let Some(event) = event else { return result };
    if result == 0 {
        // SAFETY: the call has succeeded, so the caller's pointer is valid, and set.
        let block = unsafe { *block };
        if !block.is_null() {
            event.allocated_if_wanted(mode, Allocator::PosixMemalign, block.addr(), size);
        }
    } else if result == libc::ENOMEM && size > 0 {
        event.failed(Allocator::PosixMemalign, size);
    }
    result
}

pub(crate) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_allocation_by_another(Allocator::AlignedAlloc, size, || unsafe { originals::aligned_alloc(alignment, size) })
}

pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_allocation_by_another(Allocator::Memalign, size, || unsafe { originals::memalign(alignment, size) })
}

pub(crate) unsafe extern "C" fn valloc(size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_allocation_by_another(Allocator::Valloc, size, || unsafe { originals::valloc(size) })
}

pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    record_allocation_by_another(Allocator::Pvalloc, size, || unsafe { originals::pvalloc(size) })
}

pub(crate) unsafe extern "C" fn cfree(block: Pointer) {
    // SAFETY: passed on to the caller.
    record_free_by_another(block, || unsafe { originals::cfree(block) });
}
