//! Blocks of a host's own allocator.
//!
//! Hot file: no allocation when warm, no lock but as the recorder waits for room, but for accounts and new texts; no GIL.
//! So it says nothing by [`crate::last_error`].

use std::ffi::{c_char, c_void};
use std::hint::black_box;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_memory::HostEvent;
use stackweave_memory::sink::{self, MemorySink, SinkBlock};

use crate::border::call_quietly;
use crate::growing::{self, Growing};
use crate::status::stackweave_status::{self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_OK};

/// A block of the host's allocator, or room that it gives out blocks of. Set with STACKWEAVE_BLOCK_INIT, and then what is
/// to differ.
#[derive(Clone, Copy, Debug)]
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
    /// What an annotation or a tag says: a C string, or null.
    pub text: *const c_char,
    /// In an account: the bytes that were asked for.
    pub asked: u64,
    /// In an account: see stackweave_event.
    pub flags: u64,
}

impl Default for stackweave_block {
    fn default() -> Self {
        let (address, bytes, device, stream, pool, asked, flags) = Default::default();
        Self { size: size_of::<Self>(), address, bytes, device, stream, pool, text: ptr::null(), asked, flags }
    }
}

// SAFETY: numbers and a pointer that may be null, the size first.
unsafe impl Growing for stackweave_block {
    const FIRST: usize = offset_of!(Self, text);
}

/// What happens in a host's allocator, for stackweave_tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum stackweave_event {
    /// A block was taken: as stackweave_alloc.
    STACKWEAVE_EVENT_ALLOC = 1,
    /// A block is given back, and may be given out again at once: as stackweave_free.
    STACKWEAVE_EVENT_FREE = 2,
    /// Room for blocks was got: as stackweave_segment.
    STACKWEAVE_EVENT_SEGMENT = 3,
    /// Room is given back: as stackweave_segment_free.
    STACKWEAVE_EVENT_SEGMENT_FREE = 4,
    /// A block is in use, and was when the recording began. It has no stack.
    STACKWEAVE_EVENT_PRESENT = 5,
    /// The program gives a block back. A device may still use it.
    STACKWEAVE_EVENT_FREE_REQUESTED = 6,
    /// What the program gave back may be given out again.
    STACKWEAVE_EVENT_FREE_COMPLETED = 7,
    /// There is room for blocks, as there was when the recording began.
    STACKWEAVE_EVENT_SEGMENT_PRESENT = 8,
    /// A part of a segment that grows has got memory behind it.
    STACKWEAVE_EVENT_SEGMENT_MAP = 9,
    /// A part of a segment that grows loses the memory behind it.
    STACKWEAVE_EVENT_SEGMENT_UNMAP = 10,
    /// Somebody has asked the allocator for an account.
    STACKWEAVE_EVENT_SNAPSHOT = 11,
    /// There is no memory for a request of so many bytes. The address is how many bytes the device has free.
    STACKWEAVE_EVENT_OUT_OF_MEMORY = 12,
    /// The program says something of a block: its text.
    STACKWEAVE_EVENT_ANNOTATE = 13,
    /// What the calling thread takes from now on has the text as its tag; null: none.
    STACKWEAVE_EVENT_TAG = 14,
    /// An account of all segments and blocks begins: of segments, each with its blocks behind it, by one thread. Flags: why
    /// it is made (0 the recording ends, 1 out of memory, 2 somebody asks). Waits for the writer: not with a lock held that
    /// the allocator takes.
    STACKWEAVE_EVENT_STATE_BEGIN = 15,
    /// A segment in an account. Flags: 1 it is for large blocks, 2 it grows.
    STACKWEAVE_EVENT_SEGMENT_STATE = 16,
    /// A block in an account, with its real bytes, and those that were asked for. Flags: 1 it is in use by the program, 2 it is
    /// not to be given out yet. It gets the stack that it was taken on.
    STACKWEAVE_EVENT_BLOCK_STATE = 17,
    /// The account ends.
    STACKWEAVE_EVENT_STATE_END = 18,
}

