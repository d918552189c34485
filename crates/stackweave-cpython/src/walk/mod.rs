//! The walk: from a thread state along its frames, innermost first.
//!
//! Only the thread itself changes its chain of frames, and a frame that has not returned keeps its code object alive.
//! So a thread may walk its own frames without the GIL. The cost is in following `previous`; code objects are only read
//! for frames near the start of their code, to find out whether they have begun.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

mod cached_frame;
mod cached_run;
pub(crate) mod code_position;
mod entry_flags;
mod frame_by_frame;
mod frame_chain;
mod frame_objects;
mod interrupted;
mod replay;
#[cfg(test)]
mod replay_tests;
mod shims;
mod source_frames;
pub(crate) mod stack_cache;
pub(crate) mod stack_caches;

use stackweave_core::SourceWalkResult;

use self::entry_flags::EntryFlags;
use self::frame_by_frame::PythonFrames;
use self::frame_objects::FrameObjects;
use self::shims::Shims;
use self::source_frames::SourceFrames;
pub(crate) use self::source_frames::{CodeIds, FrameBuffers};
use crate::frame::{PythonFrame, WalkResult};
use crate::interpreter::Interpreter;
use crate::memory::{is_plausible, word};
use crate::thread_state::ThreadStatePointer;
use crate::version::Chain;

/// The owner of a frame that ends an activation: the eval loop itself. Higher values are other frames that run no
/// Python.
pub const SHIM: u8 = 3;
/// The size of a code unit in bytes.
pub const UNIT: u64 = 2;
/// Code pointers in frames carry up to two tag bits.
pub const TAG: u64 = 3;
/// The largest number of frames in an activation.
const LONGEST_CHAIN: usize = 1 << 20;
/// The largest number of hidden frames that a walk accepts.
const MAX_HIDDEN: usize = 4096;

/// The start of a walk: the innermost frame, and up to 3.12 the `_PyCFrame` of the eval loop that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChainTop {
    frame: u64,
    c_frame: u64,
    /// On 3.10, the end of the list of `CFrame`s.
    last_c_frame: u64,
    /// Whether a signal may have come between any two stores of the interpreter.
    is_interrupted: bool,
}

/// Runs a walk with the chain of this version: one instance of the loop per version, so that its offsets are constants.
macro_rules! with_chain {
    ($interpreter:expr, $top:expr, |$chain:ident| $walk:expr) => {
        match $interpreter.layout.minor {
            10 => {
                let ChainTop { c_frame, last_c_frame, is_interrupted, .. } = $top;
                let $chain = FrameObjects { c_frame, last_c_frame, is_interrupted };
                $walk
            }
            11 => {
                let $chain = EntryFlags { c_frame: $top.c_frame };
                $walk
            }
            12 => {
                let $chain = Shims::<12>;
                $walk
            }
            13 => {
                let $chain = Shims::<13>;
                $walk
            }
            14 => {
                let $chain = Shims::<14>;
                $walk
            }
            _ => {
                let $chain = Shims::<15>;
                $walk
            }
        }
    };
}

/// The number of words that [`Interpreter::replay_source`] needs.
pub(crate) const MEMORY_WORDS: usize = stack_caches::WORDS;

impl Interpreter {
    /// Walks the Python frames of this thread, innermost first. The length of `frames` is the depth limit.
    ///
    /// Neither needs nor takes the GIL. Not for a signal handler that may have interrupted the interpreter: see
    /// [`Interpreter::walk_interrupted`].
    #[inline]
    pub fn walk(&self, frames: &mut [PythonFrame]) -> WalkResult {
        match self.thread_state() {
            // SAFETY: the state is this thread's, so nothing changes its frames meanwhile.
            Ok(state) => unsafe { self.walk_from(self.top(state), frames) },
            Err(stop) => WalkResult::empty(stop),
        }
    }

    /// Walks like [`Interpreter::walk`], for the frames of another thread state.
    ///
    /// # Safety
    /// The state is alive, and its frames do not change during the call: the caller holds the GIL, or the thread is
    /// stopped.
    pub unsafe fn walk_thread(&self, state: ThreadStatePointer, frames: &mut [PythonFrame]) -> WalkResult {
        // SAFETY: passed on to the caller.
        unsafe { self.walk_from(self.top(state), frames) }
    }

