//! The fields of events: the name, type, unit and meaning of each.

use stackweave_core::{Field, FieldType};

/// The declaration of a field. It has the same meaning in all events that have it.
#[derive(Clone, Debug)]
pub struct DeclaredField {
    /// The name of the field, and the type of its word.
    pub field: Field,
    /// The unit of its number; empty if the type implies it.
    pub unit: &'static str,
    /// Its meaning, in a sentence.
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
    /// The name of the event: a function, or a label that the program gave.
    FRAME = "frame": Frame;
    /// The call site in the caller that called the frame.
    CALLER = "caller": Frame;
    /// A call, while it is recorded. Files have a `frame` and a `caller` instead.
    CALL = "call": Call;
    /// The stack of the event; 0 if none was recorded.
    STACK = "stack": Stack;
    /// Details that the program gave: a JSON object, or nothing.
    DETAILS = "details": Bytes;
    /// A generator, a coroutine or another object that runs in several spans, by the address of its frame.
    OBJECT = "object": Address;
    /// The number of open spans around it.
    DEPTH = "depth": Unsigned in "spans";
    /// The generation that is collected.
    GENERATION = "generation": Unsigned;
    /// The number of objects that were collected.
    COLLECTED = "collected": Unsigned in "objects";
    /// The number of objects that could not be collected.
    UNCOLLECTABLE = "uncollectable": Unsigned in "objects";
    /// The number of calls of the function so far.
    CALLS = "calls": Unsigned in "calls";
    /// The average duration of a call.
    MEAN = "mean": Ticks in "ticks";
    /// The number of occurrences.
    COUNT = "count": Unsigned in "times";
    /// The amount of bytecode of the function.
    BYTECODE_COUNT = "bytecode_count": Unsigned in "instructions";
    /// The inlining depth of the function.
    INLINE_DEPTH = "inline_depth": Unsigned in "calls";
    /// The value of the quantity from this event on.
    VALUE = "value": Float;
    /// The weight of the sample.
    WEIGHT = "weight": Signed in "samples";
    /// The address of the first byte of a block or a range.
    ADDRESS = "address": Address;
    /// Its size.
    SIZE = "size": Unsigned in "bytes";
    /// The device that the memory belongs to; -1 for the process. Events without this field concern the process's own memory.
    DEVICE = "device": Signed;
    /// The stream of the device that uses the memory.
    STREAM = "stream": Unsigned;
    /// The pool of the host that the memory belongs to. Bit 63 marks the pool of a captured graph, by the graph's number.
    POOL = "pool": Unsigned;
    /// The free memory of the device.
    FREE_BYTES = "free": Unsigned in "bytes";
    /// 1 if the listing begins, 2 if it ends.
    STATE = "state": Unsigned;
    /// The reason of the listing: 0 the recording ends, 1 out of memory, 2 the program requested it.
    REASON = "reason": Unsigned;
    /// Bits. Of a segment: 1 for large blocks, 2 it grows. Of a block: 1 in use by the program, 2 not reusable yet.
    FLAGS = "flags": Unsigned;
    /// The part of a block that the program requested.
    REQUESTED = "requested": Unsigned in "bytes";
    /// The allocator, as a label; 0 for none.
    ALLOCATOR = "allocator": Frame;
    /// The tag of the thread, as a label; 0 for none.
    TAG = "tag": Frame;
    /// The number of the snapshot that the event belongs to.
    SNAPSHOT = "snapshot": Unsigned;
    /// The thread, by its number in the section.
    THREAD = "thread": Unsigned;
    /// The size class: blocks of at most this size, and of more than half of it.
    MOST = "most": Unsigned in "bytes";
    /// The time from the peak to this event.
    PEAK_AGO = "peak_ago": Ticks in "ticks";
    /// The number of allocations.
    ALLOCATIONS = "allocations": Unsigned in "blocks";
    /// The total size of all allocations.
    BYTES = "bytes": Unsigned in "bytes";
    /// The number of live blocks.
    LIVE_BLOCKS = "live_blocks": Unsigned in "blocks";
    /// The size of the live blocks.
    LIVE_BYTES = "live_bytes": Unsigned in "bytes";
    /// The number of live blocks at the peak of the device.
    PEAK_BLOCKS = "peak_blocks": Unsigned in "blocks";
    /// The size of the live blocks at that peak.
    PEAK_BYTES = "peak_bytes": Unsigned in "bytes";
    /// The number of temporary blocks.
    TEMPORARY = "temporary": Unsigned in "blocks";
    /// The size of the temporary blocks.
    TEMPORARY_BYTES = "temporary_bytes": Unsigned in "bytes";
    /// The number of frees.
    FREES = "frees": Unsigned in "blocks";
    /// The number of frees of blocks whose allocation is unknown.
    UNKNOWN_FREES = "unknown_frees": Unsigned in "blocks";
    /// The number of allocations at an address with a live block.
    REPLACED = "replaced": Unsigned in "blocks";
}
