//! Recognises a repeated capture, as in a loop that allocates, which need not be woven again.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::StackId;
use stackweave_unwind::{Captured, LastStackMark};

use crate::request::{Capture, CaptureRequest, CaptureStart};
use crate::sources::WalkedSources;

/// The last capture, and everything that determined its stack once both walks were done. All zeros are a valid
/// value: no capture yet.
#[derive(Debug)]
pub(crate) struct LastCapture {
    stack: Option<StackId>,
    is_cut: u64,
    mark: LastStackMark,
    native_len: usize,
    native_stop: u64,
    interpreted_len: usize,
    interpreted_stop: u64,
    kinds: u64,
    skip: usize,
    limit: usize,
    start: (u64, u64, u64),
}

impl LastCapture {
    /// Returns the stack of the last capture, if this one, with both walks done, has the same stack.
    #[inline(always)]
    pub(crate) fn find(&self, request: &CaptureRequest, walked: &WalkedSources, native: Captured) -> Option<Capture> {
        if !(walked.is_unchanged || walked.len == 0) || !may_repeat(request, walked) {
            return None;
        }
        // Compare the parts one by one instead of building a struct: a load of a whole that was stored in parts
        // would stall.
        let mark = stackweave_unwind::last_stack()?;
        let start = words_of(&request.start);
        let differs = (self.mark.thread_state ^ mark.thread_state)
            | (self.mark.version ^ mark.version)
            | (self.native_len ^ native.len) as u64
            | (self.native_stop ^ native.stop as u64)
            | (self.interpreted_len ^ walked.len) as u64
            | (self.interpreted_stop ^ walked.stop as u64)
            | (self.kinds ^ kinds_of(request))
            | (self.skip ^ request.skip) as u64
            | (self.limit ^ request.limit) as u64
            | (self.start.0 ^ start.0)
            | (self.start.1 ^ start.1)
            | (self.start.2 ^ start.2);
        if differs != 0 || self.stack.is_none() {
            return None;
        }
        let is_cut = self.is_cut != 0;
        Some(Capture { stack: self.stack, native_stop: native.stop, source_stop: walked.stop, is_cut })
    }

    /// Stores a capture, or clears the last one if it cannot be repeated.
    #[inline(always)]
    pub(crate) fn keep(
        &mut self,
        request: &CaptureRequest,
        walked: &WalkedSources,
        native: Captured,
        capture: Capture,
    ) {
        self.forget();
        if !may_repeat(request, walked) {
            return;
        }
        let Some(mark) = stackweave_unwind::last_stack() else { return };
        *self = Self {
            stack: capture.stack,
            is_cut: capture.is_cut.into(),
            mark,
            native_len: native.len,
            native_stop: native.stop as u64,
            interpreted_len: walked.len,
            interpreted_stop: walked.stop as u64,
            kinds: kinds_of(request),
            skip: request.skip,
            limit: request.limit,
            start: words_of(&request.start),
        };
    }

    /// Clears the last capture, so that the next one is woven.
    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.stack = None;
    }
}

/// Returns whether equal walks lead to an equal stack: without native frames there is nothing to weave, and other
/// interpreters do not report whether their frames have changed.
#[inline(always)]
fn may_repeat(request: &CaptureRequest, walked: &WalkedSources) -> bool {
    request.native && !walked.has_scripts
}

#[inline(always)]
fn kinds_of(request: &CaptureRequest) -> u64 {
    u64::from(request.python) | u64::from(request.script) << 1
}

#[inline(always)]
fn words_of(start: &CaptureStart) -> (u64, u64, u64) {
    match start {
        CaptureStart::Caller => (1, 0, 0),
        CaptureStart::OutsideOf(range) => (2, range.start, range.end),
        CaptureStart::CallerOf(place) => (3, place.0, 0),
        CaptureStart::PythonCaller => (4, 0, 0),
    }
}
