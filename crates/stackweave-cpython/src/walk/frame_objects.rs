//! Frames of 3.10: objects, each run by a separate eval loop with a `CFrame` on the C stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use core::sync::atomic::{AtomicBool, Ordering};

use stackweave_core::StackPointer;

use super::UNIT;
use super::cached_frame::{CachedFrame, WrittenFrame};
use super::frame_chain::{ChainStep, CodeFrame, FrameChain, StepKind};
use crate::frame::PythonFrame;
use crate::memory::{is_plausible, load, word};
use crate::version::{Chain, VersionLayout};

/// Whether a walk that interrupted nothing has found more loops than frames. A greenlet adds a `CFrame` that belongs to
/// no loop at the end of the list; in its stack, a signal between the start of a loop and that of its frame can't be
/// detected.
static HAS_GREENLETS: AtomicBool = AtomicBool::new(false);

/// 3.10: one eval loop for each frame, so the two lists correspond. The last `CFrame` is in the thread state, and
/// belongs to no loop. If the list is not readable (null), the frames get no activations.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameObjects {
    pub(super) c_frame: u64,
    pub(super) last_c_frame: u64,
    /// Whether a signal may have come between the start of an eval loop and that of its frame.
    pub(super) is_interrupted: bool,
}

const LAYOUT: VersionLayout = VersionLayout::must_have(10);
const PREVIOUS_C_FRAME: usize = match LAYOUT.thread.chain {
    Chain::FrameObjects { previous_c_frame, .. } => previous_c_frame,
    _ => panic!("3.10 has frame objects"),
};

/// The largest instruction index that fits into a word with the address of a code object.
const LARGEST_INDEX: u32 = (1 << 20) - 1;
const INDEX_SHIFT: u32 = 44;

/// Packs both into one word, exactly up to [`LARGEST_INDEX`]: addresses end below bit 47, and their lowest three bits
/// are not used.
#[inline(always)]
fn packed(code: u64, index: u32) -> u64 {
    code >> 3 | u64::from(index) << INDEX_SHIFT
}

impl FrameObjects {
    /// Returns the `CFrame` of the loop that runs the next frame, if there is one.
    #[inline(always)]
    fn running(self) -> Option<u64> {
        (self.c_frame != self.last_c_frame && is_plausible(self.c_frame)).then_some(self.c_frame)
    }
}

impl FrameChain for FrameObjects {
    const HAS_SHIMS: bool = false;

    #[inline(always)]
    unsafe fn step(&mut self, frame: u64) -> ChainStep {
        let offsets = const { LAYOUT.frame };
        // SAFETY: the frame belongs to a chain that does not change.
        let (previous, code, index) =
            unsafe { (Self::previous(frame), word(frame, offsets.code), load::<u32>(frame, offsets.instruction)) };
        let kind = if is_plausible(code) {
            let instruction = if index == u32::MAX { PythonFrame::NOT_BEGUN } else { index.wrapping_mul(UNIT as u32) };
            let activation = self.running().unwrap_or(0);
            let is_replayable = activation != 0 && index <= LARGEST_INDEX;
            StepKind::Frame(CodeFrame { code, instruction, is_entry: true, activation, is_replayable })
        } else {
            StepKind::Bad
        };
        if let Some(c_frame) = self.running() {
            // SAFETY: the `CFrame` belongs to a running eval loop.
            self.c_frame = unsafe { word(c_frame, PREVIOUS_C_FRAME) };
        }
        ChainStep { previous, word: packed(code, index), kind }
    }

    /// Returns the code object and the index of the instruction.
    #[inline(always)]
    unsafe fn word(frame: u64) -> u64 {
        let offsets = const { LAYOUT.frame };
        // SAFETY: passed on to the caller.
        unsafe { packed(word(frame, offsets.code), load::<u32>(frame, offsets.instruction)) }
    }

    #[inline(always)]
    unsafe fn previous(frame: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { word(frame, const { LAYOUT.frame.previous }) }
    }

    /// Compares the list of `CFrame`s as the chain of frames is compared, so that the walk does not wait for its loads
    /// either.
    #[inline(always)]
    unsafe fn loop_holds(&self, entry: &CachedFrame, next: &CachedFrame) -> bool {
        let c_frame = entry.written.activation.0;
        // SAFETY: a replayable entry has the `CFrame` of a running loop, and the list has led to this one.
        self.c_frame == c_frame && unsafe { word(c_frame, PREVIOUS_C_FRAME) } == next.written.activation.0
    }

    #[inline(always)]
    unsafe fn pass(&mut self, _: &CachedFrame, next_loop: u64) {
        self.c_frame = next_loop;
    }

    #[inline(always)]
    unsafe fn renew_loop(&mut self, entry: &mut CachedFrame) -> bool {
        let Some(c_frame) = self.running() else { return false };
        entry.written.activation = StackPointer(c_frame);
        // SAFETY: the `CFrame` belongs to a running eval loop.
        self.c_frame = unsafe { word(c_frame, PREVIOUS_C_FRAME) };
        true
    }

    #[inline(always)]
    fn replayed(&self, entry: &CachedFrame) -> WrittenFrame {
        entry.written
    }

    #[inline(always)]
    fn c_frame(&self) -> u64 {
        self.c_frame
    }

    unsafe fn shim_beyond(&self, _: u64) -> Option<u64> {
        None
    }

    fn loop_without_frame(&self) -> Option<u64> {
        let outermost = self.running()?;
        if !self.is_interrupted {
            HAS_GREENLETS.store(true, Ordering::Relaxed);
            return None;
        }
        (!HAS_GREENLETS.load(Ordering::Relaxed)).then_some(outermost)
    }
}
