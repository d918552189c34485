//! A block of a host's own allocator, as the C interface represents it.

use std::ffi::c_char;
use std::mem::offset_of;
use std::ptr;

use crate::sized_struct::SizedStruct;

/// A block of the host's allocator, or a segment that it splits into blocks. Initialize with STACKWEAVE_HOST_BLOCK_INIT, then
/// set the fields that differ.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_host_block {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// The address of the block. Blocks of different devices may have the same address.
    pub address: u64,
    /// The size of the block, in bytes.
    pub bytes: u64,
    /// The number of the block's device, from 0; -1 for the process's own memory.
    pub device: i64,
    /// The stream that the block is used on.
    pub stream: u64,
    /// The memory pool of the block.
    pub pool: u64,
    /// The text of an annotation or a tag: a C string, or null.
    pub text: *const c_char,
    /// In a state snapshot: the requested bytes.
    pub requested: u64,
    /// In a state snapshot: see stackweave_host_event_kind.
    pub flags: u64,
}

impl Default for stackweave_host_block {
    fn default() -> Self {
        let (address, bytes, device, stream, pool, requested, flags) = Default::default();
        Self { size: size_of::<Self>(), address, bytes, device, stream, pool, text: ptr::null(), requested, flags }
    }
}

// SAFETY: numbers and a pointer that may be null; the size comes first.
unsafe impl SizedStruct for stackweave_host_block {
    const MIN_SIZE: usize = offset_of!(Self, text);
}
