//! Frames of 3.10: objects, each run by its own eval loop.

use stackweave_core::StackPointer;
use stackweave_cpython::PythonFrame as Raw;
use stackweave_cpython::layout::{Chain, UNIT, is_plausible};

use super::RemotePythonFrame;
use super::chain::{RemoteFrameReader, VisitedFrames};
use super::loops::EvalLoops;
use super::problem::Problem;

impl RemoteFrameReader<'_> {
    /// Walks the frames and the list of `CFrame`s together. If the list cannot be followed, frames have no
    /// activation.
    pub(super) fn walk_objects(&self, state: u64, frames: &mut Vec<RemotePythonFrame>) -> Result<(), Problem> {
        let Chain::FrameObjects { frame, c_frame, previous_c_frame, last_c_frame } = self.layout.thread.chain else {
            return Err(Problem::NotAFrame);
        };
        let loops = EvalLoops { reader: self, state, current_frame: 0, previous: previous_c_frame };
        let last = state.wrapping_add(last_c_frame as u64);
        let first = self.word(state, c_frame)?;
        let mut running = Some(first).filter(|first| *first != last && loops.after(*first).is_some());
        let mut steps = VisitedFrames::default();
        let mut frame = self.word(state, frame)?;
        while frame != 0 {
            steps.visit(frame)?;
            frames.push(self.object(frame, running.unwrap_or(0))?);
            running = running.and_then(|c_frame| loops.after(c_frame)).map(|next| next.c_frame);
            running = running.filter(|next| *next != last && is_plausible(*next));
            frame = self.word(frame, self.layout.frame.previous)?;
        }
        // A loop that has no frame yet. (A greenlet has one more loop, which never has a frame.)
        if let Some(outermost) = running.filter(|_| !self.has_greenlets) {
            enter_one_loop_fewer(frames, outermost);
        }
        Ok(())
    }

    fn object(&self, frame: u64, activation: u64) -> Result<RemotePythonFrame, Problem> {
        let layout = &self.layout.frame;
        let code = self.codes.at(self.word(frame, layout.code)?).ok_or(Problem::NotAFrame)?;
        let index = self.snapshot.half_word(frame, layout.instruction).ok_or(Problem::Unreadable)?;
        let instruction = match index {
            u32::MAX => Raw::NOT_BEGUN,
            _ => u32::try_from(u64::from(index) * UNIT).map_err(|_| Problem::NotAFrame)?,
        };
        Ok(self.named(&code, instruction, activation))
    }
}

/// Moves each activation one loop outward, up to this one.
fn enter_one_loop_fewer(frames: &mut [RemotePythonFrame], outermost: u64) {
    let mut activation = StackPointer(outermost);
    for frame in frames.iter_mut().rev() {
        activation = std::mem::replace(&mut frame.activation, activation);
    }
}
