//! The position of a frame of 3.11 or later in its code, and whether the frame has begun.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::UNIT;
use crate::memory::load;
use crate::version::VersionLayout;

/// The owner of a generator's frame, which has always begun.
const GENERATOR: u8 = 1;
/// A frame at this offset or further has begun. (The units before the first traceable one create cells, one unit each.)
const PROLOGUE: u64 = 128;
/// The largest size of code: an offset beyond it comes from an invalid pointer.
const LARGEST_CODE: u64 = 1 << 31;

/// The position of a frame in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePosition {
    /// The frame is at the instruction with this offset.
    At(u32),
    /// The frame is at this offset, which is before the start of the code for all but a generator's frame.
    InGenerator(u32),
    /// The frame is being created, or is the hidden one that waits for an `__init__` to return.
    NotBegun,
    /// The pointers are not those of a frame.
    Invalid,
}

/// Returns the position of a frame of 3.11 or later in its code.
///
/// # Safety
/// `code` and `instruction` are those of a live frame of this layout that runs Python.
#[inline(always)]
pub(crate) unsafe fn code_position(layout: &VersionLayout, code: u64, instruction: u64, owner: u8) -> CodePosition {
    // SAFETY: the frame is alive, so its code object is.
    layout.code_position(code, instruction, owner, || unsafe { load::<u32>(code, layout.code.first_traceable) })
}

impl VersionLayout {
    /// Returns the position of a frame of 3.11 or later, from its pointers to and into the code. `first_traceable` is
    /// called to read that field of the code object only if it is needed. That the two pointers fit together is better
    /// evidence than anything that one of them could show.
    #[inline(always)]
    pub fn code_position(
        &self,
        code: u64,
        instruction: u64,
        owner: u8,
        first_traceable: impl FnOnce() -> u32,
    ) -> CodePosition {
        let offset = instruction.wrapping_sub(code).wrapping_sub(self.code.units as u64);
        if offset >= LARGEST_CODE {
            // One unit before the first means that the frame has run nothing.
            return if offset == UNIT.wrapping_neg() { CodePosition::NotBegun } else { CodePosition::Invalid };
        }
        if offset < PROLOGUE && offset < u64::from(first_traceable()) * UNIT {
            return if owner == GENERATOR { CodePosition::InGenerator(offset as u32) } else { CodePosition::NotBegun };
        }
        CodePosition::At(offset as u32)
    }
}
