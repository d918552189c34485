//! Blocks of Python's own allocators.
//!
//! Hot file: see `hook_event.rs`. All is inlined into the function that the interpreter calls: stacks begin with its caller. The event
//! goes on while the allocator works, so that what it takes from `malloc`, and its arenas, are told of to nobody.

use std::sync::atomic::Ordering;

use stackweave_cpython::allocators::{AllocatorObserver, Domain, Function, Pointer};
use stackweave_recording::events::Allocator;

use crate::blocks::Block;
use crate::hook_event::{HookEvent, place};
use crate::state::{self, way};

/// Records them: for [`AllocatorHooks::install`](stackweave_cpython::allocators::AllocatorHooks::install), with a
/// [`Memory`](crate::Memory) or before it; without one it does nothing.
#[derive(Debug)]
pub struct PythonBlocks;

const fn allocator(domain: Domain, function: Function) -> Allocator {
    match (domain, function) {
        (Domain::Mem, Function::Malloc) => Allocator::PyMemMalloc,
        (Domain::Mem, Function::Calloc) => Allocator::PyMemCalloc,
        (Domain::Mem, Function::Realloc) => Allocator::PyMemRealloc,
        (Domain::Object, Function::Malloc) => Allocator::PyObjectMalloc,
        (Domain::Object, Function::Calloc) => Allocator::PyObjectCalloc,
        (Domain::Object, Function::Realloc) => Allocator::PyObjectRealloc,
    }
}

/// Begins an event, if anything is told.
#[inline(always)]
fn begin(way: usize, place: usize) -> Option<HookEvent> {
    if way == way::OFF {
        state::count_if_expected();
        return None;
    }
    HookEvent::begin(place)
}

impl AllocatorObserver for PythonBlocks {
    #[inline(always)]
    fn take(domain: Domain, function: Function, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        let way = state::current_way();
        let Some(event) = begin(way, place()) else { return original() };
        let block = original();
        if block.is_null() {
            event.failed(allocator(domain, function), size);
        } else {
            event.allocated_if_wanted(way, allocator(domain, function), block.addr(), size);
        }
        block
    }

    #[inline(always)]
    fn give_back(block: Pointer, original: impl FnOnce()) {
        let way = state::current_way();
        let Some(event) = begin(way, place()) else { return original() };
        event.about_to_free_if_known(way, block.addr());
        original();
        drop(event);
    }

    #[inline(always)]
    fn exchange(domain: Domain, old: Pointer, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        let way = state::current_way();
        let Some(event) = begin(way, place()) else { return original() };
        let was_told = !old.is_null() && event.about_to_free_if_known(way, old.addr());
        let block = original();
        if block.is_null() {
            event.kept_if_told(was_told, way, old.addr());
            event.failed(allocator(domain, Function::Realloc), size);
        } else {
            event.allocated_if_wanted(way, allocator(domain, Function::Realloc), block.addr(), size);
        }
        block
    }

    #[inline(always)]
    fn is_inside() -> bool {
        Block::of_this_thread().is_some_and(|block| block.busy.load(Ordering::Relaxed) != 0)
    }
}
