//! The walk frame by frame, into whatever output.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::SourceStop;

use super::MOST_HIDDEN;
use super::form::{Form, Frame, What};
use crate::frame::{CodePointer, PythonFrame};
use crate::memory::is_plausible;

/// Where frames are written.
pub(super) trait Output {
    fn is_full(&self) -> bool;

    /// Writes a frame. There is room for it.
    fn push(&mut self, frame: Frame) -> Result<(), SourceStop>;

    /// The activation of all frames since the last is known; the outermost of them is where native code entered.
    fn close(&mut self, shim: u64);

    /// As `close`, where more frames of the activation follow, which are not written.
    fn close_cut(&mut self, shim: u64);

    /// The innermost eval loop has no frame yet: each activation is one further out, up to this one.
    fn enter_one_loop_fewer(&mut self, outermost: u64);
}

/// Walks from `frame` on.
///
/// # Safety
/// `frame` is the top of a chain of frames of this form, which stays as it is.
#[inline(always)]
pub(super) unsafe fn walk(mut form: impl Form, mut frame: u64, output: &mut impl Output) -> SourceStop {
    let mut hidden = 0;
    while is_plausible(frame) {
        // SAFETY: the frame is one of a chain that stays as it is.
        let step = unsafe { form.step(frame) };
        match step.what {
            What::Frame(found) => {
                if output.is_full() {
                    // SAFETY: as above.
                    if let Some(shim) = unsafe { form.shim_beyond(frame) } {
                        output.close_cut(shim);
                    }
                    return SourceStop::DepthLimit;
                }
                if let Err(stop) = output.push(found) {
                    return stop;
                }
            }
            What::Shim => {
                output.close(frame);
                hidden += 1;
            }
            What::Hidden => hidden += 1,
            What::Bad => return SourceStop::BadFrame,
        }
        if hidden > MOST_HIDDEN {
            return SourceStop::BadFrame;
        }
        frame = step.previous;
    }
    if frame != 0 {
        return SourceStop::BadFrame;
    }
    if let Some(outermost) = form.loop_without_frame() {
        output.enter_one_loop_fewer(outermost);
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

impl Output for PythonFrames<'_> {
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= self.frames.len()
    }

    #[inline(always)]
    fn push(&mut self, frame: Frame) -> Result<(), SourceStop> {
        let Frame { code, instruction, is_entry, activation, .. } = frame;
        if let Some(slot) = self.frames.get_mut(self.len) {
            *slot = PythonFrame { code: CodePointer::new(code), activation, instruction, is_entry };
            self.len += 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn close(&mut self, shim: u64) {
        self.close_cut(shim);
        let entry = self.len.checked_sub(1).filter(|last| *last >= self.activation_start);
        if let Some(frame) = entry.and_then(|last| self.frames.get_mut(last)) {
            frame.is_entry = true;
        }
        self.activation_start = self.len;
    }

    #[inline(always)]
    fn close_cut(&mut self, shim: u64) {
        for frame in self.frames.get_mut(self.activation_start..self.len).unwrap_or_default() {
            frame.activation = shim;
        }
    }

    #[cold]
    fn enter_one_loop_fewer(&mut self, outermost: u64) {
        let mut activation = outermost;
        for frame in self.frames.get_mut(..self.len).unwrap_or_default().iter_mut().rev() {
            activation = core::mem::replace(&mut frame.activation, activation);
        }
    }
}
