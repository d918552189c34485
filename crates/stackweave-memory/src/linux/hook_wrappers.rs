//! Wraps the original function of a hook with the recording of its event.
//!
//! Hot file: neither allocates nor locks, except as [`HookEvent`] states. Everything is inlined into the hook: the
//! stack of an event begins with the caller of the function that [`stack_address`] is inlined into.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use stackweave_recording::events::Allocator;

use crate::hook_event::{HookEvent, is_sampled, stack_address};
use crate::hook_threads::HookThread;
use crate::state::{self, hook_mode};
use crate::{sampled_blocks, sampler};

type Pointer = *mut c_void;

/// Returns whether an allocation of this size is not recorded, which is nearly always so in a sampled recording. May
/// count its bytes.
#[inline(always)]
pub(super) fn skips_allocation(mode: usize, size: usize) -> bool {
    match mode {
        hook_mode::ALL => false,
        hook_mode::SAMPLED => HookThread::current()
            .is_some_and(|thread| thread.busy.load(Ordering::Relaxed) != 0 || sampler::count_unsampled(thread, size)),
        hook_mode::OFF => {
            state::count_if_expected();
            true
        }
        _ => true,
    }
}

/// Returns whether the free of this block is not recorded.
#[inline(always)]
pub(super) fn skips_free(mode: usize, block: Pointer) -> bool {
    match mode {
        hook_mode::ALL | hook_mode::FREES => block.is_null(),
        hook_mode::OFF => {
            state::count_if_expected();
            true
        }
        _ => !sampled_blocks::may_hold(block.addr() as u64),
    }
}

/// Records the block that `original` allocates.
#[inline(always)]
pub(super) fn record_allocation(allocator: Allocator, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
    let mode = state::current_mode();
    if skips_allocation(mode, size) {
        return original();
    }
    let Some(event) = HookEvent::begin(stack_address()) else { return original() };
    let block = original();
    if !block.is_null() {
        event.allocated_if_wanted(mode, allocator, block.addr(), size);
    } else if size > 0 {
        event.failed(allocator, size);
    }
    block
}

/// Records the block that `original` allocates by a call of another hooked function, whose event is not recorded.
#[inline(always)]
pub(super) fn record_allocation_by_another(
    allocator: Allocator,
    size: usize,
    original: impl FnOnce() -> Pointer,
) -> Pointer {
    let mode = state::current_mode();
    if !matches!(mode, hook_mode::ALL | hook_mode::SAMPLED) {
        return original();
    }
    let Some(event) = HookEvent::begin(stack_address()) else { return original() };
    let block = original();
    if !block.is_null() {
        event.allocated_if_wanted(mode, allocator, block.addr(), size);
    } else if size > 0 && event.thread.errno() == libc::ENOMEM {
        event.failed(allocator, size);
    }
    block
}

/// Records the block that `original` frees.
#[inline(always)]
pub(super) fn record_free(block: Pointer, original: impl FnOnce()) {
    let mode = state::current_mode();
    if !skips_free(mode, block)
        && let Some(event) = HookEvent::begin(stack_address())
    {
        event.about_to_free_if_known(mode, block.addr());
    }
    original();
}

/// Records the block that `original` frees by a call of another hooked function, whose event is not recorded.
#[inline(always)]
pub(super) fn record_free_by_another(block: Pointer, original: impl FnOnce()) {
    let mode = state::current_mode();
    if mode != hook_mode::OFF
        && !block.is_null()
        && let Some(event) = HookEvent::begin(stack_address())
    {
        event.about_to_free_if_known(mode, block.addr());
        original();
        drop(event);
    } else {
        original();
    }
}

/// Records the block that `original` frees, and the one that it allocates, which may be the same.
#[inline(always)]
pub(super) fn record_reallocation(
    allocator: Allocator,
    old: Pointer,
    size: usize,
    original: impl FnOnce() -> Pointer,
) -> Pointer {
    let mode = state::current_mode();
    let may_be_known = is_sampled(mode) && sampled_blocks::may_hold(old.addr() as u64);
    if !matches!(mode, hook_mode::ALL | hook_mode::FREES) && !may_be_known && skips_allocation(mode, size) {
        return original();
    }
    let Some(event) = HookEvent::begin(stack_address()) else { return original() };
    let was_recorded = !old.is_null() && event.about_to_free_if_known(mode, old.addr());
    let new = original();
    if !new.is_null() {
        event.allocated_if_wanted(mode, allocator, new.addr(), size);
    } else if size > 0 {
        event.kept_if_recorded(was_recorded, mode, old.addr());
        event.failed(allocator, size);
    }
    new
}
