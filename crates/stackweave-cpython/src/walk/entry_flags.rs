//! Frames of 3.11: each activation of the eval loop has a `_PyCFrame` on the C stack, in a separate list.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::StackPointer;

use super::cached_frame::{CachedFrame, WrittenFrame};
use super::code_position::{CodePosition, code_position};
use super::frame_chain::{ChainStep, CodeFrame, FrameChain, StepKind};
use crate::memory::{is_plausible, load, word};
use crate::version::{Chain, VersionLayout};

/// 3.11: the walk advances to the next `_PyCFrame` after each entry frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryFlags {
    pub(super) c_frame: u64,
}

const LAYOUT: VersionLayout = VersionLayout::must_have(11);
const PREVIOUS_C_FRAME: usize = match LAYOUT.thread.chain {
    Chain::EntryFlags { previous_c_frame, .. } => previous_c_frame,
    _ => panic!("3.11 has entry flags"),
};
const IS_ENTRY: usize = match LAYOUT.thread.chain {
    Chain::EntryFlags { is_entry, .. } => is_entry,
    _ => panic!("3.11 has entry flags"),
};

/// A bit of the word, in addition to a pointer.
const ENTRY_MARK: u64 = 1 << 63;

impl EntryFlags {
    /// # Safety
    /// The eval loop of the `_PyCFrame` runs an entry frame.
    #[inline(always)]
    unsafe fn leave_loop(&mut self) {
        // SAFETY: the loop that runs the frame still exists, and with it its `_PyCFrame`.
        self.c_frame = if is_plausible(self.c_frame) { unsafe { word(self.c_frame, PREVIOUS_C_FRAME) } } else { 0 };
    }
}

impl FrameChain for EntryFlags {
    const HAS_SHIMS: bool = false;

    #[inline(always)]
    unsafe fn step(&mut self, frame: u64) -> ChainStep {
        let offsets = const { LAYOUT.frame };
        // SAFETY: the frame belongs to a chain that does not change.
        let (previous, code, word, owner) = unsafe {
            (Self::previous(frame), word(frame, offsets.code), Self::word(frame), load::<u8>(frame, offsets.owner))
        };
        let is_entry = word & ENTRY_MARK != 0;
        let activation = self.c_frame;
        let visible = |instruction, is_replayable| {
            StepKind::Frame(CodeFrame { code, instruction, is_entry, activation, is_replayable })
        };
        // SAFETY: as above.
        let mut kind = match unsafe { code_position(const { &LAYOUT }, code, word & !ENTRY_MARK, owner) } {
            CodePosition::At(instruction) => visible(instruction, true),
            CodePosition::InGenerator(instruction) => visible(instruction, false),
            CodePosition::NotBegun => StepKind::Hidden,
            CodePosition::Invalid => StepKind::Bad,
        };
        if is_entry {
            if !is_plausible(activation) {
                kind = StepKind::Bad;
            }
            // SAFETY: the frame is an entry frame.
            unsafe { self.leave_loop() };
        }
        ChainStep { previous, word, kind }
    }

    /// Returns the pointer into the code, which can't be the same for another code object while this one lives, and
    /// whether native code entered the frame.
    #[inline(always)]
    unsafe fn word(frame: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe {
            // A C `bool`: zero or one.
            let is_entry = u64::from(load::<u8>(frame, IS_ENTRY));
            word(frame, const { LAYOUT.frame.instruction }) | is_entry << ENTRY_MARK.trailing_zeros()
        }
    }

    #[inline(always)]
    unsafe fn previous(frame: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { word(frame, const { LAYOUT.frame.previous }) }
    }

    /// Returns `true`, because each walk follows the list of `_PyCFrame`s again.
    #[inline(always)]
    unsafe fn loop_holds(&self, _: &CachedFrame, _: &CachedFrame) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn pass(&mut self, entry: &CachedFrame, _: u64) {
        if entry.word & ENTRY_MARK != 0 {
            // SAFETY: the entry is valid, so its frame is an entry frame.
            unsafe { self.leave_loop() };
        }
    }

    #[inline(always)]
    unsafe fn renew_loop(&mut self, _: &mut CachedFrame) -> bool {
        false
    }

    #[inline(always)]
    fn replayed(&self, entry: &CachedFrame) -> WrittenFrame {
        WrittenFrame { activation: StackPointer(self.c_frame), ..entry.written }
    }

    #[inline(always)]
    fn c_frame(&self) -> u64 {
        self.c_frame
    }

    unsafe fn shim_beyond(&self, _: u64) -> Option<u64> {
        None
    }

    #[inline(always)]
    fn loop_without_frame(&self) -> Option<u64> {
        None
    }
}
