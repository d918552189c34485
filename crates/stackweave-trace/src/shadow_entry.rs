//! An entry of a shadow stack: a call or span that is open on a thread.

use stackweave_core::{Call, RawFrame, RawFrameKind};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EntryKind {
    /// A Python function.
    Call,
    /// A Python function that was open before the trace, or whose greenlet was resumed.
    Earlier,
    /// A generator or a coroutine that has begun.
    Generator,
    /// A generator or a coroutine that was resumed.
    Resumed,
    /// A native function.
    Native,
    /// A span of the program.
    Span,
    /// A garbage collection.
    Collection,
}

/// The part of an entry that the recording has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EntryStatus {
    /// Its start is recorded, and its end will be.
    Written,
    /// Its start is recorded if it lasts long enough, or if something in it is recorded.
    Pending,
    /// Neither its start nor its end is recorded.
    Hidden,
}

/// An open frame, or something else that runs inside a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct ShadowEntry {
    /// The address of the frame; for something that runs inside it, with [`INSIDE`]. 0 outside all frames.
    pub(crate) key: u64,
    /// The bits of its [`Call`]; 0 outside all frames.
    pub(crate) call: u64,
    /// The code object of the frame; 0 outside all frames.
    pub(crate) code: u32,
    pub(crate) kind: EntryKind,
    pub(crate) status: EntryStatus,
    /// The time at which it began, if times are needed.
    pub(crate) began: u64,
    /// The total time of its callees, if times are needed.
    pub(crate) callee_ticks: u64,
}

/// A bit of a key: the entry is not the frame itself, but runs inside it. Addresses of frames are even.
pub(crate) const INSIDE: u64 = 1;
/// A key that no frame and no caller of a frame has.
pub(crate) const NOWHERE: u64 = !INSIDE;

const _: () = assert!(size_of::<ShadowEntry>() == 40);

impl ShadowEntry {
    /// The entry outside all frames.
    pub(crate) const OUTERMOST: Self = Self {
        key: 0,
        call: 0,
        code: 0,
        kind: EntryKind::Call,
        status: EntryStatus::Hidden,
        began: 0,
        callee_ticks: 0,
    };
    /// The entry outside all frames of a thread with an unknown stack.
    pub(crate) const UNKNOWN: Self = Self { key: NOWHERE, ..Self::OUTERMOST };

    /// Returns whether its end may come without an event: that of a frame that was open before the trace, or of a
    /// generator or coroutine that awaits another one, because an exception that is thrown into that one bypasses it.
    pub(crate) fn may_end_unseen(&self) -> bool {
        matches!(self.kind, EntryKind::Earlier | EntryKind::Resumed)
    }

    /// Returns the address of the frame that it is, or runs in.
    #[inline(always)]
    pub(crate) const fn frame(&self) -> u64 {
        self.key & !INSIDE
    }

    pub(crate) const fn is_frame(&self) -> bool {
        self.key & INSIDE == 0
    }

    pub(crate) fn is_written(&self) -> bool {
        self.status == EntryStatus::Written
    }

    pub(crate) fn is_span(&self) -> bool {
        self.kind == EntryKind::Span
    }
}

/// Returns the call of a label; `None` for other frames, and for labels beyond the eight millionth.
pub(crate) fn call_of_label(frame: RawFrame) -> Option<Call> {
    match frame.kind() {
        RawFrameKind::Label(label) => Call::to_label(label),
        _ => None,
    }
}
