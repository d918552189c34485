//! Frames as a stack keeps them: code ids instead of the addresses of code objects.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::{CodeId, RawFrame, SourceStop, StackPointer};

use super::entry::Written;
use super::form::Frame;
use super::plain::Output;

/// The id of each code object.
pub(crate) trait CodeIds {
    /// The id of a code object, which the walked frame keeps alive.
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop>;
}

/// Where frames go, and their activations; these may be fewer, and are then not written.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) frames: &'a mut [RawFrame],
    pub(crate) activations: &'a mut [StackPointer],
}

impl Room<'_> {
    /// What is left after so many frames.
    #[inline(always)]
    pub(super) fn after(&mut self, count: usize) -> Room<'_> {
        Room {
            frames: self.frames.get_mut(count..).unwrap_or_default(),
            activations: self.activations.get_mut(count..).unwrap_or_default(),
        }
    }
}

/// What has been written of a stack.
///
/// Where activations end with shims, frames are written before their activation is known. Those from the start of the
/// activation up to `unsure_end` have none yet, or one that may be wrong.
#[derive(Debug)]
pub(super) struct SourceFrames<'a, C> {
    room: Room<'a>,
    pub(super) len: usize,
    activation_start: usize,
    unsure_end: usize,
    codes: &'a C,
}

impl<'a, C: CodeIds> SourceFrames<'a, C> {
    #[inline(always)]
    pub(super) fn new(room: Room<'a>, codes: &'a C) -> Self {
        Self::after(room, codes, 0, 0)
    }

    /// So many frames are written, and their activations are sure, but for those from `activation_start` on.
    #[inline(always)]
    pub(super) fn after(room: Room<'a>, codes: &'a C, len: usize, activation_start: usize) -> Self {
        Self { room, len, activation_start, unsure_end: activation_start, codes }
    }

    /// What to write for a frame.
    #[inline(always)]
    pub(super) fn raw(&self, frame: Frame) -> Result<RawFrame, SourceStop> {
        self.codes.id_of(frame.code).map(|code| RawFrame::python(code, frame.instruction, frame.is_entry))
    }

    /// Where frames go, after so many.
    #[inline(always)]
    pub(super) fn room(&mut self, count: usize) -> Room<'_> {
        self.room.after(count)
    }

    /// The activation of all frames before these is known.
    #[inline(always)]
    pub(super) fn begin_activation(&mut self, start: usize) {
        self.activation_start = start;
    }

    /// The first `count` frames, the outermost of them first.
    #[inline(always)]
    pub(super) fn written(&self, count: usize) -> impl Iterator<Item = Written> {
        let frames = self.room.frames.get(..count).unwrap_or_default();
        let activations = self.room.activations.get(..count).unwrap_or_default();
        // Cut before they are zipped: what is behind would be stepped over one by one.
        let both = frames.iter().rev().zip(activations.iter().rev());
        both.map(|(frame, activation)| Written { frame: *frame, activation: *activation })
    }

    /// Writes a frame with the activation that it is said to have, if there is room.
    #[inline(always)]
    pub(super) fn write(&mut self, written: Written) {
        if let Some(slot) = self.room.frames.get_mut(self.len) {
            *slot = written.frame;
            if let Some(slot) = self.room.activations.get_mut(self.len) {
                *slot = written.activation;
            }
            self.len += 1;
        }
    }

    /// What was said about the activation that is being written may not hold.
    #[inline(always)]
    pub(super) fn doubt(&mut self) {
        self.unsure_end = self.len;
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self, shim: u64) {
        for frame in self.room.frames.get_mut(self.activation_start..self.unsure_end).unwrap_or_default() {
            *frame = entered(*frame, false);
        }
        let activations = self.room.activations.get_mut(self.activation_start..self.unsure_end);
        activations.unwrap_or_default().fill(StackPointer(shim));
    }
}

/// The bit of a frame's word that says that native code entered it.
const ENTRY: u64 = match CodeId::new(1) {
    Some(code) => RawFrame::python(code, 0, true).to_bits() ^ RawFrame::python(code, 0, false).to_bits(),
    None => 0,
};

/// The frame, entered by native code or by another frame.
#[inline(always)]
fn entered(frame: RawFrame, from_native: bool) -> RawFrame {
    let bits = if from_native { frame.to_bits() | ENTRY } else { frame.to_bits() & !ENTRY };
    RawFrame::from_bits(bits).unwrap_or(frame)
}

/// Whether native code entered the frame.
#[inline(always)]
pub(super) fn is_entered(frame: RawFrame) -> bool {
    frame.to_bits() & ENTRY != 0
}

impl<C: CodeIds> Output for SourceFrames<'_, C> {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= self.room.frames.len()
    }

    #[inline(always)]
    fn push(&mut self, frame: Frame) -> Result<(), SourceStop> {
        let raw = self.raw(frame)?;
        self.write(Written { frame: raw, activation: StackPointer(frame.activation) });
        self.doubt();
        Ok(())
    }

    #[inline(always)]
    fn close(&mut self, shim: u64) {
        if self.unsure_end > self.activation_start {
            self.settle(shim);
            if self.unsure_end == self.len
                && let Some(entry) = self.room.frames.get_mut(self.len - 1)
            {
                *entry = entered(*entry, true);
            }
        }
        self.activation_start = self.len;
    }

    #[inline(always)]
    fn close_cut(&mut self, shim: u64) {
        self.doubt();
        self.settle(shim);
    }

    #[cold]
    fn enter_one_loop_fewer(&mut self, outermost: u64) {
        let mut activation = StackPointer(outermost);
        for slot in self.room.activations.get_mut(..self.len).unwrap_or_default().iter_mut().rev() {
            activation = core::mem::replace(slot, activation);
        }
    }
}
