//! The hooks of `mmap` and its kin.
//!
//! Mappings are told with the size that was asked for; what is given back ends with its last page.

use std::ffi::{c_int, c_void};

use stackweave_recording::events::Allocator;

use super::originals;
use crate::hook_event::{HookEvent, place};
use crate::state::{self, way};

type Pointer = *mut c_void;

const PAGE: usize = 4096;

/// The event of a call that changes mappings, if it is told.
macro_rules! event {
    ($way:ident) => {
        if $way == way::OFF { None } else { HookEvent::begin(place()).filter(|event| event.active.mappings) }
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
    let way = state::current_way();
    let event = event!(way);
    // SAFETY: passed on to the caller.
    let mapped = unsafe { originals::mmap(at, size, protection, flags, file, offset) };
    if let Some(event) = event {
        tell_mapped(&event, way, mapped, size, flags);
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
    let way = state::current_way();
    let event = event!(way);
    // SAFETY: passed on to the caller.
    let mapped = unsafe { originals::mmap64(at, size, protection, flags, file, offset) };
    if let Some(event) = event {
        tell_mapped(&event, way, mapped, size, flags);
    }
    mapped
}

#[inline(always)]
fn tell_mapped(event: &HookEvent, way: usize, mapped: Pointer, size: usize, flags: c_int) {
    if mapped == libc::MAP_FAILED {
        tell_failed(event, Allocator::Mmap, size);
    } else if event.wants(way, size) {
        event.allocated(Allocator::Mmap, mapped.addr(), size);
    } else if flags & libc::MAP_FIXED != 0 {
        event.about_to_unmap(mapped.addr(), whole_pages(size));
    }
}

/// Mappings fail for many reasons.
fn tell_failed(event: &HookEvent, allocator: Allocator, size: usize) {
    if event.block.errno() == libc::ENOMEM {
        event.failed(allocator, size);
    }
}

pub(crate) unsafe extern "C" fn munmap(at: Pointer, size: usize) -> c_int {
    let way = state::current_way();
    let event = event!(way);
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
    let way = state::current_way();
    let event = event!(way);
    // With no size, the old mapping is mapped a second time.
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
            tell_failed(&event, Allocator::Mremap, new_size);
        } else {
            tell_moved(&event, way, mapped, new_size, flags);
        }
    }
    mapped
}

#[inline(always)]
fn tell_moved(event: &HookEvent, way: usize, mapped: Pointer, size: usize, flags: c_int) {
    if event.wants(way, size) {
        event.allocated(Allocator::Mremap, mapped.addr(), size);
    } else if flags & libc::MREMAP_FIXED != 0 {
        event.about_to_unmap(mapped.addr(), whole_pages(size));
    }
}
