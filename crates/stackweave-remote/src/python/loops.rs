//! The eval loops of 3.11 and 3.12: a list of `_PyCFrame`s on the C stack, innermost first.
//!
//! The interpreter announces a loop before it has filled in what it says of it. A thread may be stopped in between, so
//! the innermost is believed only if everything fits; else the walk begins at the next.

use stackweave_cpython::layout::{Chain, is_plausible};

use super::chain::{Reader, Steps};
use super::problem::Problem;

/// Where a walk begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Top {
    pub(super) frame: u64,
    pub(super) c_frame: u64,
}

/// The list of a thread. Its last is in the thread state, and runs nothing.
#[derive(Clone, Copy)]
pub(super) struct Loops<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) state: u64,
    pub(super) current_frame: usize,
    pub(super) previous: usize,
}

/// No thread state is larger, no stack either.
const LARGEST_STATE: u64 = 1024;
const LARGEST_STACK: u64 = 1 << 30;

impl Reader<'_> {
    /// The innermost eval loop that is whole.
    pub(super) fn settled_top(&self, state: u64) -> Result<Top, Problem> {
        let (Chain::EntryFlags { c_frame, current_frame, previous_c_frame, .. }
        | Chain::ShimsBehindCFrame { c_frame, current_frame, previous_c_frame }) = self.layout.thread.chain
        else {
            return Err(Problem::NotAFrame);
        };
        let loops = Loops { reader: self, state, current_frame, previous: previous_c_frame };
        let c_frame = self.word(state, c_frame)?;
        if !is_plausible(c_frame) {
            // A state that no thread has begun to use has none.
            return if c_frame == 0 { Ok(Top { frame: 0, c_frame }) } else { Err(Problem::BetweenLoops) };
        }
        let top = Top { frame: self.word(c_frame, current_frame)?, c_frame };
        if loops.is_last(c_frame) {
            return Ok(top);
        }
        let outer = loops.after(c_frame).ok_or(Problem::BetweenLoops)?;
        let is_whole = |top: Top| self.is_frame(top.frame) && loops.are_whole(top);
        [top, outer].into_iter().find(|top| is_whole(*top)).ok_or(Problem::BetweenLoops)
    }

    fn is_frame(&self, frame: u64) -> bool {
        is_plausible(frame) && self.frame(frame).is_ok_and(|raw| self.what(raw).is_ok())
    }
}

impl Loops<'_> {
    pub(super) fn is_last(&self, c_frame: u64) -> bool {
        c_frame.wrapping_sub(self.state) < LARGEST_STATE
    }

    /// The next, which must be further up the stack, or the last.
    pub(super) fn after(&self, c_frame: u64) -> Option<Top> {
        if self.is_last(c_frame) {
            return None;
        }
        let next = self.reader.snapshot.word(c_frame, self.previous)?;
        let is_further = next > c_frame && next - c_frame < LARGEST_STACK;
        let may_follow = is_plausible(next) && (is_further || self.is_last(next));
        may_follow
            .then(|| self.reader.snapshot.word(next, self.current_frame))
            .flatten()
            .map(|frame| Top { frame, c_frame: next })
    }

    /// Whether the frames of each loop lead to those of the next.
    fn are_whole(&self, mut top: Top) -> bool {
        let mut steps = Steps::default();
        while top.frame != 0 {
            let Some(outer) = self.after(top.c_frame) else { return false };
            if !self.leads_to(top.frame, outer.frame, &mut steps) {
                return false;
            }
            top = outer;
        }
        true
    }

    fn leads_to(&self, mut frame: u64, outer: u64, steps: &mut Steps) -> bool {
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
