//! Frames with code ids instead of the addresses of code objects.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{CodeId, RawFrame, SourceStop, StackPointer};

use super::cached_frame::WrittenFrame;
use super::frame_by_frame::FrameOutput;
use super::frame_chain::CodeFrame;

/// Maps code objects to ids.
pub(crate) trait CodeIds {
    /// Returns the id of a code object, which the walked frame keeps alive.
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop>;
}

/// The buffers for frames and their activations. The second may be shorter; the rest is then not written.
#[derive(Debug)]
pub(crate) struct FrameBuffers<'a> {
    pub(crate) frames: &'a mut [RawFrame],
    pub(crate) activations: &'a mut [StackPointer],
}

impl FrameBuffers<'_> {
    /// Returns what is left after this many frames.
    #[inline(always)]
    pub(super) fn after(&mut self, count: usize) -> FrameBuffers<'_> {
        FrameBuffers {
            frames: self.frames.get_mut(count..).unwrap_or_default(),
            activations: self.activations.get_mut(count..).unwrap_or_default(),
        }
    }
}

/// The frames that were written so far.
///
/// In a chain with shims, frames are written before their activation is known. Those from the start of the activation
/// up to `unsure_end` have none yet, or one that may be wrong.
#[derive(Debug)]
pub(super) struct SourceFrames<'a, C> {
    buffers: FrameBuffers<'a>,
    pub(super) len: usize,
    activation_start: usize,
    unsure_end: usize,
    codes: &'a C,
}

impl<'a, C: CodeIds> SourceFrames<'a, C> {
    #[inline(always)]
    pub(super) fn new(buffers: FrameBuffers<'a>, codes: &'a C) -> Self {
        Self::after(buffers, codes, 0, 0)
    }

    /// Continues after `len` frames, whose activations are known, except for those from `activation_start` on.
    #[inline(always)]
    pub(super) fn after(buffers: FrameBuffers<'a>, codes: &'a C, len: usize, activation_start: usize) -> Self {
        Self { buffers, len, activation_start, unsure_end: activation_start, codes }
    }

    /// Returns what to write for a frame.
    #[inline(always)]
    pub(super) fn raw(&self, frame: CodeFrame) -> Result<RawFrame, SourceStop> {
        self.codes.id_of(frame.code).map(|code| RawFrame::python(code, frame.instruction, frame.is_entry))
    }

    /// Returns the buffers after this many frames.
    #[inline(always)]
    pub(super) fn buffers_after(&mut self, count: usize) -> FrameBuffers<'_> {
        self.buffers.after(count)
    }

    /// Declares that the activations of all frames before `start` are known.
    #[inline(always)]
    pub(super) fn begin_activation(&mut self, start: usize) {
        self.activation_start = start;
    }

    /// Returns the first `count` frames, the outermost of them first.
    #[inline(always)]
    pub(super) fn written(&self, count: usize) -> impl Iterator<Item = WrittenFrame> {
        let frames = self.buffers.frames.get(..count).unwrap_or_default();
        let activations = self.buffers.activations.get(..count).unwrap_or_default();
        // The slices are cut before they are zipped: `zip` would step over the rest one by one.
        let both = frames.iter().rev().zip(activations.iter().rev());
        both.map(|(frame, activation)| WrittenFrame { frame: *frame, activation: *activation })
    }

    /// Writes a frame with its recorded activation, if there is room.
    #[inline(always)]
    pub(super) fn write(&mut self, written: WrittenFrame) {
        if let Some(slot) = self.buffers.frames.get_mut(self.len) {
            *slot = written.frame;
            if let Some(slot) = self.buffers.activations.get_mut(self.len) {
                *slot = written.activation;
            }
            self.len += 1;
        }
    }

    /// Marks the activations of the current activation's frames as possibly wrong.
    #[inline(always)]
    pub(super) fn mark_unsure(&mut self) {
        self.unsure_end = self.len;
    }

    #[cold]
    #[inline(never)]
    fn set_activations(&mut self, shim: u64) {
        for frame in self.buffers.frames.get_mut(self.activation_start..self.unsure_end).unwrap_or_default() {
            *frame = entered(*frame, false);
        }
        let activations = self.buffers.activations.get_mut(self.activation_start..self.unsure_end);
        activations.unwrap_or_default().fill(StackPointer(shim));
    }
}

/// The bit of a frame's word that states that native code entered it.
const ENTRY: u64 = match CodeId::new(1) {
    Some(code) => RawFrame::python(code, 0, true).to_bits() ^ RawFrame::python(code, 0, false).to_bits(),
    None => 0,
};

/// Returns the frame, marked as entered by native code or by another frame.
#[inline(always)]
fn entered(frame: RawFrame, from_native: bool) -> RawFrame {
    let bits = if from_native { frame.to_bits() | ENTRY } else { frame.to_bits() & !ENTRY };
    RawFrame::from_bits(bits).unwrap_or(frame)
}

/// Returns whether native code entered the frame.
#[inline(always)]
pub(super) fn is_entered(frame: RawFrame) -> bool {
    frame.to_bits() & ENTRY != 0
}

impl<C: CodeIds> FrameOutput for SourceFrames<'_, C> {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= self.buffers.frames.len()
    }

    #[inline(always)]
    fn push(&mut self, frame: CodeFrame) -> Result<(), SourceStop> {
        let raw = self.raw(frame)?;
        self.write(WrittenFrame { frame: raw, activation: StackPointer(frame.activation) });
        self.mark_unsure();
        Ok(())
    }

    #[inline(always)]
    fn close_activation(&mut self, shim: u64) {
        if self.unsure_end > self.activation_start {
            self.set_activations(shim);
            if self.unsure_end == self.len
                && let Some(entry) = self.buffers.frames.get_mut(self.len - 1)
            {
                *entry = entered(*entry, true);
            }
        }
        self.activation_start = self.len;
    }

    #[inline(always)]
    fn close_cut_activation(&mut self, shim: u64) {
        self.mark_unsure();
        self.set_activations(shim);
    }

    #[cold]
    fn shift_activations(&mut self, outermost: u64) {
        let mut activation = StackPointer(outermost);
        for slot in self.buffers.activations.get_mut(..self.len).unwrap_or_default().iter_mut().rev() {
            activation = core::mem::replace(slot, activation);
        }
    }
}
