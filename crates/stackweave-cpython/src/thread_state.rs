//! Finds the Python thread state of this thread, without the GIL.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe. (If the interpreter keeps the pointer in thread-local
//! storage and was itself loaded by `dlopen`, the loader may allocate that storage at a thread's first call.)

use stackweave_core::SourceStop;

use crate::interpreter::Interpreter;
use crate::memory::{copy_guarded, is_plausible};
use crate::version::VersionLayout;

/// The address of a `PyThreadState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ThreadStatePointer(u64);

impl ThreadStatePointer {
    /// Creates a pointer to the thread state at that address.
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// Returns the address.
    pub const fn address(self) -> u64 {
        self.0
    }
}

impl Interpreter {
    /// Returns this thread's state, or why there is none that may be read.
    #[inline]
    pub fn thread_state(&self) -> Result<ThreadStatePointer, SourceStop> {
        // SAFETY: may be called at any time.
        if unsafe { (self.functions.is_initialized)() } == 0 {
            return self.state_at_shutdown();
        }
        // SAFETY: may be called at any time, from any thread.
        let own = unsafe { (self.functions.this_thread_state)() } as u64;
        if self.layout.thread.follows_swaps {
            return if own == 0 { Err(SourceStop::NoThreadState) } else { Ok(ThreadStatePointer(own)) };
        }
        let holder = self.holder();
        if holder == own || holder == 0 || !self.has_sub_interpreters() {
            return if own == 0 { Err(SourceStop::NoThreadState) } else { Ok(ThreadStatePointer(own)) };
        }
        self.state_among_interpreters(own, holder)
    }

    /// Returns whether this thread holds the GIL.
    pub(crate) fn holds_gil(&self) -> bool {
        let holder = self.holder();
        // SAFETY: may be called at any time, from any thread.
        let own = unsafe { (self.functions.this_thread_state)() } as u64;
        holder != 0 && (own == holder || is_state_of_this_thread(self.layout, holder))
    }

    fn holder(&self) -> u64 {
        // SAFETY: may be called at any time, from any thread; only the address is used.
        unsafe { (self.functions.holder_state)() as u64 }
    }

    /// Returns the state of the thread that shuts the interpreter down: it holds the GIL and runs Python to the end.
    /// The state of any other thread may be freed at any moment.
    #[cold]
    fn state_at_shutdown(&self) -> Result<ThreadStatePointer, SourceStop> {
        // SAFETY: may be called at any time.
        if unsafe { (self.functions.is_finalizing)() } == 0 {
            return Err(SourceStop::NotInitialized);
        }
        // SAFETY: as above.
        let own = unsafe { (self.functions.this_thread_state)() } as u64;
        if own != 0 && own == self.holder() { Ok(ThreadStatePointer(own)) } else { Err(SourceStop::Finalizing) }
    }

    /// Returns whether there are sub-interpreters: new ones are put before older ones, the main one is the last.
    fn has_sub_interpreters(&self) -> bool {
        let (newest, main) = self.newest_and_main();
        newest != main
    }

    /// Returns the addresses of the newest and of the main interpreter.
    pub(crate) fn newest_and_main(&self) -> (u64, u64) {
        // SAFETY: both read one word of the runtime; the addresses are not dereferenced.
        unsafe { ((self.functions.newest_interpreter)() as u64, (self.functions.main_interpreter)() as u64) }
    }

    /// Returns the state that this thread uses. Up to 3.11, the storage of a thread that entered a sub-interpreter
    /// still has its first state; the state that it uses is that of the GIL's holder, if the holder is this thread.
    #[cold]
    fn state_among_interpreters(&self, own: u64, holder: u64) -> Result<ThreadStatePointer, SourceStop> {
        if is_state_of_this_thread(self.layout, holder) {
            return Ok(ThreadStatePointer(holder));
        }
        if own == 0 { Err(SourceStop::NoThreadState) } else { Ok(ThreadStatePointer(own)) }
    }
}

/// Returns whether a state belongs to this thread. Another thread's state may be freed meanwhile, so the kernel copies
/// the field.
pub(crate) fn is_state_of_this_thread(layout: &VersionLayout, state: u64) -> bool {
    let mut thread = [0];
    let field = state.wrapping_add(layout.thread.thread_id as u64);
    // SAFETY: `pthread_self` has no conditions.
    let this_thread = unsafe { libc::pthread_self() };
    is_plausible(state) && copy_guarded(field, &mut thread) && thread[0] == this_thread
}
