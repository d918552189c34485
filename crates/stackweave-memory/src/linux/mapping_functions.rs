//! The hooks of `mmap` and related functions.
//!
//! Mappings are recorded with the requested size; unmapped ranges end with their last page.

use std::ffi::{c_int, c_void};

use stackweave_recording::events::Allocator;

use super::originals;
use crate::hook_event::{HookEvent, stack_address};
use crate::state::{self, hook_mode};

type Pointer = *mut c_void;

const PAGE: usize = 4096;

/// Begins the event of a call that changes mappings, if mappings are recorded.
macro_rules! event {
    ($mode:ident) => {
        if $mode == hook_mode::OFF {
            None
        } else {
            HookEvent::begin(stack_address()).filter(|event| event.active.mappings)
        }
    };
}

fn whole_pages(size: usize) -> usize {
    size.checked_next_multiple_of(PAGE).unwrap_or(size)
}

pub(crate) unsafe extern "C" fn mmap(
    at: Pointer,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> Pointer {
    let mode = state::current_mode();
    let event = event!(mode);
    // SAFETY: passed on to the caller.
    let mapped = unsafe { originals::mmap(at, size, protection, flags, file, offset) };
    if let Some(event) = event {
        record_mapped(&event, mode, mapped, size, flags);
    }
    mapped
}

pub(crate) unsafe extern "C" fn mmap64(
    at: Pointer,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> Pointer {
    let mode = state::current_mode();
    let event = event!(mode);
    // SAFETY: passed on to the caller.
    let mapped = unsafe { originals::mmap64(at, size, protection, flags, file, offset) };
    if let Some(event) = event {
        record_mapped(&event, mode, mapped, size, flags);
    }
    mapped
}

#[inline(always)]
fn record_mapped(event: &HookEvent, mode: usize, mapped: Pointer, size: usize, flags: c_int) {
    if mapped == libc::MAP_FAILED {
        record_failure(event, Allocator::Mmap, size);
    } else if event.wants(mode, size) {
        event.allocated(Allocator::Mmap, mapped.addr(), size);
    } else if flags & libc::MAP_FIXED != 0 {
        event.about_to_unmap(mapped.addr(), whole_pages(size));
    }
}

/// Records a failure for lack of memory: mappings fail for many other reasons.
fn record_failure(event: &HookEvent, allocator: Allocator, size: usize) {
    if event.thread.errno() == libc::ENOMEM {
        event.failed(allocator, size);
    }
}

pub(crate) unsafe extern "C" fn munmap(at: Pointer, size: usize) -> c_int {
    let mode = state::current_mode();
    let event = event!(mode);
    if let Some(event) = &event {
        event.about_to_unmap(at.addr(), whole_pages(size));
    }
    // SAFETY: passed on to the caller.
    let result = unsafe { originals::munmap(at, size) };
    if result != 0
        && let Some(event) = &event
    {
        event.kept(at.addr());
    }
    result
}

pub(crate) unsafe extern "C" fn mremap(
    at: Pointer,
    size: usize,
    new_size: usize,
    flags: c_int,
    new_at: Pointer,
) -> Pointer {
    let mode = state::current_mode();
    let event = event!(mode);
    // With size 0, the old mapping is duplicated.
    let stays = size == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    if let Some(event) = event.as_ref().filter(|_| !stays) {
        event.about_to_unmap(at.addr(), whole_pages(size));
    }
    // SAFETY: passed on to the caller.
    let mapped = unsafe { originals::mremap(at, size, new_size, flags, new_at) };
    if let Some(event) = event {
        if mapped == libc::MAP_FAILED {
            if !stays {
                event.kept(at.addr());
            }
            record_failure(&event, Allocator::Mremap, new_size);
        } else {
            record_moved(&event, mode, mapped, new_size, flags);
        }
    }
    mapped
}

#[inline(always)]
fn record_moved(event: &HookEvent, mode: usize, mapped: Pointer, size: usize, flags: c_int) {
    if event.wants(mode, size) {
        event.allocated(Allocator::Mremap, mapped.addr(), size);
    } else if flags & libc::MREMAP_FIXED != 0 {
        event.about_to_unmap(mapped.addr(), whole_pages(size));
    }
}
