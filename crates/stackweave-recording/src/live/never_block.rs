//! Threads that must never block on the writer.

use std::marker::PhantomData;
use std::sync::OnceLock;

use super::thread_words;

/// While the calling thread has this guard, its events never wait for a buffer: if none is free, memory beyond
/// [`Options::memory`](super::RecorderOptions::memory) is allocated. It is for threads that hold a lock that the writer may need, such as the
/// loader's during `dlopen`.
///
/// It has no effect where events are dropped instead ([`WhenFull::Drop`](super::WhenFull)).
#[derive(Debug)]
pub struct NeverBlock {
    is_bound_to_its_thread: PhantomData<*const ()>,
}

impl NeverBlock {
    /// Begins a guard. Guards nest. Async-signal-safe.
    pub fn begin() -> Self {
        thread_words::NEVER_BLOCK.set(thread_words::NEVER_BLOCK.get() + 1);
        Self { is_bound_to_its_thread: PhantomData }
    }
}

impl Drop for NeverBlock {
    fn drop(&mut self) {
        thread_words::NEVER_BLOCK.set(thread_words::NEVER_BLOCK.get() - 1);
    }
}

static HOLDS: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the function by which a thread without a free buffer checks whether it holds a lock that the writer may need: if so, it
/// does not wait, as with a [`NeverBlock`]. It applies to all recordings of the process; only the first call has an effect.
pub fn never_block_while(holds: fn() -> bool) {
    let _ = HOLDS.set(holds);
}

/// Returns whether the calling thread must not wait.
pub(super) fn must_not_block() -> bool {
    thread_words::NEVER_BLOCK.get() > 0 || HOLDS.get().is_some_and(|holds| holds())
}
