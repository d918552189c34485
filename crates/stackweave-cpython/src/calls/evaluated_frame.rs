//! The frame that the evaluation hook of 3.11 passes on: before it is linked to its caller, and after it is freed.
//!
//! Hot file: no allocation, no lock; a few loads each.

use super::CallFrame;
use super::live_frame::LiveFrame;

type LinkedFrame = LiveFrame<11>;

/// A frame, with copies of what is needed when the frame itself can't be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvaluatedFrame {
    address: u64,
    code: u64,
    unit: u32,
    has_ended: bool,
    /// The thread state whose running frame is the caller; 0: the frame is linked to its caller.
    state: u64,
}

impl EvaluatedFrame {
    /// Creates a frame that is about to run.
    #[inline(always)]
    pub(super) fn entering(frame: LinkedFrame, state: u64) -> Self {
        Self { state, ..Self::linked(frame) }
    }

    /// Creates a frame that has ended: its memory may be used for another.
    #[inline(always)]
    pub(super) fn ended(self) -> Self {
        Self { unit: u32::MAX, has_ended: true, ..self }
    }

    #[inline(always)]
    fn linked(frame: LinkedFrame) -> Self {
        Self { address: frame.address(), code: frame.code(), unit: frame.unit(), has_ended: false, state: 0 }
    }
}

impl CallFrame for EvaluatedFrame {
    #[inline(always)]
    fn address(self) -> u64 {
        self.address
    }

    #[inline(always)]
    fn code(self) -> u64 {
        self.code
    }

    #[inline(always)]
    fn caller(self) -> Option<Self> {
        let caller = if self.state == 0 {
            // SAFETY: a linked frame is on the stack of this thread.
            unsafe { LinkedFrame::new(self.address) }.caller()
        } else {
            // SAFETY: the state is that of the thread whose event this is.
            unsafe { LinkedFrame::first_visible(LinkedFrame::running(self.state)) }
        };
        caller.map(Self::linked)
    }

    #[inline(always)]
    fn caller_at(self, address: u64) -> Option<Self> {
        let caller = if self.state == 0 {
            // SAFETY: a linked frame is on the stack of this thread.
            unsafe { LinkedFrame::new(self.address) }.caller_at(address)
        } else {
            // SAFETY: the state is that of the thread whose event this is; what it runs is a frame.
            let running = unsafe { LinkedFrame::running(self.state) };
            // Nothing runs where C calls Python on a thread that has no frame yet.
            // SAFETY: as above.
            (running == address && address != 0).then(|| unsafe { LinkedFrame::new(address) })
        };
        caller.map(Self::linked)
    }

    #[inline(always)]
    fn unit(self) -> u32 {
        self.unit
    }

    #[inline(always)]
    fn locals(self) -> u64 {
        if self.has_ended { 0 } else { self.address + const { LinkedFrame::LAYOUT.frame.locals as u64 } }
    }
}
