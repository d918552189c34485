//! The words as ordinary thread-locals: in a program, and as the fallback of a library.

use core::cell::Cell;

use super::COUNT;

thread_local! {
    static WORDS: [Cell<usize>; COUNT] = const { [const { Cell::new(0) }; COUNT] };
}

#[cold]
#[inline(never)]
pub(super) fn get(index: usize) -> usize {
    WORDS.with(|words| words[index].get())
}

#[cold]
#[inline(never)]
pub(super) fn set(index: usize, word: usize) {
    WORDS.with(|words| words[index].set(word));
}

/// Returns the address of the calling thread's words.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
pub(super) fn address() -> usize {
    WORDS.with(|words| words.as_ptr().addr())
}
