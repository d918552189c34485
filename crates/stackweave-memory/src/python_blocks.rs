//! Blocks of Python's own allocators.
//!
//! Hot file: see `hook_event.rs`. Everything is inlined into the function that the interpreter calls: stacks begin with
//! its caller. The event lasts while the allocator works, so that its calls of `malloc` and its arenas are not
//! recorded.

use std::sync::atomic::Ordering;

use stackweave_cpython::allocators::{AllocatorFunction, AllocatorObserver, BlockPointer, Domain};
use stackweave_recording::events::Allocator;

use crate::hook_event::{HookEvent, stack_address};
use crate::hook_threads::HookThread;
use crate::state::{self, hook_mode};

/// Records the blocks of Python's allocators: an observer for
/// [`AllocatorHooks::install`](stackweave_cpython::allocators::AllocatorHooks::install). It may be installed before a
/// [`Memory`](crate::MemoryRecorder) starts; without one it does nothing.
#[derive(Debug)]
pub struct PythonBlocks;

const fn allocator(domain: Domain, function: AllocatorFunction) -> Allocator {
    match (domain, function) {
        (Domain::Mem, AllocatorFunction::Malloc) => Allocator::PyMemMalloc,
        (Domain::Mem, AllocatorFunction::Calloc) => Allocator::PyMemCalloc,
        (Domain::Mem, AllocatorFunction::Realloc) => Allocator::PyMemRealloc,
        (Domain::Object, AllocatorFunction::Malloc) => Allocator::PyObjectMalloc,
        (Domain::Object, AllocatorFunction::Calloc) => Allocator::PyObjectCalloc,
        (Domain::Object, AllocatorFunction::Realloc) => Allocator::PyObjectRealloc,
    }
}

/// Begins an event, if events are recorded.
#[inline(always)]
fn begin(mode: usize, stack_address: usize) -> Option<HookEvent> {
    if mode == hook_mode::OFF {
        state::count_if_expected();
        return None;
    }
    HookEvent::begin(stack_address)
}

impl AllocatorObserver for PythonBlocks {
    #[inline(always)]
    fn allocate(
        domain: Domain,
        function: AllocatorFunction,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer {
        let mode = state::current_mode();
        let Some(event) = begin(mode, stack_address()) else { return original() };
        let block = original();
        if block.is_null() {
            event.failed(allocator(domain, function), size);
        } else {
            event.allocated_if_wanted(mode, allocator(domain, function), block.addr(), size);
        }
        block
    }

    #[inline(always)]
    fn free(block: BlockPointer, original: impl FnOnce()) {
        let mode = state::current_mode();
        let Some(event) = begin(mode, stack_address()) else { return original() };
        event.about_to_free_if_known(mode, block.addr());
        original();
        drop(event);
    }

    #[inline(always)]
    fn reallocate(
        domain: Domain,
        old: BlockPointer,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer {
        let mode = state::current_mode();
        let Some(event) = begin(mode, stack_address()) else { return original() };
        let was_recorded = !old.is_null() && event.about_to_free_if_known(mode, old.addr());
        let block = original();
        if block.is_null() {
            event.kept_if_recorded(was_recorded, mode, old.addr());
            event.failed(allocator(domain, AllocatorFunction::Realloc), size);
        } else {
            event.allocated_if_wanted(mode, allocator(domain, AllocatorFunction::Realloc), block.addr(), size);
        }
        block
    }

    #[inline(always)]
    fn is_in_event() -> bool {
        HookThread::current().is_some_and(|thread| thread.busy.load(Ordering::Relaxed) != 0)
    }
}
