//! The walk from a signal handler, which may have interrupted the interpreter between two stores.
//!
//! Up to 3.12 the interpreter publishes a new `_PyCFrame` before it has filled it in: in between, its words are whatever
//! the stack held before. So those words are read by the kernel and believed only as far as they fit: the list must
//! lead up the stack, the first frame must look like one, and the frames from there must lead to the one that the next
//! `_PyCFrame` has; else the walk begins at that one. 3.13 and later store the pointer to a new frame last.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::{SHIM, TAG, Top, UNIT};
use crate::frame::{PythonFrame, WalkStop, Walked};
use crate::interpreter::Interpreter;
use crate::memory::{copy_guarded, is_plausible, load, word};
use crate::thread_state::ThreadStatePointer;
use crate::version::Chain;

/// The words of a `_PyCFrame`.
const C_FRAME_WORDS: usize = 3;
/// The words of a frame that are looked at: all its fixed fields.
const FRAME_WORDS: usize = 9;
/// The words of a code object: reference count, type, size.
const CODE_WORDS: usize = 3;
const OBJECT_TYPE: usize = 1;
const OBJECT_SIZE: usize = 2;
/// No activation has more frames.
const LONGEST_CHAIN: usize = 1 << 20;

impl Interpreter {
    /// As [`Interpreter::walk`], in a signal handler that may have interrupted this thread anywhere. What it
    /// interrupted halfway may be missing from the result: at most the innermost activation, and rarely all, with
    /// [`WalkStop::Interrupted`].
    pub fn walk_interrupted(&self, frames: &mut [PythonFrame]) -> Walked {
        // SAFETY: the state is this thread's, so nothing changes its frames while the handler runs.
        let top = self.thread_state().and_then(|state| unsafe { self.settled(state, self.top(state)) });
        match top {
            // SAFETY: as above.
            Ok(top) => unsafe { self.walk_from(top, frames) },
            Err(stop) => Walked::nothing(stop),
        }
    }

    /// The top, or that of the next activation where the innermost is not yet whole.
    ///
    /// # Safety
    /// `top` is that of this thread.
    unsafe fn settled(&self, state: ThreadStatePointer, top: Top) -> Result<Top, WalkStop> {
        let (current_frame, previous_c_frame) = match self.layout.thread.chain {
            Chain::FrameObjects { previous_c_frame, .. } => (None, previous_c_frame),
            Chain::EntryFlags { current_frame, previous_c_frame, .. }
            | Chain::ShimsBehindCFrame { current_frame, previous_c_frame, .. } => {
                (Some(current_frame), previous_c_frame)
            }
            Chain::Shims { .. } => return Ok(top),
        };
        if !is_plausible(top.c_frame) {
            return Err(WalkStop::Interrupted);
        }
        if is_within(state, top.c_frame) {
            return Ok(top);
        }
        // SAFETY: whether filled in or not, the published `_PyCFrame` is on the stack.
        let c_frame = unsafe { word(top.c_frame, previous_c_frame) };
        let mut words = [0; C_FRAME_WORDS];
        let fits = is_next(state, top.c_frame, c_frame) && copy_guarded(c_frame, &mut words);
        let Some(current_frame) = current_frame else {
            return Ok(Top { c_frame: if fits { top.c_frame } else { 0 }, ..top });
        };
        let outer = Top { frame: words[current_frame / size_of::<u64>()], c_frame, ..top };
        if !fits || (outer.frame != 0 && !self.is_frame(outer.frame)) {
            return Err(WalkStop::Interrupted);
        }
        // SAFETY: the first frame is checked before it is followed.
        let whole = self.is_frame(top.frame) && unsafe { self.leads_to(top.frame, outer.frame) };
        Ok(if whole { top } else { outer })
    }

    /// Whether there is a frame at that address, as far as can be seen without trusting it.
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
        // One unit before the first stands for a frame that has not begun.
        let units = code.wrapping_add(self.layout.code.units as u64).wrapping_sub(UNIT);
        instruction.wrapping_sub(units) <= object[OBJECT_SIZE].wrapping_mul(UNIT)
    }

    /// Whether the frames of this activation end at `outer`.
    ///
    /// # Safety
    /// `frame` is one of this interpreter's frames, alive or not long dead.
    unsafe fn leads_to(&self, mut frame: u64, outer: u64) -> bool {
        for _ in 0..LONGEST_CHAIN {
            if !is_plausible(frame) {
                return false;
            }
            // SAFETY: frames lie in the thread's stacks, or in generators that its frames hold.
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

/// Whether the list of `_PyCFrame`s can go on there: further up the stack, or in the state, where its last is.
fn is_next(state: ThreadStatePointer, c_frame: u64, next: u64) -> bool {
    const LARGEST_STACK: u64 = 1 << 30;
    is_plausible(next) && (is_within(state, next) || next.wrapping_sub(c_frame) < LARGEST_STACK)
}

fn is_within(state: ThreadStatePointer, address: u64) -> bool {
    const LARGEST_STATE: u64 = 1024;
    address.wrapping_sub(state.address()) < LARGEST_STATE
}
