//! The eval loops of 3.11 and 3.12: a list of `_PyCFrame`s on the C stack, innermost first.
//!
//! The interpreter publishes a loop before it has initialised it. A thread may be stopped in between, so the
//! innermost loop is trusted only if all its data is consistent; otherwise the walk begins at the next one.

use stackweave_cpython::layout::{Chain, is_plausible};

use super::chain::{RemoteFrameReader, VisitedFrames};
use super::problem::Problem;

/// The start of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopTop {
    pub(super) frame: u64,
    pub(super) c_frame: u64,
}

/// The loops of a thread. The last one is in the thread state, and runs nothing.
#[derive(Clone, Copy)]
pub(super) struct EvalLoops<'a> {
    pub(super) reader: &'a RemoteFrameReader<'a>,
    pub(super) state: u64,
    pub(super) current_frame: usize,
    pub(super) previous: usize,
}

/// The maximum sizes of a thread state and of a stack.
const MAX_STATE_SIZE: u64 = 1024;
const MAX_STACK_SIZE: u64 = 1 << 30;

impl RemoteFrameReader<'_> {
    /// Returns the innermost eval loop that is complete.
    pub(super) fn settled_top(&self, state: u64) -> Result<LoopTop, Problem> {
        let (Chain::EntryFlags { c_frame, current_frame, previous_c_frame, .. }
        | Chain::ShimsBehindCFrame { c_frame, current_frame, previous_c_frame }) = self.layout.thread.chain
        else {
            return Err(Problem::NotAFrame);
        };
        let loops = EvalLoops { reader: self, state, current_frame, previous: previous_c_frame };
        let c_frame = self.word(state, c_frame)?;
        if !is_plausible(c_frame) {
            // A thread state that no thread has begun to use has no loop.
            return if c_frame == 0 { Ok(LoopTop { frame: 0, c_frame }) } else { Err(Problem::BetweenLoops) };
        }
        let top = LoopTop { frame: self.word(c_frame, current_frame)?, c_frame };
        if loops.is_last(c_frame) {
            return Ok(top);
        }
        let outer = loops.after(c_frame).ok_or(Problem::BetweenLoops)?;
        let is_complete = |top: LoopTop| self.is_frame(top.frame) && loops.are_complete(top);
        [top, outer].into_iter().find(|top| is_complete(*top)).ok_or(Problem::BetweenLoops)
    }

    fn is_frame(&self, frame: u64) -> bool {
        is_plausible(frame) && self.frame(frame).is_ok_and(|raw| self.classify(raw).is_ok())
    }
}

impl EvalLoops<'_> {
    pub(super) fn is_last(&self, c_frame: u64) -> bool {
        c_frame.wrapping_sub(self.state) < MAX_STATE_SIZE
    }

    /// Returns the next loop, which must be further up the stack, or the last one.
    pub(super) fn after(&self, c_frame: u64) -> Option<LoopTop> {
        if self.is_last(c_frame) {
            return None;
        }
        let next = self.reader.snapshot.word(c_frame, self.previous)?;
        let is_further = next > c_frame && next - c_frame < MAX_STACK_SIZE;
        let may_follow = is_plausible(next) && (is_further || self.is_last(next));
        may_follow
            .then(|| self.reader.snapshot.word(next, self.current_frame))
            .flatten()
            .map(|frame| LoopTop { frame, c_frame: next })
    }

    /// Returns whether the frames of each loop lead to those of the next.
    fn are_complete(&self, mut top: LoopTop) -> bool {
        let mut steps = VisitedFrames::default();
        while top.frame != 0 {
            let Some(outer) = self.after(top.c_frame) else { return false };
            if !self.leads_to(top.frame, outer.frame, &mut steps) {
                return false;
            }
            top = outer;
        }
        true
    }

    fn leads_to(&self, mut frame: u64, outer: u64, steps: &mut VisitedFrames) -> bool {
        while steps.visit(frame).is_ok() {
            let Ok(raw) = self.reader.frame(frame) else { return false };
            if raw.ends_loop {
                return raw.previous == outer;
            }
            frame = raw.previous;
        }
        false
    }
}
