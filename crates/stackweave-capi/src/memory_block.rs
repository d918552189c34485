//! Blocks of a host's own allocator.
//!
//! Hot file: no allocation when warm, no lock but as the recorder waits for room, no GIL. So it says nothing by
//! [`crate::last_error`].

use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_memory::sink::{self, MemorySink, SinkBlock, what};

use crate::border::call_quietly;
use crate::growing::{self, Growing};
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_OK};

/// A block of the host's allocator, or room that it gives out blocks of. Set with STACKWEAVE_BLOCK_INIT, and then what is
/// to differ.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct stackweave_block {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Where the block is. Blocks of different devices may have the same address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The device that it lies on, from 0; -1: the process's own memory.
    pub device: i64,
    /// The stream that it is used on.
    pub stream: u64,
    /// The pool that it comes from.
    pub pool: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Growing for stackweave_block {
    const FIRST: usize = size_of::<Self>();
}

/// Where another copy in this process wants to have told what hosts of this one do; null: nowhere.
static SINK: AtomicPtr<MemorySink> = AtomicPtr::new(ptr::null_mut());

/// Whether another copy is told.
pub(crate) fn has_sink() -> bool {
    !SINK.load(Ordering::Acquire).is_null()
}

/// Whoever records when this library is loaded.
extern "C" fn at_load() {
    let found = sink::find_sink().cast_mut();
    let _ = SINK.compare_exchange(ptr::null_mut(), found, Ordering::AcqRel, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// # Safety
/// `block` is null, or points to a block with a true size.
#[inline]
unsafe fn tell(what: u32, block: *const stackweave_block, place: usize) -> stackweave_status {
    // SAFETY: passed on to the caller.
    let Some(block) = (unsafe { growing::read(block) }) else { return STACKWEAVE_BAD_ARGUMENT };
    let stackweave_block { address, bytes, device, stream, pool, .. } = block;
    let block = SinkBlock { size: size_of::<SinkBlock>(), address, bytes, device, stream, pool };
    // SAFETY: null, or what another copy has set, which never goes away.
    match unsafe { SINK.load(Ordering::Acquire).as_ref() } {
        // SAFETY: a whole block, and an address in the frame of the function that the host has called.
        Some(sink) => unsafe { (sink.tell)(what, &raw const block, place) },
        None => sink::tell_here(what, block.to_host(), place),
    }
    STACKWEAVE_OK
}

/// The host's allocator has taken a block: recorded with the calling thread's woven stack, from the function that calls this
/// outward, if memory is recorded; by stackweave_memory_start, or by stackweave.memory in the Python of this process. Else
/// it costs a few nanoseconds.
///
/// To be called once the block is the caller's, so that nobody else can tell of that address meanwhile. With any lock held, with
/// the GIL or without; it takes neither. If the file is slow for long it waits for it.
///
/// # Safety
/// `block` is null, or points to a block with a true size.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_alloc(block: *const stackweave_block) -> stackweave_status {
    let here = 0_u8;
    let place = black_box(&raw const here).addr();
    // SAFETY: the caller vouches for the block.
    let status = call_quietly(|| unsafe { tell(what::ALLOCATE, block, place) });
    black_box(&here);
    status
}

/// The host's allocator gives a block back: its `address`, `device` and `stream` count. To be called while the block is still
/// the caller's.
///
/// # Safety
/// As for stackweave_alloc.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_free(block: *const stackweave_block) -> stackweave_status {
    let here = 0_u8;
    let place = black_box(&raw const here).addr();
    // SAFETY: the caller vouches for the block.
    let status = call_quietly(|| unsafe { tell(what::FREE, block, place) });
    black_box(&here);
    status
}

/// The host's allocator has got room that it gives out blocks of. Segments are not counted as memory: their blocks are.
///
/// # Safety
/// As for stackweave_alloc.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_segment(segment: *const stackweave_block) -> stackweave_status {
    let here = 0_u8;
    let place = black_box(&raw const here).addr();
    // SAFETY: the caller vouches for the segment.
    let status = call_quietly(|| unsafe { tell(what::SEGMENT, segment, place) });
    black_box(&here);
    status
}

/// The host's allocator gives room back: the `bytes` from `address` on, be it a segment or a part of one.
///
/// # Safety
/// As for stackweave_alloc.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_segment_free(segment: *const stackweave_block) -> stackweave_status {
    let here = 0_u8;
    let place = black_box(&raw const here).addr();
    // SAFETY: the caller vouches for the segment.
    let status = call_quietly(|| unsafe { tell(what::SEGMENT_FREE, segment, place) });
    black_box(&here);
    status
}

/// Not for hosts: by this a recorder of another copy of Stackweave in this process, such as the Python package's, has told to it
/// what hosts of this copy do. Puts `sink` in the place of `before`; null is none. STACKWEAVE_BUSY if another is there, or
/// if this copy records itself.
///
/// # Safety
/// `sink` is null, or what a copy of Stackweave has that knows this function, and never goes away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_set_memory_sink(
    sink: *const core::ffi::c_void,
    before: *const core::ffi::c_void,
) -> stackweave_status {
    if !sink.is_null() && !sink::sink_if_recording().is_null() {
        return STACKWEAVE_BUSY;
    }
    let (sink, before) = (sink.cast::<MemorySink>().cast_mut(), before.cast::<MemorySink>().cast_mut());
    match SINK.compare_exchange(before, sink, Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => STACKWEAVE_OK,
        Err(_) => STACKWEAVE_BUSY,
    }
}
