//! Hooks of Python's own allocators, by the interpreter's functions for that.
//!
//! Our functions are installed before those of the domains `mem` and `object`, and before the allocator of arenas. They
//! forward to the previous allocators and replace none, so they work with `PYTHONMALLOC`, debug hooks, `tracemalloc`
//! and any others, before or after ours. The domain `raw` is not hooked: it calls `malloc`.

use core::ffi::c_void;

mod api;
mod arena;
mod chain;
mod error;
mod functions;
mod hooks;

pub use error::AllocatorError;
pub use hooks::AllocatorHooks;

/// An address that an allocator returns, or null.
pub type BlockPointer = *mut c_void;

/// The allocator that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// `PyMem_Malloc` and related functions: buffers.
    Mem = 1,
    /// `PyObject_Malloc` and related functions: objects.
    Object = 2,
}

/// The function that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function of that name")]
pub enum AllocatorFunction {
    Malloc,
    Calloc,
    Realloc,
}

/// An observer of allocations, on the thread that allocates. The GIL is held, except in builds without one; an
/// exception may be set, and the garbage collector may be running: the observer may call nothing of the interpreter but
/// `original`, once.
///
/// Memory that `original` itself allocates and frees, from `malloc` or the system, belongs to the allocator: an
/// observer that also hooks those has to know that it is in an event ([`AllocatorObserver::is_in_event`]).
///
/// All methods are to be inlined into the function that the interpreter calls, whose caller is the code that allocates.
pub trait AllocatorObserver: 'static {
    /// Handles an allocation by `original`, which returns null if there is no memory.
    fn allocate(
        domain: Domain,
        function: AllocatorFunction,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer;

    /// Handles the free of a block by `original`. The block is not null.
    fn free(block: BlockPointer, original: impl FnOnce());

    /// Handles a reallocation by `original`, which frees `old`, if that is not null, and allocates another block, maybe
    /// at the same address; if there is no memory, it returns null, and `old` stays.
    fn reallocate(
        domain: Domain,
        old: BlockPointer,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer;

    /// Returns whether the thread is in one of the methods above, or is never recorded.
    fn is_in_event() -> bool;
}
