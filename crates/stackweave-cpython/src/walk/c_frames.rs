//! Frames of 3.10 and 3.11: each activation of the eval loop has a `_PyCFrame` on the C stack, in a list of its own.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::SourceStop;

use super::place::{Place, place_in_code};
use super::{MOST_HIDDEN, Top, UNIT};
use crate::frame::{CodePointer, PythonFrame, Walked};
use crate::memory::{is_plausible, load, word};
use crate::version::{Chain, Layout};

/// 3.11: the next `_PyCFrame` is due after each entry frame.
///
/// # Safety
/// As for `Interpreter::walk_from`.
pub(super) unsafe fn walk_entry_flags(top: Top, frames: &mut [PythonFrame]) -> Walked {
    let layout = const { &Layout::must_have(11) };
    let Chain::EntryFlags { previous_c_frame, is_entry, .. } = layout.thread.chain else {
        return Walked::nothing(SourceStop::BadFrame);
    };
    let Top { mut frame, mut c_frame, .. } = top;
    let (mut len, mut hidden) = (0, 0);
    let offsets = layout.frame;
    while is_plausible(frame) {
        // SAFETY: the frame is one of a chain that stays as it is.
        let (previous, owner, is_entry) = unsafe {
            (word(frame, offsets.previous), load::<u8>(frame, offsets.owner), load::<u8>(frame, is_entry) != 0)
        };
        // SAFETY: as above.
        let (code, place) = unsafe { place_in_code(layout, frame, owner) };
        match place {
            Place::At(instruction) => {
                let Some(slot) = frames.get_mut(len) else { return Walked { len, stop: SourceStop::DepthLimit } };
                *slot = PythonFrame { code: CodePointer::new(code), activation: c_frame, instruction, is_entry };
                len += 1;
            }
            Place::NotBegun => hidden += 1,
            Place::Nowhere => return Walked { len, stop: SourceStop::BadFrame },
        }
        if is_entry {
            if !is_plausible(c_frame) || hidden > MOST_HIDDEN {
                return Walked { len, stop: SourceStop::BadFrame };
            }
            // SAFETY: the loop that runs the frame is still there, and with it its `_PyCFrame`.
            c_frame = unsafe { word(c_frame, previous_c_frame) };
        }
        frame = previous;
    }
    Walked { len, stop: if frame == 0 { SourceStop::EndOfStack } else { SourceStop::BadFrame } }
}

/// 3.10: one eval loop for each frame, so the two lists go in step. The last `CFrame` is in the thread state, and runs
/// nothing. Where the list can't be told (null), the frames get no activations.
///
/// # Safety
/// As for `Interpreter::walk_from`.
pub(super) unsafe fn walk_frame_objects(top: Top, frames: &mut [PythonFrame]) -> Walked {
    let layout = const { &Layout::must_have(10) };
    let Chain::FrameObjects { previous_c_frame, .. } = layout.thread.chain else {
        return Walked::nothing(SourceStop::BadFrame);
    };
    let Top { mut frame, mut c_frame, last_c_frame } = top;
    let mut len = 0;
    let offsets = layout.frame;
    let is_loop = |c_frame| c_frame != last_c_frame && is_plausible(c_frame);
    while is_plausible(frame) {
        // SAFETY: the frame is one of a chain that stays as it is.
        let (previous, code, index) = unsafe {
            (word(frame, offsets.previous), word(frame, offsets.code), load::<u32>(frame, offsets.instruction))
        };
        if !is_plausible(code) {
            return Walked { len, stop: SourceStop::BadFrame };
        }
        let Some(slot) = frames.get_mut(len) else { return Walked { len, stop: SourceStop::DepthLimit } };
        let instruction = if index == u32::MAX { PythonFrame::NOT_BEGUN } else { index.wrapping_mul(UNIT as u32) };
        let activation = if is_loop(c_frame) { c_frame } else { 0 };
        *slot = PythonFrame { code: CodePointer::new(code), activation, instruction, is_entry: true };
        len += 1;
        frame = previous;
        if activation != 0 {
            // SAFETY: the `CFrame` is that of a running eval loop.
            c_frame = unsafe { word(activation, previous_c_frame) };
        }
    }
    if frame != 0 {
        return Walked { len, stop: SourceStop::BadFrame };
    }
    if is_loop(c_frame) {
        enter_one_loop_fewer(frames.get_mut(..len).unwrap_or_default(), c_frame);
    }
    Walked { len, stop: SourceStop::EndOfStack }
}

/// A signal came between the start of an eval loop and that of its frame: the innermost loop has no frame yet.
#[cold]
fn enter_one_loop_fewer(frames: &mut [PythonFrame], outermost: u64) {
    let mut activation = outermost;
    for frame in frames.iter_mut().rev() {
        activation = core::mem::replace(&mut frame.activation, activation);
    }
}
