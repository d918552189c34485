//! Records the events of a host's own allocator.
//!
//! Hot file: no allocation when warm, except for state snapshots and new texts; no lock, except while the recorder waits for a
//! buffer; no GIL. So these functions don't set [`crate::last_error`].

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_memory::HostEventKind;
use stackweave_memory::sink::{self, MemorySink, SinkBlock};

use crate::boundary::call_signal_safe;
use crate::host_block::stackweave_host_block;
use crate::sized_struct;
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_OK};

/// The recorder of another copy of the library in this process, which receives the events of this copy's hosts; or null.
static SINK: AtomicPtr<MemorySink> = AtomicPtr::new(ptr::null_mut());

/// Returns whether another copy records the events of this copy's hosts. Not part of the C interface.
pub fn has_sink() -> bool {
    !SINK.load(Ordering::Acquire).is_null()
}

/// Finds a copy that records already when this library is loaded.
extern "C" fn at_load() {
    let found = sink::find_sink().cast_mut();
    let _ = SINK.compare_exchange(ptr::null_mut(), found, Ordering::AcqRel, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Records an event here or in the copy that records.
///
/// # Safety
/// `block` is null, or points to a block whose size is correct, and whose text is null or a C string.
#[inline]
unsafe fn record(kind: HostEventKind, block: *const stackweave_host_block, stack_address: usize) -> stackweave_status {
    // SAFETY: guaranteed by the caller.
    let Some(block) = (unsafe { sized_struct::read(block) }) else { return STACKWEAVE_BAD_ARGUMENT };
    let stackweave_host_block { address, bytes, device, stream, pool, text, requested, flags, .. } = block;
    let size = size_of::<SinkBlock>();
    let block = SinkBlock { size, address, bytes, device, stream, pool, text, requested, flags };
    // SAFETY: null, or a sink that another copy has set, which is never freed.
    match unsafe { SINK.load(Ordering::Acquire).as_ref() } {
        // SAFETY: a complete block, and an address in the frame of the function that the host has called.
        Some(sink) => unsafe { (sink.record)(kind as u32, &raw const block, stack_address) },
        // SAFETY: the caller guarantees the text.
        None => unsafe { sink::record_here(kind, &block, stack_address) },
    }
    STACKWEAVE_OK
}

/// Records an event of the host's allocator. `kind` is a stackweave_host_event_kind, which may restrict where this may be
/// called. Otherwise it may be called with any lock held, and with or without the GIL.
///
/// `stack_address` is an address in the stack frame of a function of the host, such as `__builtin_frame_address(0)`; the
/// recorded stack begins with the caller of that function. If it is null, the stack begins with the caller of this function.
///
/// # Safety
/// `block` is null, or points to a block whose size is correct, and whose text is null or a C string. `stack_address` is null, or an
/// address on the stack of the calling thread, outside of this call.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_record_host_event(
    kind: u32,
    block: *const stackweave_host_block,
    stack_address: *const c_void,
) -> stackweave_status {
    let here = 0_u8;
    let stack_address = if stack_address.is_null() { black_box(&raw const here).addr() } else { stack_address.addr() };
    let Some(kind) = HostEventKind::from_number(kind) else { return STACKWEAVE_BAD_ARGUMENT };
    // SAFETY: the caller guarantees the block.
    let status = call_signal_safe(|| unsafe { record(kind, block, stack_address) });
    black_box(&here);
    status
}

/// Records that the host's allocator has allocated a block, with the woven stack of the calling thread, starting with the caller
/// of this function. Memory is recorded by stackweave_memory_start, or by stackweave.memory in the Python of this process;
/// otherwise the call costs a few nanoseconds.
///
/// Call this after the block was allocated, so that no other thread can record an event of the same address in between. May be
/// called with any lock held, and with or without the GIL; it takes neither. It waits for the file if that is slow for long.
///
/// # Safety
/// `block` is null, or points to a block whose size is correct.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_record_allocate(block: *const stackweave_host_block) -> stackweave_status {
    let here = 0_u8;
    let stack_address = black_box(&raw const here).addr();
    // SAFETY: the caller guarantees the block.
    let status = call_signal_safe(|| unsafe { record(HostEventKind::Allocate, block, stack_address) });
    black_box(&here);
    status
}

/// Records that the host's allocator frees a block, which is identified by `address`, `device` and `stream`. Call this before
/// the allocator can reuse the block.
///
/// # Safety
/// As for stackweave_record_allocate.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_record_free(block: *const stackweave_host_block) -> stackweave_status {
    let here = 0_u8;
    let stack_address = black_box(&raw const here).addr();
    // SAFETY: the caller guarantees the block.
    let status = call_signal_safe(|| unsafe { record(HostEventKind::Free, block, stack_address) });
    black_box(&here);
    status
}

/// Records that the host's allocator has allocated a segment that it splits into blocks. Segments don't count as allocated
/// memory; their blocks do.
///
/// # Safety
/// As for stackweave_record_allocate.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_record_segment_allocate(
    segment: *const stackweave_host_block,
) -> stackweave_status {
    let here = 0_u8;
    let stack_address = black_box(&raw const here).addr();
    // SAFETY: the caller guarantees the segment.
    let status = call_signal_safe(|| unsafe { record(HostEventKind::Segment, segment, stack_address) });
    black_box(&here);
    status
}

/// Records that the host's allocator frees a segment or a part of one: the `bytes` from `address` on.
///
/// # Safety
/// As for stackweave_record_allocate.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_record_segment_free(segment: *const stackweave_host_block) -> stackweave_status {
    let here = 0_u8;
    let stack_address = black_box(&raw const here).addr();
    // SAFETY: the caller guarantees the segment.
    let status = call_signal_safe(|| unsafe { record(HostEventKind::SegmentFree, segment, stack_address) });
    black_box(&here);
    status
}

/// Sets the sink that receives the events of this copy's hosts: replaces `before` by `sink`; null means none. Only the
/// recorder of another copy of Stackweave in this process, such as the Python package's, calls it. Returns
/// STACKWEAVE_BUSY if another sink is set, or if this copy records itself.
///
/// # Safety
/// `sink` is null, or a sink of a compatible copy of Stackweave, which is never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_set_memory_sink(sink: *const c_void, before: *const c_void) -> stackweave_status {
    if !sink.is_null() && !sink::sink_if_recording().is_null() {
        return STACKWEAVE_BUSY;
    }
    let (sink, before) = (sink.cast::<MemorySink>().cast_mut(), before.cast::<MemorySink>().cast_mut());
    match SINK.compare_exchange(before, sink, Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => STACKWEAVE_OK,
        Err(_) => STACKWEAVE_BUSY,
    }
}
