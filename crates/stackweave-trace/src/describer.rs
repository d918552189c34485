//! What only Python can say. It is asked seldom.

use stackweave_core::{RawFrame, StackId};

/// A call that is to be described, as it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedCall {
    /// The address of its code object.
    pub code: u64,
    /// The address of its frame's first variable, one word each: see [`locals`](stackweave_cpython::calls::CallFrame).
    pub locals: u64,
    /// A bit for each of the first 64 of the described functions that it is one of.
    pub matched: u64,
    /// Whether the native stack is wanted.
    pub native: bool,
}

/// What there is to say about a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// What it is called; as its function if it is nothing else.
    pub label: Option<RawFrame>,
    /// The stack that it began on.
    pub stack: Option<StackId>,
    /// More about it: a JSON object, or nothing.
    pub details: Vec<u8>,
}

/// Knows what only Python does.
///
/// Asked with the GIL held, in the middle of the program: an exception that is set must be set afterwards, and no other.
/// What Python code runs meanwhile on the same thread is not traced.
pub trait Describer: Send {
    /// What there is to say about a call. `None`: it is a call like any other.
    fn describe(&self, call: DescribedCall) -> Option<Description>;

    /// The name of the task that runs on this thread.
    fn task_name(&self) -> Option<String>;

    /// The name of this thread, once it has one.
    fn thread_name(&self) -> Option<String>;

    /// What the kernel calls the threads that Python knows by these numbers (`threading.get_ident`).
    fn kernel_threads(&self) -> Vec<(u64, u32)>;

    /// Does something of ours that has the interpreter take memory: who records memory is told nothing of it.
    fn unseen(&self, work: &mut dyn FnMut()) {
        work();
    }
}
