//! The walk from a signal handler, which may have interrupted the interpreter between two stores.
//!
//! Up to 3.12 the interpreter links a new `_PyCFrame` before it has initialised it: in between, its words are what the
//! stack held before. So the kernel copies these words, and they are used only if everything fits: the list must lead
//! up the stack and end in the thread state, the first frame must look like one, and the frames of each activation must
//! lead to the frame of the next `_PyCFrame`. If that fails, the next activation is checked in the same way. 3.13 and
//! later store the pointer to a new frame last.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::SourceStop;

use super::{ChainTop, LONGEST_CHAIN, SHIM, TAG, UNIT};
use crate::frame::{PythonFrame, WalkResult};
use crate::interpreter::Interpreter;
use crate::memory::{copy_guarded, is_plausible, load, word};
use crate::thread_state::ThreadStatePointer;
use crate::version::Chain;

/// The words of a `_PyCFrame`.
const C_FRAME_WORDS: usize = 3;
/// The words of a frame that are read: all its fixed fields.
const FRAME_WORDS: usize = 9;
/// The words of a code object: reference count, type, size.
const CODE_WORDS: usize = 3;
const OBJECT_TYPE: usize = 1;
const OBJECT_SIZE: usize = 2;

impl Interpreter {
    /// Walks like [`Interpreter::walk`], in a signal handler that may have interrupted this thread anywhere. The frames
    /// that it interrupted may be missing from the result: at most the innermost activation, and rarely everything,
    /// with [`SourceStop::Interrupted`].
    pub fn walk_interrupted(&self, frames: &mut [PythonFrame]) -> WalkResult {
        match self.interrupted_top() {
            // SAFETY: the state is this thread's, so nothing changes its frames while the handler runs.
            Ok(top) => unsafe { self.walk_from(top, frames) },
            Err(stop) => WalkResult::empty(stop),
        }
    }

    /// Returns where a walk from a signal handler begins.
    pub(super) fn interrupted_top(&self) -> Result<ChainTop, SourceStop> {
        // SAFETY: the state is this thread's, so nothing changes its frames while the handler runs.
        self.thread_state()
            .and_then(|state| unsafe { self.complete_top(state, ChainTop { is_interrupted: true, ..self.top(state) }) })
    }

    /// Returns the top; if its activation is incomplete, that of the next activation.
    ///
    /// # Safety
    /// `top` is that of this thread.
    unsafe fn complete_top(&self, state: ThreadStatePointer, top: ChainTop) -> Result<ChainTop, SourceStop> {
        let list = match self.layout.thread.chain {
            Chain::FrameObjects { previous_c_frame, .. } => {
                let list = CFrameList { state, current_frame: 0, previous_c_frame };
                let is_initialised = list.is_last(top.c_frame) || list.after(top.c_frame).is_some();
                return Ok(ChainTop { c_frame: if is_initialised { top.c_frame } else { 0 }, ..top });
            }
            Chain::EntryFlags { current_frame, previous_c_frame, .. }
            | Chain::ShimsBehindCFrame { current_frame, previous_c_frame, .. } => {
                CFrameList { state, current_frame, previous_c_frame }
            }
            Chain::Shims { .. } => return Ok(top),
        };
        if list.is_last(top.c_frame) {
            return Ok(top);
        }
        let (frame, c_frame) = list.after(top.c_frame).ok_or(SourceStop::Interrupted)?;
        let outer = ChainTop { frame, c_frame, ..top };
        // SAFETY: the first frame is checked before it is followed.
        if self.is_frame(top.frame) && unsafe { self.is_complete(list, top) } {
            Ok(top)
        // SAFETY: as above.
        } else if self.is_frame(frame) && unsafe { self.is_complete(list, outer) } {
            Ok(outer)
        } else {
            Err(SourceStop::Interrupted)
        }
    }

