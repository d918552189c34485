//! Live frames of calls: one type per version, so that its offsets are constants.
//!
//! Hot file: no allocation, no lock; a few loads each.

use core::ptr;

use super::CallFrame;
use crate::memory::is_plausible;
use crate::version::{Chain, VersionLayout};
use crate::walk::code_position::{CodePosition, code_position};
use crate::walk::{SHIM, TAG, UNIT};

/// The owner of a frame that is part of a generator.
const GENERATOR: u8 = 1;

/// A frame of Python 3.`MINOR`, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveFrame<const MINOR: u8>(u64);

/// Whether callees see a frame as their caller.
enum Visibility {
    Visible,
    /// It is being created, or runs no Python.
    Hidden,
    /// It is not a frame.
    Bad,
}

/// Reads a field like [`memory::load`](crate::memory::load), for memory that no other thread changes: the compiler may
/// merge loads.
///
/// # Safety
/// The field is readable, and any bits are a valid `T`.
#[inline(always)]
pub(super) unsafe fn field<T: Copy>(address: u64, offset: usize) -> T {
    let pointer = ptr::with_exposed_provenance::<u8>(address as usize + offset);
    // SAFETY: passed on to the caller; fields of the interpreter are aligned.
    unsafe { pointer.cast::<T>().read() }
}

impl<const MINOR: u8> LiveFrame<MINOR> {
    pub(super) const LAYOUT: VersionLayout = VersionLayout::must_have(MINOR);

    /// # Safety
    /// A frame of this version, of the calling thread or of one that does not run, is at the address while this is
    /// used.
    #[inline(always)]
    pub(crate) const unsafe fn new(address: u64) -> Self {
        Self(address)
    }

    /// Returns the address of the frame that a thread state runs.
    ///
    /// # Safety
    /// The state is alive, and its frames do not change.
    #[inline(always)]
    pub(crate) unsafe fn running(state: u64) -> u64 {
        // SAFETY: passed on to the caller; a `_PyCFrame` lives as long as its eval loop, or the state.
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

    /// Returns the first frame that runs Python, from this address outward.
    ///
    /// # Safety
    /// The address is 0, or that of a frame as for [`LiveFrame::new`].
    #[inline(always)]
    pub(crate) unsafe fn first_visible(mut address: u64) -> Option<Self> {
        while is_plausible(address) {
            let frame = Self(address);
            match frame.visibility() {
                Visibility::Visible => return Some(frame),
                Visibility::Hidden => address = frame.previous(),
                Visibility::Bad => return None,
            }
        }
        None
    }

    /// Returns whether it is part of a generator, a coroutine or an asynchronous generator. Not on 3.10.
    #[inline(always)]
    pub(super) fn is_in_generator(self) -> bool {
        self.owner() == GENERATOR
    }

    /// Returns whether the frame has not reached this unit: for a generator, before its first `next`.
    #[inline(always)]
    pub(super) fn is_before(self, unit: u32) -> bool {
        let here = self.unit();
        here == u32::MAX || here < unit
    }

    /// Returns the first code unit that counts as begun. Not on 3.10.
    #[inline(always)]
    pub(super) fn first_traceable(self) -> u32 {
        // SAFETY: a frame keeps its code object alive.
        unsafe { field(self.code(), const { Self::LAYOUT.code.first_traceable }) }
    }

    /// Returns `co_flags` of its code.
    #[inline(always)]
    pub(super) fn code_flags(self) -> u32 {
        // SAFETY: a frame keeps its code object alive.
        unsafe { field(self.code(), const { Self::LAYOUT.code.flags }) }
    }

    /// Returns the opcode of its current instruction, as the interpreter has specialized it. Not on 3.10.
    #[inline(always)]
    pub(super) fn opcode(self) -> u8 {
        // SAFETY: a frame that has begun points into its code, which it keeps alive.
        unsafe { field(self.instruction(), 0) }
    }

    #[inline(always)]
    fn visibility(self) -> Visibility {
        if MINOR == 10 {
            return if is_plausible(self.code()) { Visibility::Visible } else { Visibility::Bad };
        }
        let owner = self.owner();
        if owner >= SHIM {
            return Visibility::Hidden;
        }
        // SAFETY: the frame runs Python, and is alive.
        match unsafe { code_position(const { &Self::LAYOUT }, self.code(), self.instruction(), owner) } {
            CodePosition::At(_) | CodePosition::InGenerator(_) => Visibility::Visible,
            CodePosition::NotBegun => Visibility::Hidden,
            CodePosition::Invalid => Visibility::Bad,
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

impl<const MINOR: u8> CallFrame for LiveFrame<MINOR> {
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
        // SAFETY: a running frame is linked to its caller.
        unsafe { Self::first_visible(self.previous()) }
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
