//! Python's own allocators, as the interpreter lets others stand before them: this is the contract.
//!
//! Functions of ours are put before those of the domains `mem` and `object`, and before the one that gets arenas. They forward
//! to what was there and replace nothing of it, so they do beside `PYTHONMALLOC`, debug hooks, `tracemalloc` and whoever else
//! stands there, before or after them. The domain `raw` is left alone: it comes to `malloc`.

mod api;
mod arena;
mod chain;
mod error;
mod functions;
mod hooks;

pub use error::AllocatorError;
pub use hooks::AllocatorHooks;

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
/// garbage collector may be running: nothing of the interpreter's may be called.
///
/// All but [`AllocatorObserver::enter`] are called between an `enter` that said yes and its `leave`.
pub trait AllocatorObserver: 'static {
    /// An allocator is about to be called. Says whether to tell of it; if it does, `leave` follows, and the observer knows
    /// until then that what is taken and given back meanwhile is the allocator's own.
    fn enter() -> bool;

    /// The allocator has returned, and all is told.
    fn leave();

    /// A block was taken.
    fn allocated(domain: Domain, function: Function, address: u64, size: u64);

    /// A block will be given back now, or moved, which [`AllocatorObserver::allocated`] follows.
    fn about_to_free(address: u64);

    /// The block told of last was not moved: there is no room, and it stays as it is.
    fn kept(address: u64);

    /// There is no room for a block.
    fn failed(domain: Domain, function: Function, size: u64);
}
