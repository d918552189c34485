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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the instruction with this offset.
    At(u32),
    /// The same, in a part of the code that only a generator's frame is shown in.
    InGenerator(u32),
    /// The frame is being made, or is the hidden one that waits for an `__init__` to return.
    NotBegun,
    /// The pointers are not those of a frame.
    Nowhere,
}

/// Where in its code a frame of 3.11 or later stands.
///
/// # Safety
/// `code` and `instruction` are those of a live frame of this layout that runs Python.
#[inline(always)]
pub(crate) unsafe fn place_in_code(layout: &Layout, code: u64, instruction: u64, owner: u8) -> Place {
    // SAFETY: the frame is alive, so its code object is.
    layout.place(code, instruction, owner, || unsafe { load::<u32>(code, layout.code.first_traceable) })
}

impl Layout {
    /// Where in its code a frame of 3.11 or later stands, by its pointers to and into the code. `first_traceable` is asked
    /// for that field of the code object only where it matters. That the two pointers fit together is a better sign than
    /// any that one of them alone could give.
    #[inline(always)]
    pub fn place(&self, code: u64, instruction: u64, owner: u8, first_traceable: impl FnOnce() -> u32) -> Place {
        let offset = instruction.wrapping_sub(code).wrapping_sub(self.code.units as u64);
        if offset >= LONGEST_CODE {
            // One unit before the first stands for a frame that has run nothing.
            return if offset == UNIT.wrapping_neg() { Place::NotBegun } else { Place::Nowhere };
        }
        if offset < PROLOGUE && offset < u64::from(first_traceable()) * UNIT {
            return if owner == GENERATOR { Place::InGenerator(offset as u32) } else { Place::NotBegun };
        }
        Place::At(offset as u32)
    }
}
