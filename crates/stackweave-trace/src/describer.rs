//! Queries that only Python can answer. They are rare.

use stackweave_core::{RawFrame, StackId};

/// A call that is to be described, at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedCall {
    /// The address of its code object.
    pub code: u64,
    /// The address of its frame's first variable, one word each: see [`locals`](stackweave_cpython::calls::CallFrame).
    pub locals: u64,
    /// A bit for each of the first 64 patterns of described functions that match it.
    pub matched: u64,
    /// Whether the native stack is wanted.
    pub native: bool,
}

/// The description of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The name of the call; `None`: that of its function.
    pub label: Option<RawFrame>,
    /// The stack on which it began.
    pub stack: Option<StackId>,
    /// Details as a JSON object; may be empty.
    pub details: Vec<u8>,
}

/// Answers queries that only Python can answer.
///
/// Called with the GIL held, in the middle of the program: an exception that is set must be set afterwards, and no
/// other. Python code that runs meanwhile on the same thread is not traced.
pub trait Describer: Send {
    /// Returns the description of a call. `None`: it is recorded as any other call.
    fn describe(&self, call: DescribedCall) -> Option<Description>;

    /// Returns the name of the task that runs on this thread.
    fn task_name(&self) -> Option<String>;

    /// Returns the name of this thread, once it has one.
    fn thread_name(&self) -> Option<String>;

    /// Returns pairs of the id by which Python knows a thread (`threading.get_ident`), and the kernel's id.
    fn kernel_threads(&self) -> Vec<(u64, u32)>;

    /// Runs work of the tracer that makes the interpreter allocate, so that a memory recorder does not record it.
    fn without_memory_recording(&self, work: &mut dyn FnMut()) {
        work();
    }
}
