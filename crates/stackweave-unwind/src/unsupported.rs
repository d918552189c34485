//! Platforms on which Stackweave cannot capture: every function of `linux` fails or does nothing.

use core::ffi::c_void;
use core::ptr::NonNull;

use stackweave_core::{CodeAddress, ModuleList, StackPointer, StopReason};

use crate::captured::{Captured, StackMark};
use crate::stats::{UnloadWatch, UnwindStats};

const UNSUPPORTED: Captured = Captured { len: 0, stop: StopReason::UnsupportedPlatform };

/// A range of generated code. Without effect on this platform.
#[derive(Debug)]
pub struct RegisteredCode(());

/// Registers generated code. Without effect on this platform.
pub fn register_code(_start: *const u8, _length: usize, _eh_frame: &[u8]) -> RegisteredCode {
    RegisteredCode(())
}

/// Memory per thread. It does not exist on this platform.
#[derive(Debug)]
pub struct ThreadMemory(NonNull<u8>);

impl ThreadMemory {
    /// Always returns `None`.
    pub fn lease(_bytes: usize) -> Option<Self> {
        None
    }

    /// Returns the memory.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.0
    }

    /// Returns immediately: there are no leases.
    pub fn wait_for_others() {}
}

pub(crate) fn capture(_frames: &mut [CodeAddress], _skip: usize) -> Captured {
    UNSUPPORTED
}

pub(crate) fn capture_with_stack_pointers(
    _frames: &mut [CodeAddress],
    _stack_pointers: &mut [StackPointer],
    _skip: usize,
) -> Captured {
    UNSUPPORTED
}

/// # Safety
/// None needed here.
pub(crate) unsafe fn capture_from_context(
    _context: *const c_void,
    _frames: &mut [CodeAddress],
    _stack_pointers: Option<&mut [StackPointer]>,
    _skip: usize,
) -> Captured {
    UNSUPPORTED
}

pub(crate) fn capture_mark(_limit: usize, _skip: usize) -> (Captured, StackMark) {
    (UNSUPPORTED, StackMark::default())
}

pub(crate) fn write_last_stack(
    _mark: StackMark,
    _frames: &mut [CodeAddress],
    _stack_pointers: &mut [StackPointer],
    _skip: usize,
) -> bool {
    false
}

pub(crate) fn prepare() {}

pub(crate) fn modules() -> ModuleList {
    ModuleList::default()
}

pub(crate) fn loads_counter() -> Option<NonNull<u64>> {
    None
}

pub(crate) const fn loader_locks() -> Option<crate::loader_locks::LoaderLocks> {
    None
}

pub(crate) fn stats() -> UnwindStats {
    UnwindStats::none(UnloadWatch::NeverUnloads)
}
