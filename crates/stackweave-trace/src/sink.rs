//! Where the engine writes: a recording, or a list of events for a thread that can't write itself.

/// The events of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// A Python function begins: `[call]`.
    Call,
    /// A native function begins: `[call]`.
    NativeCall,
    /// A generator or a coroutine begins: `[call, object]`.
    Generator,
    /// It goes on: `[call, object]`.
    Resume,
    /// Something is open since before: `[call, depth]`.
    Open,
    /// What began last returns.
    Return,
    /// It yields.
    Yield,
    /// An exception leaves it.
    Raise,
    /// A garbage collection begins: `[frame, generation]`.
    Collection,
    /// It ends: `[collected, uncollectable]`.
    CollectionEnd,
    /// An object has a name: `[frame, object]`.
    Name,
    /// A function is not told of any more: `[frame, calls, mean]`.
    Demoted,
    /// Something about the trace: `[frame, count]`.
    Note,
}

impl What {
    /// How many there are.
    pub(crate) const COUNT: usize = 13;
}

/// Takes events of one thread, in their order.
pub(crate) trait Sink {
    /// The time.
    fn now(&self) -> u64;

    /// Records an event at this time.
    fn record(&self, ticks: u64, what: What, words: &[u64]);
}
