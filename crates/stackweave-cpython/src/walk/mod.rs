//! The walk: from a thread state along its frames, innermost first.
//!
//! Only the thread itself changes its chain of frames, and a frame that has not returned keeps its code object alive.
//! So a thread may walk its own frames without the GIL. What is costly is the chase along `previous`; the code object
//! is only touched for frames that stand near the start of their code, to tell those that have not begun.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

mod entry;
mod entry_flags;
mod form;
mod frame_objects;
mod interrupted;
pub(crate) mod place;
mod plain;
pub(crate) mod record;
mod replay;
#[cfg(test)]
mod replay_tests;
mod run;
mod shims;
mod source_frames;

use stackweave_core::SourceWalked;

use self::entry_flags::EntryFlags;
use self::frame_objects::FrameObjects;
use self::plain::PythonFrames;
use self::record::{CAPACITY, Record};
use self::shims::Shims;
use self::source_frames::SourceFrames;
pub(crate) use self::source_frames::{CodeIds, Room};
use crate::frame::{PythonFrame, Walked};
use crate::interpreter::Interpreter;
use crate::memory::{is_plausible, word};
use crate::thread_state::ThreadStatePointer;
use crate::version::Chain;

/// The owner of a frame that ends an activation: the eval loop itself. Higher ones are other frames that run no Python.
pub const SHIM: u8 = 3;
/// The size of a code unit in bytes.
pub const UNIT: u64 = 2;
/// Code pointers in frames carry up to two tag bits.
pub const TAG: u64 = 3;
/// No activation has more frames.
const LONGEST_CHAIN: usize = 1 << 20;
/// So many frames that are not shown may come on top of those that are.
const MOST_HIDDEN: usize = 4096;

/// Where a walk begins: the innermost frame, and up to 3.12 the `_PyCFrame` of the eval loop that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Top {
    frame: u64,
    c_frame: u64,
    /// On 3.10, the end of the list of `CFrame`s.
    last_c_frame: u64,
    /// Whether a signal may have come between any two stores of the interpreter.
    is_interrupted: bool,
}

/// One loop per version, so that its offsets are constants there.
macro_rules! with_form {
    ($interpreter:expr, $top:expr, |$form:ident| $walk:expr) => {
        match $interpreter.layout.minor {
            10 => {
                let Top { c_frame, last_c_frame, is_interrupted, .. } = $top;
                let $form = FrameObjects { c_frame, last_c_frame, is_interrupted };
                $walk
            }
            11 => {
                let $form = EntryFlags { c_frame: $top.c_frame };
                $walk
            }
            12 => {
                let $form = Shims::<12>;
                $walk
            }
            13 => {
                let $form = Shims::<13>;
                $walk
            }
            14 => {
                let $form = Shims::<14>;
                $walk
            }
            _ => {
                let $form = Shims::<15>;
                $walk
            }
        }
    };
}

/// How much memory [`Interpreter::replay_source`] needs, in words.
pub(crate) const MEMORY_WORDS: usize = Record::<CAPACITY>::WORDS;

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
                    is_interrupted: false,
                },
                Chain::EntryFlags { c_frame, current_frame, .. }
                | Chain::ShimsBehindCFrame { c_frame, current_frame, .. } => {
                    let c_frame = word(state, c_frame);
                    let frame = if is_plausible(c_frame) { word(c_frame, current_frame) } else { c_frame };
                    Top { frame, c_frame, last_c_frame: 0, is_interrupted: false }
                }
                Chain::Shims { current_frame } => {
                    Top { frame: word(state, current_frame), c_frame: 0, last_c_frame: 0, is_interrupted: false }
                }
            }
        }
    }

    /// As [`Interpreter::walk`], with the ids of code objects.
    pub(crate) fn walk_source(&self, room: Room<'_>, codes: &impl CodeIds) -> SourceWalked {
        match self.thread_state() {
            // SAFETY: the state is this thread's, so nothing changes its frames while we look.
            Ok(state) => unsafe { self.walk_source_from(self.top(state), room, codes) },
            Err(stop) => SourceWalked { stop, ..SourceWalked::default() },
        }
    }

    /// The same, along what the last walk left in `memory`.
    ///
    /// # Safety
    /// All walks with this memory got their ids from these codes. Of what was left there when as many code objects had
    /// died as now, the ids are still right.
    #[inline(never)]
    pub(crate) unsafe fn replay_source(
        &self,
        room: Room<'_>,
        memory: &mut [u64],
        codes: &impl CodeIds,
        deaths: u64,
    ) -> SourceWalked {
        let Some(record) = Record::<CAPACITY>::open(memory, deaths) else { return self.walk_source(room, codes) };
        let state = match self.thread_state() {
            Ok(state) => state,
            Err(stop) => return SourceWalked { stop, ..SourceWalked::default() },
        };
        // SAFETY: the state is this thread's, so nothing changes its frames while we look.
        let top = unsafe { self.top(state) };
        // SAFETY: as above; the caller vouches for the ids.
        with_form!(self, top, |form| unsafe { replay::walk(form, top.frame, record, room, codes) })
    }

    /// The same in a signal handler, as [`Interpreter::walk_interrupted`]. Nothing is left behind: frames may be half
    /// made.
    pub(crate) fn walk_source_interrupted(&self, room: Room<'_>, codes: &impl CodeIds) -> SourceWalked {
        match self.interrupted_top() {
            // SAFETY: the state is this thread's, so nothing changes its frames while the handler runs.
            Ok(top) => unsafe { self.walk_source_from(top, room, codes) },
            Err(stop) => SourceWalked { stop, ..SourceWalked::default() },
        }
    }

    /// The same for the frames of another thread state.
    ///
    /// # Safety
    /// As for [`Interpreter::walk_thread`].
    pub(crate) unsafe fn walk_source_thread(
        &self,
        state: ThreadStatePointer,
        room: Room<'_>,
        codes: &impl CodeIds,
    ) -> SourceWalked {
        // SAFETY: passed on to the caller.
        unsafe { self.walk_source_from(self.top(state), room, codes) }
    }

    /// # Safety
    /// As for [`Interpreter::walk_from`].
    unsafe fn walk_source_from(&self, top: Top, room: Room<'_>, codes: &impl CodeIds) -> SourceWalked {
        let mut output = SourceFrames::new(room, codes);
        // SAFETY: passed on to the caller.
        let stop = with_form!(self, top, |form| unsafe { plain::walk(form, top.frame, &mut output) });
        SourceWalked { len: output.len, stop, ..SourceWalked::default() }
    }

    /// # Safety
    /// `top` is the top of a chain of frames of this interpreter, which stays as it is.
    #[inline]
    unsafe fn walk_from(&self, top: Top, frames: &mut [PythonFrame]) -> Walked {
        let mut output = PythonFrames::new(frames);
        // SAFETY: passed on to the caller.
        let stop = with_form!(self, top, |form| unsafe { plain::walk(form, top.frame, &mut output) });
        Walked { len: output.len, stop }
    }
}
