//! Events of hosts that use another copy of Stackweave in this process.
//!
//! A host in C calls the `libstackweave.so` that it was linked with, while the recorder may be that of the Python
//! package. So a recorder that starts searches all loaded modules for copies of the C interface, and gives them its
//! *sink*: a function that records the events of their hosts. A copy that is loaded later searches for a recorder
//! (`PROVIDER`) at its load. Sinks are never freed; a withdrawn sink does nothing.

use std::ffi::{CStr, c_char};
use std::mem::{self, MaybeUninit, offset_of};
use std::ptr;

use crate::host::{self, HostBlock};
use crate::host_event::HostEventKind;
use crate::{platform, state};

/// The function by which a copy of the C interface accepts a sink: a [`SetSink`].
const SET: &CStr = c"stackweave_set_memory_sink";
/// The function by which the Python module offers its sink, beside its own copy of the C interface: a [`ProvideSink`].
const PROVIDER: &CStr = c"stackweave_memory_sink";

/// A block of a host, as one copy passes it to another.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SinkBlock {
    /// The size of this structure in bytes: fields are only added.
    pub size: usize,
    /// As in [`HostBlock`].
    pub address: u64,
    /// The size of the block in bytes.
    pub bytes: u64,
    /// As in [`HostBlock`].
    pub device: i64,
    /// As in [`HostBlock`].
    pub stream: u64,
    /// As in [`HostBlock`].
    pub pool: u64,
    /// The text of an annotation or a tag: a C string, or null.
    pub text: *const c_char,
    /// As in [`HostBlock`].
    pub requested: u64,
    /// As in [`HostBlock`].
    pub flags: u64,
}

impl SinkBlock {
    /// The size of the first version, which had neither a text nor the fields of a snapshot.
    const FIRST: usize = offset_of!(Self, text);

    /// Reads the block of an older or newer copy. `None` if it is too short.
    ///
    /// # Safety
    /// `block` points to a block whose `size` is right.
    unsafe fn read(block: *const Self) -> Option<Self> {
        // SAFETY: the caller vouches for the block; the size comes first.
        let size = unsafe { (*block).size };
        if size >= size_of::<Self>() {
            // SAFETY: it is at least as long as this type.
            return Some(unsafe { *block });
        }
        let mut copy = MaybeUninit::<Self>::zeroed();
        (size >= Self::FIRST).then(|| {
            // SAFETY: both have that many bytes; zeros are a valid value of each field.
            unsafe {
                ptr::copy_nonoverlapping(block.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), size);
                copy.assume_init()
            }
        })
    }

    /// Converts the block to this crate's type.
    const fn to_host(self) -> HostBlock {
        let Self { address, bytes, device, stream, pool, requested, flags, .. } = self;
        HostBlock { address, size: bytes, device, stream, pool, requested, flags }
    }
}

/// Records the events of hosts of other copies.
#[derive(Debug)]
#[repr(C)]
pub struct MemorySink {
    /// The size of this structure in bytes: fields are only added.
    pub size: usize,
    /// Records an event: its kind, by the number of a [`HostEventKind`], its block, and an address in the stack frame
    /// of the function that the host has called.
    pub record: unsafe extern "C" fn(kind: u32, block: *const SinkBlock, stack_address: usize),
}

/// Replaces the sink that is passed second by the first; null is none. Returns 0 if the second was set.
type SetSink = unsafe extern "C" fn(*const MemorySink, *const MemorySink) -> i32;
/// Returns the sink while memory is recorded, else null.
type ProvideSink = unsafe extern "C" fn() -> *const MemorySink;

static SINK: MemorySink = MemorySink { size: size_of::<MemorySink>(), record };

/// # Safety
/// `block` points to a block whose `size` is right, with a text that is null or a C string; `stack_address` is in the
/// stack frame of a caller.
unsafe extern "C" fn record(kind: u32, block: *const SinkBlock, stack_address: usize) {
    let Some(kind) = HostEventKind::from_number(kind) else { return };
    // SAFETY: the caller's promise.
    if let Some(block) = unsafe { SinkBlock::read(block) } {
        // SAFETY: as above.
        unsafe { record_here(kind, &block, stack_address) };
    }
}

/// Records an event in the recorder of this copy, if it has one. `stack_address` as for [`MemorySink::record`].
///
/// # Safety
/// The text of the block is null, or a C string.
#[inline]
pub unsafe fn record_here(kind: HostEventKind, block: &SinkBlock, stack_address: usize) {
    if block.text.is_null() {
        return host::record_at(stack_address, kind, &block.to_host(), None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(block.text) }.to_bytes();
    // A text that is not UTF-8 is recorded up to its first invalid byte.
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    host::record_at(stack_address, kind, &block.to_host(), Some(text));
}

/// Returns the sink of this copy while it records, else null. Providers return this.
pub fn sink_if_recording() -> *const MemorySink {
    if state::is_begun() { &raw const SINK } else { ptr::null() }
}

/// Returns the current sink of the first provider among the loaded modules. A copy of the C interface calls this when
/// it is loaded. Does not allocate.
pub fn find_sink() -> *const MemorySink {
    let mut found: *const MemorySink = ptr::null();
    platform::for_each_export(PROVIDER, own_address(), &mut |address| {
        if found.is_null() {
            // SAFETY: what modules of ours export by this name has this type; it only reads a word.
            found = unsafe { mem::transmute::<usize, ProvideSink>(address)() };
        }
    });
    found
}

/// Gives the sink to all copies of the C interface in this process that have none.
pub(crate) fn offer() {
    exchange(&raw const SINK, ptr::null());
}

/// Withdraws the sink.
pub(crate) fn withdraw() {
    exchange(ptr::null(), &raw const SINK);
}

fn exchange(new: *const MemorySink, old: *const MemorySink) {
    platform::for_each_export(SET, own_address(), &mut |address| {
        // SAFETY: what copies of ours export by this name has this type; it only exchanges a word. The sink is static,
        // in a module that is not unloaded once it has recorded.
        unsafe { mem::transmute::<usize, SetSink>(address)(new, old) };
    });
}

/// Returns an address in this module.
fn own_address() -> usize {
    (&raw const SINK).addr()
}
