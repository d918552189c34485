//! The memory of a thread's frames, from 3.11 on.
//!
//! It is a list of chunks. If the newest chunk has no room for a frame, the interpreter takes a slower path, which also
//! affects how many levels of recursion the call of a class uses. So that a program whose callers are hidden can
//! recurse as deep as in a plain run, its frames begin in a new chunk.

use crate::interpreter::Interpreter;
use crate::memory::{is_plausible, store, word};

/// The chunks of a thread, set aside until [`DataStack::restore`].
#[derive(Debug)]
#[must_use]
pub(crate) struct DataStack {
    /// The address of the fields in the thread state.
    fields: u64,
    /// The newest chunk, its free address, and its end.
    kept: [u64; 3],
}

const OFFSETS: [usize; 3] = [0, 8, 16];
/// The offset of a chunk's size in bytes.
const SIZE: usize = 8;

impl DataStack {
    /// Makes the thread begin a new list with its next frame, as new threads do. Returns `None`, and changes nothing,
    /// if there is no such list, or it is not as expected.
    ///
    /// # Safety
    /// The state is the calling thread's, which holds the GIL. No frame in these chunks returns before
    /// [`DataStack::restore`].
    pub(crate) unsafe fn set_aside(interpreter: &Interpreter, state: u64) -> Option<Self> {
        let fields = state + interpreter.layout.thread.data_stack? as u64;
        // SAFETY: the caller vouches for the state. A chunk begins with three words.
        unsafe {
            let kept @ [chunk, free, end] = OFFSETS.map(|offset| word(fields, offset));
            if !is_plausible(chunk)
                || !(chunk..=end).contains(&free)
                || chunk.checked_add(word(chunk, SIZE)) != Some(end)
            {
                return None;
            }
            for offset in OFFSETS {
                store(fields, offset, 0_u64);
            }
            Some(Self { fields, kept })
        }
    }

    /// Restores the chunks of the thread. The new chunk is not freed.
    ///
    /// # Safety
    /// The same thread holds the GIL, and all frames since have returned.
    pub(crate) unsafe fn restore(self) {
        for (offset, value) in OFFSETS.into_iter().zip(self.kept) {
            // SAFETY: passed on to the caller; the state has these fields.
            unsafe { store(self.fields, offset, value) };
        }
    }
}
