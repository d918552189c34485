//! Threads that must not wait for the writer.

use std::marker::PhantomData;
use std::sync::OnceLock;

use super::thread_words;

/// While the calling thread has one, its events never wait for room: where there is none, they take memory beyond
/// [`Options::memory`](super::Options::memory). For a thread that holds what the writer may need: the loader's lock, inside of
/// `dlopen`.
///
/// Where events are dropped and not waited for ([`WhenFull::Drop`](super::WhenFull)), nothing changes.
#[derive(Debug)]
pub struct Unwaiting {
    is_of_its_thread: PhantomData<*const ()>,
}

impl Unwaiting {
    /// From now on. They nest. Async-signal-safe.
    pub fn begin() -> Self {
        thread_words::UNWAITING.set(thread_words::UNWAITING.get() + 1);
        Self { is_of_its_thread: PhantomData }
    }
}

impl Drop for Unwaiting {
    fn drop(&mut self) {
        thread_words::UNWAITING.set(thread_words::UNWAITING.get() - 1);
    }
}

static HOLDS: OnceLock<fn() -> bool> = OnceLock::new();

/// Lets a thread say, when it finds no room, whether it holds what the writer may need: it does not wait then, as with an
/// [`Unwaiting`]. For all recordings of the process; the first one that is given stays.
pub fn never_wait_while(holds: fn() -> bool) {
    let _ = HOLDS.set(holds);
}

/// Whether the calling thread must not wait.
pub(super) fn is_unwaiting() -> bool {
    thread_words::UNWAITING.get() > 0 || HOLDS.get().is_some_and(|holds| holds())
}