    /// # Safety
    /// The state is alive, and its frames do not change.
    #[inline]
    unsafe fn top(&self, state: ThreadStatePointer) -> ChainTop {
        let state = state.address();
        // SAFETY: the offsets are those of this version, the state is alive, and so are its `_PyCFrame`s, which are on
        // the stack of the thread, or in the state itself.
        unsafe {
            match self.layout.thread.chain {
                Chain::FrameObjects { frame, c_frame, last_c_frame, .. } => ChainTop {
                    frame: word(state, frame),
                    c_frame: word(state, c_frame),
                    last_c_frame: state + last_c_frame as u64,
                    is_interrupted: false,
                },
                Chain::EntryFlags { c_frame, current_frame, .. }
                | Chain::ShimsBehindCFrame { c_frame, current_frame, .. } => {
                    let c_frame = word(state, c_frame);
                    let frame = if is_plausible(c_frame) { word(c_frame, current_frame) } else { c_frame };
                    ChainTop { frame, c_frame, last_c_frame: 0, is_interrupted: false }
                }
                Chain::Shims { current_frame } => {
                    ChainTop { frame: word(state, current_frame), c_frame: 0, last_c_frame: 0, is_interrupted: false }
                }
            }
        }
    }

    /// Walks like [`Interpreter::walk`], with the ids of code objects.
    pub(crate) fn walk_source(&self, buffers: FrameBuffers<'_>, codes: &impl CodeIds) -> SourceWalkResult {
        match self.thread_state() {
            // SAFETY: the state is this thread's, so nothing changes its frames meanwhile.
            Ok(state) => unsafe { self.walk_source_from(self.top(state), buffers, codes) },
            Err(stop) => SourceWalkResult { stop, ..SourceWalkResult::default() },
        }
    }

    /// Walks like [`Interpreter::walk_source`], and reuses the last walk with this `memory`.
    ///
    /// # Safety
    /// All walks with this memory got their ids from these codes. Ids in it that were stored at the same number of
    /// deaths of code objects are still right.
    #[inline(never)]
    pub(crate) unsafe fn replay_source(
        &self,
        buffers: FrameBuffers<'_>,
        memory: &mut [u64],
        codes: &impl CodeIds,
        deaths: u64,
    ) -> SourceWalkResult {
        if memory.len() < MEMORY_WORDS {
            return self.walk_source(buffers, codes);
        }
        let state = match self.thread_state() {
            Ok(state) => state,
            Err(stop) => return SourceWalkResult { stop, ..SourceWalkResult::default() },
        };
        // SAFETY: the state is this thread's, so nothing changes its frames meanwhile.
        let top = unsafe { self.top(state) };
        // SAFETY: as above; the caller vouches for the ids.
        with_chain!(self, top, |chain| unsafe {
            stack_caches::walk(chain, top.frame, (memory, deaths), buffers, codes).unwrap_or_default()
        })
    }

    /// Walks like [`Interpreter::walk_source`] in a signal handler, as [`Interpreter::walk_interrupted`] does. Nothing
    /// is cached, because frames may be incomplete.
    pub(crate) fn walk_source_interrupted(&self, buffers: FrameBuffers<'_>, codes: &impl CodeIds) -> SourceWalkResult {
        match self.interrupted_top() {
            // SAFETY: the state is this thread's, so nothing changes its frames while the handler runs.
            Ok(top) => unsafe { self.walk_source_from(top, buffers, codes) },
            Err(stop) => SourceWalkResult { stop, ..SourceWalkResult::default() },
        }
    }

    /// Walks like [`Interpreter::walk_source`] for the frames of another thread state.
    ///
    /// # Safety
    /// As for [`Interpreter::walk_thread`].
    pub(crate) unsafe fn walk_source_thread(
        &self,
        state: ThreadStatePointer,
        buffers: FrameBuffers<'_>,
        codes: &impl CodeIds,
    ) -> SourceWalkResult {
        // SAFETY: passed on to the caller.
        unsafe { self.walk_source_from(self.top(state), buffers, codes) }
    }

    /// # Safety
    /// As for [`Interpreter::walk_from`].
    unsafe fn walk_source_from(
        &self,
        top: ChainTop,
        buffers: FrameBuffers<'_>,
        codes: &impl CodeIds,
    ) -> SourceWalkResult {
        let mut output = SourceFrames::new(buffers, codes);
        // SAFETY: passed on to the caller.
        let stop = with_chain!(self, top, |chain| unsafe { frame_by_frame::walk(chain, top.frame, &mut output) });
        SourceWalkResult { len: output.len, stop, ..SourceWalkResult::default() }
    }

    /// # Safety
    /// `top` is the top of a chain of frames of this interpreter, which does not change.
    #[inline]
    unsafe fn walk_from(&self, top: ChainTop, frames: &mut [PythonFrame]) -> WalkResult {
        let mut output = PythonFrames::new(frames);
        // SAFETY: passed on to the caller.
        let stop = with_chain!(self, top, |chain| unsafe { frame_by_frame::walk(chain, top.frame, &mut output) });
        WalkResult { len: output.len, stop }
    }
}
