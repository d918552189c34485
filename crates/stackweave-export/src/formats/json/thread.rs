//! What a thread has open while its events are read.

use stackweave_recording::events;
use stackweave_recording::read::OpenStack;

/// A place in the program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The number of its stack in the file; 0 if it has no frames that are seen.
    pub(super) stack: u32,
    /// What a view keeps from frame to frame.
    pub(super) is_library: bool,
}

/// A span that is open: its frame in the recording, and the place inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub(super) frame: u32,
    pub(super) inside: Place,
}

#[derive(Default)]
pub(super) struct Thread {
    /// What it has begun, outermost first.
    pub(super) open: OpenStack<Opened>,
    /// The ticks at which events of it are missing, the next one last.
    pub(super) losses: Vec<u64>,
    /// The frame of its tag; 0 if it has none.
    pub(super) tag: u32,
}

impl Thread {
    /// The place inside all that is open.
    pub(super) fn place(&self) -> Place {
        self.open.last().map_or_else(Place::default, |opened| opened.inside)
    }

    /// Something is open. Whether it has to be begun: then all is ended that was open in its place.
    pub(super) fn open(&mut self, ticks: u64, open: &events::Open) -> bool {
        let events::Open { frame, depth, .. } = *open;
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

    /// Something else happens: what the opens before it have left out has ended, and so has all where events were lost.
    pub(super) fn settle(&mut self, ticks: u64) {
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
