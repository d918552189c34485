//! A few thread-local words, accessed without a call and without an allocation.
//!
//! Rust's own thread-locals cannot replace them in a library that is loaded later: the loader allocates those when
//! a thread first accesses one, which a signal handler must not. Words at a fixed distance from the thread pointer
//! need no such step, but the loader has only some 1,700 bytes for all libraries that are loaded later. A library
//! that refers to one word in this way has all of its thread-locals there, so the words are in a separate object:
//! see `static_tls.rs`.

#![allow(clippy::inline_always, reason = "two instructions in the hot path of every capture and event")]
#![allow(clippy::cast_possible_truncation, reason = "the platform with the object is 64-bit")]

mod dynamic;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
mod elf_object;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
mod named_object;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "portable.rs"]
mod platform;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "static_tls.rs"]
mod platform;

use core::fmt;

/// Number of words per thread. All libraries of a process share the loader's small reserve: Stackweave uses 64
/// bytes.
const COUNT: usize = 8;
const _: () = assert!(COUNT * size_of::<usize>() <= 64);

/// The state of a thread's unwinder.
pub const UNWIND_STATE: ThreadWord<0> = ThreadWord;
/// The lane of the recorder that the thread used last.
pub const RECORDING_LANE: ThreadWord<1> = ThreadWord;
/// The lanes of a thread.
pub const RECORDING_LANES: ThreadWord<2> = ThreadWord;
/// Number of reasons why a thread must not wait for the writer of a recording.
pub const RECORDING_NEVER_BLOCK: ThreadWord<3> = ThreadWord;
/// The memory recorder's state of a thread.
pub const MEMORY_BLOCK: ThreadWord<4> = ThreadWord;
/// The trace recorder's state of a thread.
pub const TRACE_BLOCK: ThreadWord<5> = ThreadWord;
/// The lowest address of the part of a thread's stack that calls may use.
pub const STACK_FLOOR: ThreadWord<6> = ThreadWord;
/// The size of the part of a thread's stack that calls may use.
pub const STACK_LENGTH: ThreadWord<7> = ThreadWord;

/// A thread-local word, 0 at first. It has no destructor: it can be used until the thread's very end.
#[derive(Clone, Copy, Debug)]
pub struct ThreadWord<const INDEX: usize>;

impl<const INDEX: usize> ThreadWord<INDEX> {
    const IN_RANGE: () = assert!(INDEX < COUNT);

    /// Returns the calling thread's word. Async-signal-safe where [`thread_words`] is `Ok`.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> usize {
        const { Self::IN_RANGE };
        platform::get::<INDEX>()
    }

    /// Sets the calling thread's word. Async-signal-safe where [`thread_words`] is `Ok`.
    #[inline(always)]
    pub fn set(self, word: usize) {
        const { Self::IN_RANGE };
        platform::set::<INDEX>(word);
    }
}

/// The storage of the words of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadWords {
    /// In the thread-local memory of the program itself, which includes this crate.
    Program,
    /// In the loader's reserve for libraries that are loaded later, with this size in bytes.
    Reserve(usize),
}

/// The words of threads cannot be used by signal handlers: the loader has no memory left for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoThreadWords(Box<str>);

impl fmt::Display for NoThreadWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "no static thread-local memory for stackweave's {} bytes: {}; load stackweave before other libraries, or start \
             the program with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096",
            COUNT * size_of::<usize>(),
            self.0
        )
    }
}

impl std::error::Error for NoThreadWords {}

/// Returns where the words of threads are stored.
///
/// # Errors
/// [`NoThreadWords`] if they are in ordinary thread-local memory, which may be allocated at a thread's first
/// access: captures in signal handlers are not safe then.
pub fn thread_words() -> Result<ThreadWords, NoThreadWords> {
    platform::thread_words()
}
