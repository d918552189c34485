//! The frames that calls are told with: one type per version, so that its offsets are constants.
//!
//! Hot file: no allocation, no lock; a few loads each.

use core::ptr;

use super::CallFrame;
use crate::memory::is_plausible;
use crate::version::{Chain, Layout};
use crate::walk::place::{Place, place_in_code};
use crate::walk::{SHIM, TAG, UNIT};

/// The owner of a frame that is part of a generator.
const GENERATOR: u8 = 1;

/// A frame of Python 3.`MINOR`, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<const MINOR: u8>(u64);

/// What a frame is to its callees.
enum Shown {
    Yes,
    /// It is being made, or runs no Python.
    No,
    /// It is none.
    Bad,
}

/// As [`memory::load`](crate::memory::load), of what nobody else changes: two loads of one field may become one.
///
/// # Safety
/// It is readable, and any bits are a valid `T`.
#[inline(always)]
pub(super) unsafe fn field<T: Copy>(address: u64, offset: usize) -> T {
    let pointer = ptr::with_exposed_provenance::<u8>(address as usize + offset);
    // SAFETY: passed on to the caller; fields of the interpreter are aligned.
    unsafe { pointer.cast::<T>().read() }
}

impl<const MINOR: u8> Frame<MINOR> {
    pub(super) const LAYOUT: Layout = Layout::must_have(MINOR);

    /// # Safety
    /// A frame of this version, of the calling thread or of one that does not run, is there as long as this is used.
    #[inline(always)]
    pub(crate) const unsafe fn new(address: u64) -> Self {
        Self(address)
    }

    /// The frame that a thread state runs.
    ///
    /// # Safety
    /// The state is alive, and its frames stay as they are.
    #[inline(always)]
    pub(crate) unsafe fn running(state: u64) -> u64 {
        // SAFETY: passed on to the caller; a `_PyCFrame` is there as long as its eval loop, or the state.
        unsafe {
            match const { Self::LAYOUT.thread.chain } {
                Chain::FrameObjects { frame, .. } => field(state, frame),
                Chain::EntryFlags { c_frame, current_frame, .. }
                | Chain::ShimsBehindCFrame { c_frame, current_frame, .. } => {
                    field(field(state, c_frame), current_frame)
                }
                Chain::Shims { current_frame } => field(state, current_frame),
            }
        }
    }

    /// The first frame that runs Python, from this address on outward.
    ///
    /// # Safety
    /// The address is 0, or that of a frame as for [`Frame::new`].
    #[inline(always)]
    pub(crate) unsafe fn first_shown(mut address: u64) -> Option<Self> {
        while is_plausible(address) {
            let frame = Self(address);
            match frame.shown() {
                Shown::Yes => return Some(frame),
                Shown::No => address = frame.previous(),
                Shown::Bad => return None,
            }
        }
        None
    }

    /// Whether it is part of a generator, a coroutine or an asynchronous generator. Not on 3.10.
    #[inline(always)]
    pub(super) fn is_in_generator(self) -> bool {
        self.owner() == GENERATOR
    }

    /// Whether nothing of its code has run: of a generator, what its first `next` runs.
    #[inline(always)]
    pub(super) fn is_before(self, unit: u32) -> bool {
        let here = self.unit();
        here == u32::MAX || here < unit
    }

    /// The first code unit that counts as begun. Not on 3.10.
    #[inline(always)]
    pub(super) fn first_traceable(self) -> u32 {
        // SAFETY: a frame keeps its code object alive.
        unsafe { field(self.code(), const { Self::LAYOUT.code.first_traceable }) }
    }

    /// `co_flags` of its code.
    #[inline(always)]
    pub(super) fn code_flags(self) -> u32 {
        // SAFETY: a frame keeps its code object alive.
        unsafe { field(self.code(), const { Self::LAYOUT.code.flags }) }
    }

    /// The instruction that it stands at, as the interpreter has rewritten it. Not on 3.10.
    #[inline(always)]
    pub(super) fn opcode(self) -> u8 {
        // SAFETY: a frame that has begun points into its code, which it keeps alive.
        unsafe { field(self.instruction(), 0) }
    }

    #[inline(always)]
    fn shown(self) -> Shown {
        if MINOR == 10 {
            return if is_plausible(self.code()) { Shown::Yes } else { Shown::Bad };
        }
        let owner = self.owner();
        if owner >= SHIM {
            return Shown::No;
        }
        // SAFETY: the frame runs Python, and is alive.
        match unsafe { place_in_code(const { &Self::LAYOUT }, self.code(), self.instruction(), owner) } {
            Place::At(_) | Place::InGenerator(_) => Shown::Yes,
            Place::NotBegun => Shown::No,
            Place::Nowhere => Shown::Bad,
        }
    }

    #[inline(always)]
    fn owner(self) -> u8 {
        // SAFETY: the frame is alive.
        unsafe { field(self.0, const { Self::LAYOUT.frame.owner }) }
    }

    #[inline(always)]
    fn instruction(self) -> u64 {
        // SAFETY: the frame is alive.
        unsafe { field(self.0, const { Self::LAYOUT.frame.instruction }) }
    }

    #[inline(always)]
    fn previous(self) -> u64 {
        // SAFETY: the frame is alive.
        unsafe { field(self.0, const { Self::LAYOUT.frame.previous }) }
    }
}

impl<const MINOR: u8> CallFrame for Frame<MINOR> {
    #[inline(always)]
    fn address(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn code(self) -> u64 {
        // SAFETY: the frame is alive.
        let code: u64 = unsafe { field(self.0, const { Self::LAYOUT.frame.code }) };
        code & !TAG
    }

    #[inline(always)]
    fn caller(self) -> Option<Self> {
        // SAFETY: a frame that runs has what it was called from before it.
        unsafe { Self::first_shown(self.previous()) }
    }

    #[inline(always)]
    fn caller_at(self, address: u64) -> Option<Self> {
        (self.previous() == address).then_some(Self(address))
    }

    #[inline(always)]
    fn unit(self) -> u32 {
        if MINOR == 10 {
            // SAFETY: the frame is alive; on 3.10 it has the index itself.
            return unsafe { field(self.0, const { Self::LAYOUT.frame.instruction }) };
        }
        let units = const { Self::LAYOUT.code.units as u64 };
        (self.instruction().wrapping_sub(self.code()).wrapping_sub(units) / UNIT) as u32
    }

    #[inline(always)]
    fn locals(self) -> u64 {
        self.0 + const { Self::LAYOUT.frame.locals as u64 }
    }
}
