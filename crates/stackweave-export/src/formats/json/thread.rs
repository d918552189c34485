//! The open spans of a thread while its events are read.

use stackweave_recording::events;
use stackweave_recording::read::OpenStack;

/// A stack in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackContext {
    /// The number of the stack in the file; 0 if it has no visible frames.
    pub(super) stack: u32,
    /// The state of [`View::shows`] for the next frame.
    pub(super) is_library: bool,
}

/// An open span: its frame in the recording, and the stack inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFrame {
    pub(super) frame: u32,
    pub(super) inside: StackContext,
}

#[derive(Default)]
pub(super) struct ThreadReader {
    /// The open spans, outermost first.
    pub(super) open: OpenStack<OpenFrame>,
    /// The ticks at which events of the thread are missing, the next one last.
    pub(super) losses: Vec<u64>,
    /// The frame of its tag; 0 if it has none.
    pub(super) tag: u32,
}

impl ThreadReader {
    /// Returns the stack inside all open spans.
    pub(super) fn context(&self) -> StackContext {
        self.open.last().map_or_else(StackContext::default, |opened| opened.inside)
    }

    /// Records that a span is open. Returns whether it has to be begun: then all other spans at its depth have ended.
    pub(super) fn open(&mut self, ticks: u64, open: &events::OpenSpan) -> bool {
        let events::OpenSpan { frame, depth, .. } = *open;
        while self.losses.last().is_some_and(|lost| ticks > *lost) {
            self.losses.pop();
        }
        if !self.open.goes_on(depth) {
            self.end_beyond();
        }
        if frame == 0 {
            self.open.open_nothing(depth);
            self.end_beyond();
            return false;
        }
        let has_begun = self.open.open(depth, |open| open.frame == frame);
        if has_begun {
            self.end_beyond();
        }
        has_begun
    }

    /// Ends the spans that earlier records of open spans did not repeat, and all spans where events were lost.
    pub(super) fn end_unrepeated(&mut self, ticks: u64) {
        self.end_beyond();
        while self.losses.last().is_some_and(|lost| ticks > *lost) {
            while self.open.take_innermost().is_some() {}
            self.losses.pop();
        }
    }

    fn end_beyond(&mut self) {
        while self.open.take_beyond().is_some() {}
    }
}
