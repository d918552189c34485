//! Blocks of hosts that talk to another copy of Stackweave in this process.
//!
//! A host in C calls the `libstackweave.so` that it was linked with, while the recorder may be that of the Python package. So
//! whoever begins to record looks for copies in all loaded modules, and gives them its *sink*: a function that takes what their
//! hosts tell. A copy that is loaded later looks for a recorder (`PROVIDER`) when it is. Sinks are never freed; one that was
//! taken back does nothing.

use std::ffi::{CStr, c_char};
use std::mem::{self, MaybeUninit, offset_of};
use std::ptr;

use crate::host::{self, HostBlock};
use crate::host_event::HostEvent;
use crate::{platform, state};

/// What a copy of the C interface exports to be given a sink: a [`Set`].
const SET: &CStr = c"stackweave_set_memory_sink";
/// What the Python module exports, beside its own copy of the C interface: a [`Provide`].
const PROVIDER: &CStr = c"stackweave_memory_sink";

/// A block, as copies tell each other of it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SinkBlock {
    /// The size of this structure, in bytes: fields are only added.
    pub size: usize,
    /// As in [`HostBlock`].
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// As in [`HostBlock`].
    pub device: i64,
    /// As in [`HostBlock`].
    pub stream: u64,
    /// As in [`HostBlock`].
    pub pool: u64,
    /// What is said of it: a C string, or null.
    pub text: *const c_char,
    /// As in [`HostBlock`].
    pub asked: u64,
    /// As in [`HostBlock`].
    pub flags: u64,
}

impl SinkBlock {
    /// The size of the first version, which had neither text nor what an account says.
    const FIRST: usize = offset_of!(Self, text);

    /// What an older or newer copy tells of. `None` if it is none.
    ///
    /// # Safety
    /// `told` points to a block with a true size.
    unsafe fn read(told: *const Self) -> Option<Self> {
        // SAFETY: the size comes first.
        let size = unsafe { (*told).size };
        if size >= size_of::<Self>() {
            // SAFETY: as long as this one, at least.
            return Some(unsafe { *told });
        }
        let mut block = MaybeUninit::<Self>::zeroed();
        (size >= Self::FIRST).then(|| {
            // SAFETY: both have that many bytes; zeros are a valid value of each field.
            unsafe {
                ptr::copy_nonoverlapping(told.cast::<u8>(), block.as_mut_ptr().cast::<u8>(), size);
                block.assume_init()
            }
        })
    }

    /// The block in our own words.
    const fn to_host(self) -> HostBlock {
        let Self { address, bytes, device, stream, pool, asked, flags, .. } = self;
        HostBlock { address, size: bytes, device, stream, pool, asked, flags }
    }
}

/// Takes what hosts of other copies tell.
#[derive(Debug)]
#[repr(C)]
pub struct MemorySink {
    /// The size of this structure, in bytes: fields are only added.
    pub size: usize,
    /// What happened, by the number of a [`HostEvent`], to which block, and an address in the stack frame of the function that the host has called.
    pub tell: unsafe extern "C" fn(what: u32, block: *const SinkBlock, place: usize),
}

/// Puts a sink in the place of the one that is named second; null is none. Gives 0 if it was there.
type Set = unsafe extern "C" fn(*const MemorySink, *const MemorySink) -> i32;
/// The sink, while memory is recorded; else null.
type Provide = unsafe extern "C" fn() -> *const MemorySink;

static SINK: MemorySink = MemorySink { size: size_of::<MemorySink>(), tell };

/// # Safety
/// `block` points to a block with a true size, and a text that is null or a C string; `place` is an address in the stack frame
/// of a caller.
unsafe extern "C" fn tell(what: u32, block: *const SinkBlock, place: usize) {
    let Some(what) = HostEvent::from_number(what) else { return };
    // SAFETY: the caller's promise.
    if let Some(block) = unsafe { SinkBlock::read(block) } {
        // SAFETY: as above.
        unsafe { tell_here(what, &block, place) };
    }
}

/// Tells the recorder of this copy, if there is one. `place` as for [`MemorySink::tell`].
///
/// # Safety
/// The text of the block is null, or a C string.
#[inline]
pub unsafe fn tell_here(what: HostEvent, block: &SinkBlock, place: usize) {
    if block.text.is_null() {
        return host::tell_at(place, what, &block.to_host(), None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(block.text) }.to_bytes();
    // What is no text is told up to there.
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    host::tell_at(place, what, &block.to_host(), Some(text));
}

/// The sink of this copy while it records, and null else: what a provider says.
pub fn sink_if_recording() -> *const MemorySink {
    if state::is_begun() { &raw const SINK } else { ptr::null() }
}

/// The sink that the first provider among the loaded modules has now. For copies of the C interface, when they are loaded. Does
/// not allocate.
pub fn find_sink() -> *const MemorySink {
    let mut found: *const MemorySink = ptr::null();
    platform::for_each_export(PROVIDER, own_place(), &mut |address| {
        if found.is_null() {
            // SAFETY: what modules of ours export by this name; it only looks at a word.
            found = unsafe { mem::transmute::<usize, Provide>(address)() };
        }
    });
    found
}

/// Gives the sink to all copies of the C interface in this process that have none.
pub(crate) fn offer() {
    exchange(&raw const SINK, ptr::null());
}

/// Takes it back.
pub(crate) fn withdraw() {
    exchange(ptr::null(), &raw const SINK);
}

fn exchange(new: *const MemorySink, old: *const MemorySink) {
    platform::for_each_export(SET, own_place(), &mut |address| {
        // SAFETY: what copies of ours export by this name; it only exchanges a word. The sink is static, in a module that is
        // not unloaded once it has recorded.
        unsafe { mem::transmute::<usize, Set>(address)(new, old) };
    });
}

/// An address in this module.
fn own_place() -> usize {
    (&raw const SINK).addr()
}
