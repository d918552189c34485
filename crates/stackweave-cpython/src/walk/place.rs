//! Where in its code a frame of 3.11 or later stands, and whether it has begun at all.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::UNIT;
use crate::memory::load;
use crate::version::Layout;

/// The owner of a frame inside a generator: such a frame has always begun.
const GENERATOR: u8 = 1;
/// A frame at this offset or further has begun. (What comes before the first traceable unit makes cells, one unit each.)
const PROLOGUE: u64 = 128;
/// No code is longer, so an offset beyond it comes from a pointer that is none.
const LONGEST_CODE: u64 = 1 << 31;

/// Where in its code a frame stands.
pub(crate) enum Place {
    /// At the instruction with this offset.
    At(u32),
    /// The same, in a part of the code that only a generator's frame is shown in.
    InGenerator(u32),
    /// The frame is being made, or is the hidden one that waits for an `__init__` to return.
    NotBegun,
    /// The pointers are not those of a frame.
    Nowhere,
}

/// Where in its code a frame of 3.11 or later stands. That the pointers to the code and into the code fit together is a
/// better sign than any that one of them alone could give.
///
/// # Safety
/// `code` and `instruction` are those of a live frame of this layout that runs Python.
#[inline(always)]
pub(crate) unsafe fn place_in_code(layout: &Layout, code: u64, instruction: u64, owner: u8) -> Place {
    let offset = instruction.wrapping_sub(code).wrapping_sub(layout.code.units as u64);
    if offset >= LONGEST_CODE {
        // One unit before the first stands for a frame that has run nothing.
        return if offset == UNIT.wrapping_neg() { Place::NotBegun } else { Place::Nowhere };
    }
    if offset < PROLOGUE {
        // SAFETY: the frame is alive, so its code object is.
        let first_traceable = unsafe { load::<u32>(code, layout.code.first_traceable) };
        if offset < u64::from(first_traceable) * UNIT {
            return if owner == GENERATOR { Place::InGenerator(offset as u32) } else { Place::NotBegun };
        }
    }
    Place::At(offset as u32)
}