const _: () = {
    let known = [
        (stackweave_event::STACKWEAVE_EVENT_ALLOC, HostEvent::Allocate),
        (stackweave_event::STACKWEAVE_EVENT_FREE, HostEvent::Free),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT, HostEvent::Segment),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT_FREE, HostEvent::SegmentFree),
        (stackweave_event::STACKWEAVE_EVENT_PRESENT, HostEvent::Present),
        (stackweave_event::STACKWEAVE_EVENT_FREE_REQUESTED, HostEvent::FreeRequested),
        (stackweave_event::STACKWEAVE_EVENT_FREE_COMPLETED, HostEvent::FreeCompleted),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT_PRESENT, HostEvent::SegmentPresent),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT_MAP, HostEvent::SegmentMap),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT_UNMAP, HostEvent::SegmentUnmap),
        (stackweave_event::STACKWEAVE_EVENT_SNAPSHOT, HostEvent::Snapshot),
        (stackweave_event::STACKWEAVE_EVENT_OUT_OF_MEMORY, HostEvent::OutOfMemory),
        (stackweave_event::STACKWEAVE_EVENT_ANNOTATE, HostEvent::Annotate),
        (stackweave_event::STACKWEAVE_EVENT_TAG, HostEvent::Tag),
        (stackweave_event::STACKWEAVE_EVENT_STATE_BEGIN, HostEvent::StateBegin),
        (stackweave_event::STACKWEAVE_EVENT_SEGMENT_STATE, HostEvent::SegmentState),
        (stackweave_event::STACKWEAVE_EVENT_BLOCK_STATE, HostEvent::BlockState),
        (stackweave_event::STACKWEAVE_EVENT_STATE_END, HostEvent::StateEnd),
    ];
    assert!(known.len() == HostEvent::ALL.len());
    let mut at = 0;
    while at < known.len() {
        assert!(known[at].0 as u32 == known[at].1 as u32, "an event has one number, in C and here");
        at += 1;
    }
};

/// Where another copy in this process wants to have told what hosts of this one do; null: nowhere.
static SINK: AtomicPtr<MemorySink> = AtomicPtr::new(ptr::null_mut());

/// Whether another copy is told what hosts of this one do: it records. Not for C.
pub fn has_sink() -> bool {
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
/// `block` is null, or points to a block with a true size, and a text that is null or a C string.
#[inline]
unsafe fn tell(what: HostEvent, block: *const stackweave_block, place: usize) -> stackweave_status {
    // SAFETY: passed on to the caller.
    let Some(block) = (unsafe { growing::read(block) }) else { return STACKWEAVE_BAD_ARGUMENT };
    let stackweave_block { address, bytes, device, stream, pool, text, asked, flags, .. } = block;
    let size = size_of::<SinkBlock>();
    let block = SinkBlock { size, address, bytes, device, stream, pool, text, asked, flags };
    // SAFETY: null, or what another copy has set, which never goes away.
    match unsafe { SINK.load(Ordering::Acquire).as_ref() } {
        // SAFETY: a whole block, and an address in the frame of the function that the host has called.
        Some(sink) => unsafe { (sink.tell)(what as u32, &raw const block, place) },
        // SAFETY: the caller vouches for the text.
        None => unsafe { sink::tell_here(what, &block, place) },
    }
    STACKWEAVE_OK
}

/// Something happens in the host's allocator. With any lock held, with the GIL or without, but where stackweave_event says
/// otherwise.
///
/// `place` is an address in the stack frame of a function of the host's, such as `__builtin_frame_address(0)`: the stack begins
/// with the caller of that function. Null: with the function that calls this.
///
/// # Safety
/// `block` is null, or points to a block with a true size, and a text that is null or a C string. `place` is null, or lies in
/// the stack of the calling thread, outside of this call.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn stackweave_tell(
    what: u32,
    block: *const stackweave_block,
    place: *const c_void,
) -> stackweave_status {
    let here = 0_u8;
    let place = if place.is_null() { black_box(&raw const here).addr() } else { place.addr() };
    let Some(what) = HostEvent::from_number(what) else { return STACKWEAVE_BAD_ARGUMENT };
    // SAFETY: the caller vouches for the block.
    let status = call_quietly(|| unsafe { tell(what, block, place) });
    black_box(&here);
    status
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
    let status = call_quietly(|| unsafe { tell(HostEvent::Allocate, block, place) });
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
    let status = call_quietly(|| unsafe { tell(HostEvent::Free, block, place) });
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
    let status = call_quietly(|| unsafe { tell(HostEvent::Segment, segment, place) });
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
    let status = call_quietly(|| unsafe { tell(HostEvent::SegmentFree, segment, place) });
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
