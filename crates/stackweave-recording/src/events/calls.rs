//! Calls that a tracer records, and what it notes about its own work.

use super::declare::family;

family! { "Calls" {
    /// A Python function is called.
    CALL = "call": Begin(CALL);
    /// A native function is called.
    C_CALL = "c-call": Begin(CALL);
    /// A generator or a coroutine begins.
    GENERATOR = "generator": Begin(CALL, OBJECT);
    /// A generator or a coroutine goes on.
    RESUME = "resume": Resume(CALL, OBJECT);
    /// A call is open that began before.
    OPEN = "open": Open(CALL, DEPTH);
    /// The generator or the coroutine that began last yields.
    YIELD = "yield": End();
    /// An exception leaves the call that began last.
    RAISE = "raise": End();
    /// A garbage collection begins.
    GC = "gc": Begin(FRAME, GENERATION);
    /// The garbage collection ends.
    GC_END = "gc-end": End(COLLECTED, UNCOLLECTABLE);
    /// The object is called as the frame, a label, until another object begins at its address.
    NAME = "name": Name(FRAME, OBJECT);
    /// The calls of a function are not recorded any more: it is short and called often.
    DEMOTED = "demoted": Instant(FRAME, CALLS, MEAN);
    /// Something happened to the tracer so often, as the frame says.
    TRACE_NOTE = "trace-note": Instant(FRAME, COUNT);
} }

/// What an object is called from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The label with the name: the number of a frame.
    pub frame: u32,
    /// The address of the object.
    pub object: u64,
}
