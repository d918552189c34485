//! The walk frame by frame, into any output.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::SourceStop;

use super::MAX_HIDDEN;
use super::frame_chain::{CodeFrame, FrameChain, StepKind};
use crate::frame::{CodePointer, PythonFrame};
use crate::memory::is_plausible;

/// An output of frames.
pub(super) trait FrameOutput {
    fn is_full(&self) -> bool;

    /// Writes a frame. There is room for it.
    fn push(&mut self, frame: CodeFrame) -> Result<(), SourceStop>;

    /// Sets the activation of all frames since the last call; native code entered the outermost of them.
    fn close_activation(&mut self, shim: u64);

    /// Does the same as `close_activation`, but more frames of the activation follow, which are not written.
    fn close_cut_activation(&mut self, shim: u64);

    /// Moves each activation one frame further out, up to this one: the innermost eval loop has no frame yet.
    fn shift_activations(&mut self, outermost: u64);
}

/// Walks from `frame` on.
///
/// # Safety
/// `frame` is the top of this chain, which does not change.
#[inline(always)]
pub(super) unsafe fn walk(mut chain: impl FrameChain, mut frame: u64, output: &mut impl FrameOutput) -> SourceStop {
    let mut hidden = 0;
    while is_plausible(frame) {
        // SAFETY: the frame belongs to a chain that does not change.
        let step = unsafe { chain.step(frame) };
        match step.kind {
            StepKind::Frame(python) => {
                if output.is_full() {
                    // SAFETY: as above.
                    if let Some(shim) = unsafe { chain.shim_beyond(frame) } {
                        output.close_cut_activation(shim);
                    }
                    return SourceStop::DepthLimit;
                }
                if let Err(stop) = output.push(python) {
                    return stop;
                }
            }
            StepKind::Shim => {
                output.close_activation(frame);
                hidden += 1;
            }
            StepKind::Hidden => hidden += 1,
            StepKind::Bad => return SourceStop::BadFrame,
        }
        if hidden > MAX_HIDDEN {
            return SourceStop::BadFrame;
        }
        frame = step.previous;
    }
    if frame != 0 {
        return SourceStop::BadFrame;
    }
    if let Some(outermost) = chain.loop_without_frame() {
        output.shift_activations(outermost);
    }
    SourceStop::EndOfStack
}

/// Frames as the addresses of their code objects.
#[derive(Debug)]
pub(super) struct PythonFrames<'a> {
    pub(super) frames: &'a mut [PythonFrame],
    pub(super) len: usize,
    activation_start: usize,
}

impl<'a> PythonFrames<'a> {
    pub(super) fn new(frames: &'a mut [PythonFrame]) -> Self {
        Self { frames, len: 0, activation_start: 0 }
    }
}

impl FrameOutput for PythonFrames<'_> {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= self.frames.len()
    }

    #[inline(always)]
    fn push(&mut self, frame: CodeFrame) -> Result<(), SourceStop> {
        let CodeFrame { code, instruction, is_entry, activation, .. } = frame;
        if let Some(slot) = self.frames.get_mut(self.len) {
            *slot = PythonFrame { code: CodePointer::new(code), activation, instruction, is_entry };
            self.len += 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn close_activation(&mut self, shim: u64) {
        self.close_cut_activation(shim);
        let entry = self.len.checked_sub(1).filter(|last| *last >= self.activation_start);
        if let Some(frame) = entry.and_then(|last| self.frames.get_mut(last)) {
            frame.is_entry = true;
        }
        self.activation_start = self.len;
    }

    #[inline(always)]
    fn close_cut_activation(&mut self, shim: u64) {
        for frame in self.frames.get_mut(self.activation_start..self.len).unwrap_or_default() {
            frame.activation = shim;
        }
    }

    #[cold]
    fn shift_activations(&mut self, outermost: u64) {
        let mut activation = outermost;
        for frame in self.frames.get_mut(..self.len).unwrap_or_default().iter_mut().rev() {
            activation = core::mem::replace(&mut frame.activation, activation);
        }
    }
}
