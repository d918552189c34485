//! The walk: from a thread state along its frames, innermost first.
//!
//! Only the thread itself changes its chain of frames, and a frame that has not returned keeps its code object alive.
//! So a thread may walk its own frames without the GIL. What is costly is the chase along `previous`; the code object
//! is only touched for frames that stand near the start of their code, to tell those that have not begun.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

mod c_frames;
mod interrupted;
mod place;
mod shims;

use crate::frame::{PythonFrame, Walked};
use crate::interpreter::Interpreter;
use crate::memory::{is_plausible, word};
use crate::thread_state::ThreadStatePointer;
use crate::version::Chain;

/// The owner of a frame that ends an activation: the eval loop itself. Higher ones are other frames that run no Python.
const SHIM: u8 = 3;
/// The size of a code unit in bytes.
const UNIT: u64 = 2;
/// Code pointers in frames carry up to two tag bits.
const TAG: u64 = 3;
/// So many frames that are not shown may come on top of those that are.
const MOST_HIDDEN: usize = 4096;

/// Where a walk begins: the innermost frame, and up to 3.12 the `_PyCFrame` of the eval loop that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Top {
    frame: u64,
    c_frame: u64,
    /// On 3.10, the end of the list of `CFrame`s.
    last_c_frame: u64,
}

impl Interpreter {
    /// Walks the Python frames of this thread, innermost first. The depth limit is the length of `frames`.
    ///
    /// Neither needs nor takes the GIL. Not for a signal handler that may have interrupted the interpreter itself:
    /// that is what [`Interpreter::walk_interrupted`] is for.
    #[inline]
    pub fn walk(&self, frames: &mut [PythonFrame]) -> Walked {
        match self.thread_state() {
            // SAFETY: the state is this thread's, so nothing changes its frames while we look.
            Ok(state) => unsafe { self.walk_from(self.top(state), frames) },
            Err(stop) => Walked::nothing(stop),
        }
    }

    /// As [`Interpreter::walk`], for the frames of another thread state.
    ///
    /// # Safety
    /// The state is alive, and its frames stay as they are during the call: the caller holds the GIL, or the thread
    /// is stopped.
    pub unsafe fn walk_thread(&self, state: ThreadStatePointer, frames: &mut [PythonFrame]) -> Walked {
        // SAFETY: passed on to the caller.
        unsafe { self.walk_from(self.top(state), frames) }
    }

    /// # Safety
    /// The state is alive, and its frames stay as they are.
    #[inline]
    unsafe fn top(&self, state: ThreadStatePointer) -> Top {
        let state = state.address();
        // SAFETY: the offsets are those of this version, the state is alive, and so are its `_PyCFrame`s, which are
        // on the stack of the thread, or in the state itself.
        unsafe {
            match self.layout.thread.chain {
                Chain::FrameObjects { frame, c_frame, last_c_frame, .. } => Top {
                    frame: word(state, frame),
                    c_frame: word(state, c_frame),
                    last_c_frame: state + last_c_frame as u64,
                },
                Chain::EntryFlags { c_frame, current_frame, .. }
                | Chain::ShimsBehindCFrame { c_frame, current_frame, .. } => {
                    let c_frame = word(state, c_frame);
                    let frame = if is_plausible(c_frame) { word(c_frame, current_frame) } else { c_frame };
                    Top { frame, c_frame, last_c_frame: 0 }
                }
                Chain::Shims { current_frame } => {
                    Top { frame: word(state, current_frame), c_frame: 0, last_c_frame: 0 }
                }
            }
        }
    }

    /// One loop per version, so that its offsets are constants there.
    ///
    /// # Safety
    /// `top` is the top of a chain of frames of this interpreter, which stays as it is.
    #[inline]
    unsafe fn walk_from(&self, top: Top, frames: &mut [PythonFrame]) -> Walked {
        // SAFETY: passed on to the caller.
        unsafe {
            match self.layout.minor {
                10 => c_frames::walk_frame_objects(top, frames),
                11 => c_frames::walk_entry_flags(top, frames),
                12 => shims::walk::<12>(top.frame, frames),
                13 => shims::walk::<13>(top.frame, frames),
                14 => shims::walk::<14>(top.frame, frames),
                _ => shims::walk::<15>(top.frame, frames),
            }
        }
    }
}
