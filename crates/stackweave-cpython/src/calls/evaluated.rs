//! The frame that the evaluation hook of 3.11 tells of: before it is linked to its caller, and after it is gone.
//!
//! Hot file: no allocation, no lock; a few loads each.

use super::CallFrame;
use super::frame::Frame;

type Linked = Frame<11>;

/// A frame with what has to be known of it while, or after, the frame itself can't be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluated {
    address: u64,
    code: u64,
    unit: u32,
    has_ended: bool,
    /// The thread state whose running frame is the caller; 0: the frame is linked to its caller.
    state: u64,
}

impl Evaluated {
    /// A frame that is about to run.
    #[inline(always)]
    pub(super) fn entering(frame: Linked, state: u64) -> Self {
        Self { state, ..Self::linked(frame) }
    }

    /// A frame that has ended: its memory may be used for another.
    #[inline(always)]
    pub(super) fn ended(self) -> Self {
        Self { unit: u32::MAX, has_ended: true, ..self }
    }

    #[inline(always)]
    fn linked(frame: Linked) -> Self {
        Self { address: frame.address(), code: frame.code(), unit: frame.unit(), has_ended: false, state: 0 }
    }
}

impl CallFrame for Evaluated {
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
            unsafe { Linked::new(self.address) }.caller()
        } else {
            // SAFETY: the state is that of the thread that is told.
            unsafe { Linked::first_shown(Linked::running(self.state)) }
        };
        caller.map(Self::linked)
    }

    #[inline(always)]
    fn caller_at(self, address: u64) -> Option<Self> {
        let caller = if self.state == 0 {
            // SAFETY: a linked frame is on the stack of this thread.
            unsafe { Linked::new(self.address) }.caller_at(address)
        } else {
            // SAFETY: the state is that of the thread that is told; what it runs is a frame.
            let running = unsafe { Linked::running(self.state) };
            // Nothing runs where C calls Python on a thread that has no frame yet.
            // SAFETY: as above.
            (running == address && address != 0).then(|| unsafe { Linked::new(address) })
        };
        caller.map(Self::linked)
    }

    #[inline(always)]
    fn unit(self) -> u32 {
        self.unit
    }

    #[inline(always)]
    fn locals(self) -> u64 {
        if self.has_ended { 0 } else { self.address + const { Linked::LAYOUT.frame.locals as u64 } }
    }
}
