//! What a hook does around the function that it stands for, whichever that is.
//!
//! Hot file: neither allocates nor locks, but as [`HookEvent`] says. All is inlined into the hook: the stack of an event begins with the
//! caller of the function that [`place`] is inlined into.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use stackweave_recording::events::Allocator;

use crate::blocks::Block;
use crate::hook_event::{HookEvent, is_sampled, place};
use crate::state::{self, way};
use crate::{sampled_blocks, sampler};

type Pointer = *mut c_void;

/// Whether an allocation of this size is not told, as nearly all are not where some are chosen. It may be counted by that.
#[inline(always)]
pub(super) fn passes(way: usize, size: usize) -> bool {
    match way {
        way::ALL => false,
        way::SAMPLED => Block::of_this_thread()
            .is_some_and(|block| block.busy.load(Ordering::Relaxed) != 0 || sampler::passes(block, size)),
        way::OFF => {
            state::count_if_expected();
            true
        }
        _ => true,
    }
}

/// Whether the free of this block is not told.
#[inline(always)]
pub(super) fn passes_free(way: usize, block: Pointer) -> bool {
    match way {
        way::ALL | way::FREES => block.is_null(),
        way::OFF => {
            state::count_if_expected();
            true
        }
        _ => !sampled_blocks::may_hold(block.addr() as u64),
    }
}

/// A block is taken by `original`.
#[inline(always)]
pub(super) fn record_allocation(allocator: Allocator, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
    let way = state::current_way();
    if passes(way, size) {
        return original();
    }
    let Some(event) = HookEvent::begin(place()) else { return original() };
    let block = original();
    if !block.is_null() {
        event.allocated_if_wanted(way, allocator, block.addr(), size);
    } else if size > 0 {
        event.failed(allocator, size);
    }
    block
}

/// As [`record_allocation`], for a function that comes to another hook: that one is not told of.
#[inline(always)]
pub(super) fn record_allocation_by_another(
    allocator: Allocator,
    size: usize,
    original: impl FnOnce() -> Pointer,
) -> Pointer {
    let way = state::current_way();
    if !matches!(way, way::ALL | way::SAMPLED) {
        return original();
    }
    let Some(event) = HookEvent::begin(place()) else { return original() };
    let block = original();
    if !block.is_null() {
        event.allocated_if_wanted(way, allocator, block.addr(), size);
    } else if size > 0 && event.block.errno() == libc::ENOMEM {
        event.failed(allocator, size);
    }
    block
}

/// A block is given back by `original`.
#[inline(always)]
pub(super) fn record_free(block: Pointer, original: impl FnOnce()) {
    let way = state::current_way();
    if !passes_free(way, block)
        && let Some(event) = HookEvent::begin(place())
    {
        event.about_to_free_if_known(way, block.addr());
    }
    original();
}

/// As [`record_free`], for a function that comes to another hook: that one is not told of.
#[inline(always)]
pub(super) fn record_free_by_another(block: Pointer, original: impl FnOnce()) {
    let way = state::current_way();
    if way != way::OFF
        && !block.is_null()
        && let Some(event) = HookEvent::begin(place())
    {
        event.about_to_free_if_known(way, block.addr());
        original();
        drop(event);
    } else {
        original();
    }
}

/// A block is given back by `original`, and another is taken, maybe the same.
#[inline(always)]
pub(super) fn record_reallocation(
    allocator: Allocator,
    old: Pointer,
    size: usize,
    original: impl FnOnce() -> Pointer,
) -> Pointer {
    let way = state::current_way();
    let may_be_known = is_sampled(way) && sampled_blocks::may_hold(old.addr() as u64);
    if !matches!(way, way::ALL | way::FREES) && !may_be_known && passes(way, size) {
        return original();
    }
    let Some(event) = HookEvent::begin(place()) else { return original() };
    let was_told = !old.is_null() && event.about_to_free_if_known(way, old.addr());
    let new = original();
    if !new.is_null() {
        event.allocated_if_wanted(way, allocator, new.addr(), size);
    } else if size > 0 {
        event.kept_if_told(was_told, way, old.addr());
        event.failed(allocator, size);
    }
    new
}
