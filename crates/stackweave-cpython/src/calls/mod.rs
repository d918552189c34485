//! Calls, as the interpreter tells of them: this is the contract, the mechanisms are beside it.
//!
//! Whoever observes is compiled into the functions that the interpreter calls, once for each version's frames: nothing is
//! looked up on the way.

mod api;
mod callback;
mod current_state;
mod error;
mod eval_check;
mod eval_hook;
mod evaluate;
mod evaluated;
mod frame;
mod hooks;
mod look;
mod monitoring;
mod monitoring_callbacks;
mod native;
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
pub use look::{FrameAt, known_code};
pub use native::native_definition;

/// How a frame comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entering {
    /// It begins.
    Call,
    /// It goes on: a generator or a coroutine.
    Resume,
    /// It goes on with an exception that was thrown into it.
    Throw,
}

/// How a frame comes to an end, for now or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It returns.
    Return,
    /// It yields, and may go on later.
    Yield,
    /// An exception leaves it.
    Raise,
}

/// What the observer wants to hear of the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything.
    Tell,
    /// Nothing more of this event at this place of this code object, if the mechanism can do without telling.
    Disable,
}

/// A frame of the calling thread, as long as its event is told.
pub trait CallFrame: Copy {
    /// Its address: no other frame that is open, or suspended, has the same.
    fn address(self) -> u64;

    /// The address of its code object.
    fn code(self) -> u64;

    /// The nearest frame around it that runs Python, whatever native code is in between.
    fn caller(self) -> Option<Self>;

    /// Its caller, if that is the frame at this address, which runs Python and is open. May say `None` for one that is behind
    /// native code: cheaper than [`CallFrame::caller`].
    #[inline(always)]
    fn caller_at(self, address: u64) -> Option<Self> {
        self.caller().filter(|caller| caller.address() == address)
    }

    /// The code unit that it stands at: half of `f_lasti`.
    fn unit(self) -> u32;

    /// The address of the first of its local variables, in the order of the code's names: one word each, from 3.14 on with
    /// tag bits. 0 once the frame has ended.
    fn locals(self) -> u64;
}

/// Who is told. The GIL is held, no exception of the observer's gets out, and an exception of the program's may be set.
pub trait CallObserver: 'static {
    /// A frame begins to run.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict;

    /// A frame is about to end.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict;

    /// A frame calls a native function: `callable` is the address of a `PyCFunctionObject` or of a
    /// `PyMethodDescrObject`.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F);

    /// The native function that was called last is over.
    ///
    /// # Safety
    /// Called by a mechanism, on the thread of the frame.
    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F);
}
