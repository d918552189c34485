//! Where in its code a frame of 3.11 or later stands, and whether it has begun at all.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::{TAG, UNIT};
use crate::memory::{is_plausible, load, word};
use crate::version::Layout;

/// The owner of a frame inside a generator: such a frame has always begun.
const GENERATOR: u8 = 1;
/// A frame at this offset or further has begun. (What comes before the first traceable unit makes cells, one unit each.)
const PROLOGUE: u64 = 128;
/// No code is longer, so an offset beyond it comes from a pointer that is none.
const LONGEST_CODE: u64 = 1 << 31;

/// Where in its code a frame stands.
pub(super) enum Place {
    /// At the instruction with this offset.
    At(u32),
    /// The frame is being made, or is the hidden one that waits for an `__init__` to return.
    NotBegun,
    /// The pointers are not those of a frame.
    Nowhere,
}

/// What a frame of 3.11 or later runs, and where in it.
///
/// # Safety
/// `frame` is a frame of this layout that runs Python.
#[inline(always)]
pub(super) unsafe fn place_in_code(layout: &Layout, frame: u64, owner: u8) -> (u64, Place) {
    // SAFETY: the caller says what the frame is.
    let (code, instruction) = unsafe { (word(frame, layout.frame.code) & !TAG, word(frame, layout.frame.instruction)) };
    let offset = instruction.wrapping_sub(code.wrapping_add(layout.code.units as u64));
    if !is_plausible(code) {
        return (code, Place::Nowhere);
    }
    if offset.wrapping_sub(PROLOGUE) < LONGEST_CODE - PROLOGUE {
        return (code, Place::At(offset as u32));
    }
    if offset.wrapping_add(PROLOGUE) >= 2 * PROLOGUE {
        return (code, Place::Nowhere);
    }
    // SAFETY: the frame is alive, so its code object is.
    let first_traceable = unsafe { load::<u32>(code, layout.code.first_traceable) };
    let begun = owner == GENERATOR || (offset < PROLOGUE && offset >= u64::from(first_traceable) * UNIT);
    (code, if begun { Place::At(offset as u32) } else { Place::NotBegun })
}
