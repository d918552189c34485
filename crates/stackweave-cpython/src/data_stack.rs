//! The memory that the frames of a thread lie in, from 3.11 on.
//!
//! It is a list of chunks. Where the newest one has no room for a frame, the interpreter takes a slower path, which also
//! decides how many levels of recursion the call of a class takes. So that a program whose callers are hidden gets as deep
//! as in a plain run, its frames begin in a chunk of their own.

use crate::interpreter::Interpreter;
use crate::memory::{is_plausible, store, word};

/// The chunks of a thread, set aside until [`DataStack::put_back`].
#[derive(Debug)]
#[must_use]
pub(crate) struct DataStack {
    /// Where the thread state has its fields.
    fields: u64,
    /// The newest chunk, where it is free, and its end.
    kept: [u64; 3],
}

const OFFSETS: [usize; 3] = [0, 8, 16];
/// In a chunk: its size in bytes.
const SIZE: usize = 8;

impl DataStack {
    /// Has the thread begin a new list with its next frame, as new threads do. None, and nothing is changed, where there is
    /// no such list, or it is not as expected.
    ///
    /// # Safety
    /// The state is the calling thread's, which holds the GIL. No frame that lies there returns before
    /// [`DataStack::put_back`].
    pub(crate) unsafe fn set_aside(interpreter: &Interpreter, state: u64) -> Option<Self> {
        let fields = state + interpreter.layout.thread.data_stack? as u64;
        // SAFETY: the caller has said whose state it is. A chunk begins with three words.
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

    /// Makes the chunks those of the thread again. The one that was begun meanwhile is not freed.
    ///
    /// # Safety
    /// The same thread holds the GIL, and all frames since have returned.
    pub(crate) unsafe fn put_back(self) {
        for (offset, value) in OFFSETS.into_iter().zip(self.kept) {
            // SAFETY: the caller has said so; the state has these fields.
            unsafe { store(self.fields, offset, value) };
        }
    }
}