    /// Returns whether the frames of each activation lead to those of the next.
    ///
    /// # Safety
    /// `top` has a frame of this interpreter, alive or recently freed.
    unsafe fn is_complete(&self, list: CFrameList, top: ChainTop) -> bool {
        let ChainTop { mut frame, mut c_frame, .. } = top;
        for activation in 0.. {
            if frame == 0 {
                break;
            }
            let after = if activation < 2 {
                list.after(c_frame)
            } else {
                // SAFETY: this far out, the list was initialised long ago.
                unsafe { list.after_initialised(c_frame) }
            };
            let Some((outer, next)) = after else { return false };
            // SAFETY: the frames of an activation are alive if its first is.
            if !unsafe { self.leads_to(frame, outer) } {
                return false;
            }
            (frame, c_frame) = (outer, next);
        }
        true
    }

    /// Returns whether there is a frame at that address, as far as can be checked without dereferencing it.
    fn is_frame(&self, frame: u64) -> bool {
        let mut fields = [0; FRAME_WORDS];
        if !is_plausible(frame) || !copy_guarded(frame, &mut fields) {
            return false;
        }
        let code = fields[self.layout.frame.code / size_of::<u64>()] & !TAG;
        let instruction = fields[self.layout.frame.instruction / size_of::<u64>()];
        let mut object = [0; CODE_WORDS];
        if !is_plausible(code) || !copy_guarded(code, &mut object) || object[OBJECT_TYPE] != self.code_type {
            return false;
        }
        // One unit before the first means that the frame has not begun.
        let units = code.wrapping_add(self.layout.code.units as u64).wrapping_sub(UNIT);
        instruction.wrapping_sub(units) <= object[OBJECT_SIZE].wrapping_mul(UNIT)
    }

    /// Returns whether the frames of this activation end at `outer`.
    ///
    /// # Safety
    /// `frame` is one of this interpreter's frames, alive or recently freed.
    unsafe fn leads_to(&self, mut frame: u64, outer: u64) -> bool {
        for _ in 0..LONGEST_CHAIN {
            if !is_plausible(frame) {
                return false;
            }
            // SAFETY: frames are in the thread's stacks, or in generators that its frames hold.
            let (previous, ends) = unsafe {
                let ends = match self.layout.thread.chain {
                    Chain::EntryFlags { is_entry, .. } => load::<u8>(frame, is_entry) != 0,
                    _ => load::<u8>(frame, self.layout.frame.owner) == SHIM,
                };
                (word(frame, self.layout.frame.previous), ends)
            };
            if ends {
                return previous == outer;
            }
            frame = previous;
        }
        false
    }
}

/// The list of `_PyCFrame`s, from the innermost to the last, which is in the thread state and belongs to no loop.
#[derive(Clone, Copy)]
struct CFrameList {
    state: ThreadStatePointer,
    current_frame: usize,
    previous_c_frame: usize,
}

impl CFrameList {
    fn is_last(self, c_frame: u64) -> bool {
        const LARGEST_STATE: u64 = 1024;
        c_frame.wrapping_sub(self.state.address()) < LARGEST_STATE
    }

    /// Returns the frame and the address of the next in the list, which must be further up the stack or the last.
    fn after(self, c_frame: u64) -> Option<(u64, u64)> {
        let mut words = [0; C_FRAME_WORDS];
        if self.is_last(c_frame) || !copy_guarded(c_frame, &mut words) {
            return None;
        }
        let next = words[self.previous_c_frame / size_of::<u64>()];
        let is_readable = self.may_follow(c_frame, next) && copy_guarded(next, &mut words);
        is_readable.then(|| (words[self.current_frame / size_of::<u64>()], next))
    }

    /// Does the same as `after`, without the kernel's help.
    ///
    /// # Safety
    /// The list is initialised from there on.
    unsafe fn after_initialised(self, c_frame: u64) -> Option<(u64, u64)> {
        if self.is_last(c_frame) {
            return None;
        }
        // SAFETY: the caller vouches for both.
        unsafe {
            let next = word(c_frame, self.previous_c_frame);
            self.may_follow(c_frame, next).then(|| (word(next, self.current_frame), next))
        }
    }

    fn may_follow(self, c_frame: u64, next: u64) -> bool {
        const LARGEST_STACK: u64 = 1 << 30;
        let is_further = next > c_frame && next - c_frame < LARGEST_STACK;
        is_plausible(next) && (is_further || self.is_last(next))
    }
}
