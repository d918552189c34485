//! The fields of events: what each is called, what its word holds, in which unit, and what it means.

use stackweave_core::{Field, FieldType};

/// A field as it is declared: every event that has it means the same by it.
#[derive(Clone, Debug)]
pub struct DeclaredField {
    /// Its name and the type of its word.
    pub field: Field,
    /// What its number counts; empty if its type says it.
    pub unit: &'static str,
    /// What it means, in a sentence.
    pub about: &'static str,
}

macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal: $of:ident $(in $unit:literal)?;)*) => {
        $($(#[doc = $doc])+ pub const $name: Field = Field::new($text, FieldType::$of);)*

        /// Every field, in the order in which they are declared.
        pub const ALL: &[DeclaredField] = &[$(DeclaredField {
            field: $name,
            unit: concat!($($unit)?),
            about: concat!($($doc),+),
        }),*];
    };
}

fields! {
    /// What the event is called: a function, or a label that the program gave.
    FRAME = "frame": Frame;
    /// The place in the code of the caller that called the frame.
    CALLER = "caller": Frame;
    /// A call, while it is recorded: in a file a `frame` and a `caller` stand in its place.
    CALL = "call": Call;
    /// The stack on which it happened; 0 if none was recorded.
    STACK = "stack": Stack;
    /// What the program says about it: a JSON object, or nothing.
    DETAILS = "details": Bytes;
    /// What runs in pieces, as a generator or a coroutine does, by the address of its frame.
    OBJECT = "object": Address;
    /// How many are open around it.
    DEPTH = "depth": Unsigned in "spans";
    /// The generation that is collected.
    GENERATION = "generation": Unsigned;
    /// How many objects were collected.
    COLLECTED = "collected": Unsigned in "objects";
    /// How many objects could not be collected.
    UNCOLLECTABLE = "uncollectable": Unsigned in "objects";
    /// How often the function was called until then.
    CALLS = "calls": Unsigned in "calls";
    /// How long a call took on average.
    MEAN = "mean": Ticks in "ticks";
    /// How often it happened.
    COUNT = "count": Unsigned in "times";
    /// How much bytecode the function has.
    BYTECODE_COUNT = "bytecode_count": Unsigned in "instructions";
    /// How deep the function is inlined.
    INLINE_DEPTH = "inline_depth": Unsigned in "calls";
    /// The quantity from now on.
    VALUE = "value": Float;
    /// How much the sample counts.
    WEIGHT = "weight": Signed in "samples";
    /// Where a block or a range begins.
    ADDRESS = "address": Address;
    /// How large it is.
    SIZE = "size": Unsigned in "bytes";
    /// Whose memory it is: -1 for that of the process. An event without this field is of the process's own memory.
    DEVICE = "device": Signed;
    /// The stream of the device that the memory is used on.
    STREAM = "stream": Unsigned;
    /// The pool of the host that the memory belongs to. Bit 63: that of a captured graph, by its number.
    POOL = "pool": Unsigned;
    /// How much of the device is free.
    FREE_BYTES = "free": Unsigned in "bytes";
    /// 1 if the account begins, 2 if it ends.
    STATE = "state": Unsigned;
    /// Why the account is written: 0 the recording ends, 1 out of memory, 2 the program requests it.
    REASON = "reason": Unsigned;
    /// Bits. Of a segment: 1 for large blocks, 2 it grows. Of a block: 1 in use by the program, 2 not to be allocated yet.
    FLAGS = "flags": Unsigned;
    /// How much of a block the program requested.
    REQUESTED = "asked": Unsigned in "bytes";
    /// The allocator, by a label; 0 for none.
    ALLOCATOR = "allocator": Frame;
    /// The tag of the thread, by a label; 0 for none.
    TAG = "tag": Frame;
    /// The number of the snapshot that the event belongs to.
    SNAPSHOT = "snapshot": Unsigned;
    /// The thread, by its number in the section.
    THREAD = "thread": Unsigned;
    /// The size class: blocks of more than half of so many bytes, and at most so many.
    MOST = "most": Unsigned in "bytes";
    /// How long before this event the peak was.
    PEAK_AGO = "peak_ago": Ticks in "ticks";
    /// How often memory was allocated.
    ALLOCATIONS = "allocations": Unsigned in "blocks";
    /// How much was allocated in all.
    BYTES = "bytes": Unsigned in "bytes";
    /// How many blocks are live.
    LIVE_BLOCKS = "live_blocks": Unsigned in "blocks";
    /// How much is live.
    LIVE_BYTES = "live_bytes": Unsigned in "bytes";
    /// How many blocks were live when the sum over the device was highest.
    PEAK_BLOCKS = "peak_blocks": Unsigned in "blocks";
    /// How much was live then.
    PEAK_BYTES = "peak_bytes": Unsigned in "bytes";
    /// How many blocks were temporary.
    TEMPORARY = "temporary": Unsigned in "blocks";
    /// How much was temporary.
    TEMPORARY_BYTES = "temporary_bytes": Unsigned in "bytes";
    /// How often memory was freed.
    FREES = "frees": Unsigned in "blocks";
    /// How often memory was freed whose allocation is not known.
    UNKNOWN_FREES = "unknown_frees": Unsigned in "blocks";
    /// How often a block was allocated where another one was live.
    REPLACED = "replaced": Unsigned in "blocks";
}
