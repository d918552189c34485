//! The outputs of the engine: a recording, or a list of events for a thread that can't write itself.

/// The events of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TraceEvent {
    /// A Python function begins: `[call]`.
    Call,
    /// A native function begins: `[call]`.
    NativeCall,
    /// A generator or a coroutine begins: `[call, object]`.
    Generator,
    /// A generator or a coroutine is resumed: `[call, object]`.
    Resume,
    /// A call is open that began before: `[call, depth]`.
    Open,
    /// The innermost call returns.
    Return,
    /// The innermost call yields.
    Yield,
    /// An exception propagates out of the innermost call.
    Raise,
    /// A garbage collection begins: `[frame, generation]`.
    Collection,
    /// A garbage collection ends: `[collected, uncollectable]`.
    CollectionEnd,
    /// An object gets a name: `[frame, object]`.
    Name,
    /// A function is not recorded any more: `[frame, calls, mean]`.
    Demoted,
    /// A note about the trace: `[frame, count]`.
    Note,
}

impl TraceEvent {
    /// The number of kinds.
    pub(crate) const COUNT: usize = 13;
}

/// Accepts the events of one thread, in their order.
pub(crate) trait Sink {
    /// Returns the current time.
    fn now(&self) -> u64;

    /// Records an event at this time.
    fn record(&self, ticks: u64, what: TraceEvent, words: &[u64]);
}
