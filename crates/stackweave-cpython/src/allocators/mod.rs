//! Python's own allocators, as the interpreter lets others stand before them: this is the contract.
//!
//! Functions of ours are put before those of the domains `mem` and `object`, and before the one that gets arenas. They forward
//! to what was there and replace nothing of it, so they do beside `PYTHONMALLOC`, debug hooks, `tracemalloc` and whoever else
//! stands there, before or after them. The domain `raw` is left alone: it comes to `malloc`.

use core::ffi::c_void;

mod api;
mod arena;
mod chain;
mod error;
mod functions;
mod hooks;

pub use error::AllocatorError;
pub use hooks::AllocatorHooks;

/// An address that an allocator gives, or null.
pub type Pointer = *mut c_void;

/// Which of Python's allocators was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// `PyMem_Malloc` and its kin: buffers.
    Mem = 1,
    /// `PyObject_Malloc` and its kin: objects.
    Object = 2,
}

/// What it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the function that it is called")]
pub enum Function {
    Malloc,
    Calloc,
    Realloc,
}

/// Who is told, on the thread that asks. The GIL is held, but for builds that have none; an exception may be set, and the
/// garbage collector may be running: nothing of the interpreter's may be called but `original`, once.
///
/// What `original` takes and gives back itself, from `malloc` or the system, is the allocator's own: an observer that hears of
/// that, too, has to know that it is inside.
///
/// All of it is to be inlined into the function that the interpreter calls: the caller of that one is who asks.
pub trait AllocatorObserver: 'static {
    /// A block is asked for, which `original` takes; null if there is no room.
    fn take(domain: Domain, function: Function, size: usize, original: impl FnOnce() -> Pointer) -> Pointer;

    /// A block is given back by `original`. Not null.
    fn give_back(block: Pointer, original: impl FnOnce());

    /// A block, or null, is given back by `original`, and another one is taken, maybe at the same place; null if there is no
    /// room: then the old one stays.
    fn exchange(domain: Domain, old: Pointer, size: usize, original: impl FnOnce() -> Pointer) -> Pointer;

    /// Whether the thread is in the middle of one of the above, or is one that nothing is told of.
    fn is_inside() -> bool;
}
