//! Frames of 3.12 and later: each activation of the eval loop ends with a shim on the C stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::place::{Place, place_in_code};
use super::{MOST_HIDDEN, SHIM};
use crate::frame::{CodePointer, PythonFrame, WalkStop, Walked};
use crate::memory::{is_plausible, load, word};
use crate::version::Layout;

/// The shim that ends an activation comes after its frames, so they get its address when it is met.
///
/// # Safety
/// As for `Interpreter::walk_from`.
pub(super) unsafe fn walk(layout: &Layout, mut frame: u64, frames: &mut [PythonFrame]) -> Walked {
    let (mut len, mut hidden, mut activation_start) = (0, 0, 0);
    let offsets = layout.frame;
    while frame != 0 {
        if !is_plausible(frame) || hidden > MOST_HIDDEN {
            return Walked { len, stop: WalkStop::BadFrame };
        }
        // SAFETY: the frame is one of a chain that stays as it is.
        let (previous, owner) = unsafe { (word(frame, offsets.previous), load::<u8>(frame, offsets.owner)) };
        if owner >= SHIM {
            hidden += 1;
            if owner == SHIM {
                close_activation(frames.get_mut(activation_start..len).unwrap_or_default(), frame);
                activation_start = len;
            }
        } else {
            // SAFETY: as above.
            let (code, place) = unsafe { place_in_code(layout, frame, owner) };
            match place {
                Place::At(instruction) => {
                    let Some(slot) = frames.get_mut(len) else { return Walked { len, stop: WalkStop::DepthLimit } };
                    *slot = PythonFrame { code: CodePointer::new(code), activation: 0, instruction, is_entry: false };
                    len += 1;
                }
                Place::NotBegun => hidden += 1,
                Place::Nowhere => return Walked { len, stop: WalkStop::BadFrame },
            }
        }
        frame = previous;
    }
    Walked { len, stop: WalkStop::EndOfStack }
}

/// The last of them, the outermost, is the one that native code entered.
#[inline(always)]
fn close_activation(frames: &mut [PythonFrame], shim: u64) {
    for frame in &mut *frames {
        frame.activation = shim;
    }
    if let Some(entry) = frames.last_mut() {
        entry.is_entry = true;
    }
}
