//! The interface for observers of Python calls; the mechanisms are in the other files.
//!
//! An observer is compiled into the functions that the interpreter calls, once for each version's frames: nothing is
//! looked up at run time.

mod api;
mod callback;
mod current_state;
mod error;
mod eval_check;
mod eval_function;
mod eval_hook;
mod evaluated_frame;
mod hooks;
mod inspection;
mod live_frame;
mod monitoring;
mod monitoring_callbacks;
mod native_functions;
mod profile_function;
mod profile_slot;
mod stack_guard;
#[cfg(not(target_arch = "x86_64"))]
#[path = "thread_memory_portable.rs"]
mod thread_memory;
#[cfg(target_arch = "x86_64")]
#[path = "thread_memory_x86_64.rs"]
mod thread_memory;

#[cfg(feature = "testing")]
pub use current_state::is_read_directly;
pub use error::HookError;
pub use hooks::{HookOptions, Hooks, Mechanism};
pub use inspection::{StackFrame, known_code};
pub use native_functions::native_definition;

/// The way in which a frame starts to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entering {
    /// A call begins.
    Call,
    /// A generator or a coroutine continues.
    Resume,
    /// It continues with an exception that was thrown into it.
    Throw,
}

/// The way in which a frame stops running, for now or forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It returns.
    Return,
    /// It yields, and may continue later.
    Yield,
    /// An exception propagates out of it.
    Raise,
}

/// Which further events the observer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All events.
    Record,
    /// No more of this event at this instruction of this code object, if the mechanism can disable it.
    Disable,
}

/// A frame of the calling thread, during its event.
pub trait CallFrame: Copy {
    /// Returns the address: no other frame that is running or suspended has the same.
    fn address(self) -> u64;

    /// Returns the address of the code object.
    fn code(self) -> u64;

    /// Returns the nearest outer frame that runs Python, whatever native code is in between.
    fn caller(self) -> Option<Self>;

    /// Returns the caller, if that is the frame at this address, which runs Python and has not ended. May return `None`
    /// if native code is in between. Cheaper than [`CallFrame::caller`].
    #[inline(always)]
    fn caller_at(self, address: u64) -> Option<Self> {
        self.caller().filter(|caller| caller.address() == address)
    }

    /// Returns the code unit of the current instruction: half of `f_lasti`.
    fn unit(self) -> u32;

    /// Returns the address of the first local variable, in the order of the code's names: one word each, from 3.14 on
    /// with tag bits. 0 once the frame has ended.
    fn locals(self) -> u64;
}

/// An observer of calls. The GIL is held, and an exception of the program may be set. The observer must not raise.
pub trait CallObserver: 'static {
    /// Handles the start of a frame.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict;

    /// Handles the end of a frame, which still exists.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict;

    /// Handles the call of a native function by a frame: `callable` is the address of a `PyCFunctionObject` or of a
    /// `PyMethodDescrObject`.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F);

    /// Handles the end of the native function that was called last.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F);
}
