//! Calls that a tracer records, and its notes about its own work.

use super::declare::family;

family! { "Calls" {
    /// A Python function is called.
    CALL = "call": Begin(CALL);
    /// A native function is called.
    C_CALL = "c-call": Begin(CALL);
    /// A generator or a coroutine begins.
    GENERATOR = "generator": Begin(CALL, OBJECT);
    /// A generator or a coroutine is resumed.
    RESUME = "resume": Resume(CALL, OBJECT);
    /// A call that began earlier is open.
    OPEN = "open": Open(CALL, DEPTH);
    /// The innermost call, a generator or a coroutine, yields.
    YIELD = "yield": End();
    /// An exception leaves the innermost call.
    RAISE = "raise": End();
    /// A garbage collection begins.
    GC = "gc": Begin(FRAME, GENERATION);
    /// The garbage collection ends.
    GC_END = "gc-end": End(COLLECTED, UNCOLLECTABLE);
    /// The object has a name, which the frame is a label of, until another object begins at its address.
    NAME = "name": Name(FRAME, OBJECT);
    /// The tracer stops recording calls of a function, which is short and called often.
    DEMOTED = "demoted": Instant(FRAME, CALLS, MEAN);
    /// A note of the tracer: the frame is a label with the text, and the count is how often it applies.
    TRACE_NOTE = "trace-note": Instant(FRAME, COUNT);
} }

/// The name of an object from this event on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The number of a frame: the label with the name.
    pub frame: u32,
    /// The address of the object.
    pub object: u64,
}
