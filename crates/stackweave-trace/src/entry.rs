//! One entry of a shadow stack: something that is open on a thread.

use stackweave_core::{Call, RawFrame, RawFrameKind};

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// A Python function.
    Call,
    /// One that was open before anybody looked, or that has come back with its greenlet.
    Earlier,
    /// A generator or a coroutine that has begun.
    Generator,
    /// One that goes on.
    Resumed,
    /// A native function.
    Native,
    /// A span of the program's.
    Span,
    /// A garbage collection.
    Collection,
}

/// What the recording knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// Its beginning is recorded, and its end will be.
    Written,
    /// Its beginning is recorded if it lasts long enough, or something in it is.
    Pending,
    /// Neither is recorded.
    Hidden,
}

/// Something that is open: a frame, or what runs inside a frame and is none itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Entry {
    /// The address of the frame; for what runs inside it, with [`INSIDE`]. 0 around all frames.
    pub(crate) key: u64,
    /// The bits of the [`Call`] that it is; 0 around all frames.
    pub(crate) call: u64,
    /// The code object of the frame; 0 around all frames.
    pub(crate) code: u32,
    pub(crate) form: Form,
    pub(crate) status: Status,
    /// When it began, where somebody asks for that.
    pub(crate) began: u64,
    /// How long what it has called took, where somebody asks for that.
    pub(crate) inside: u64,
}

/// Of a key: it is not the frame itself, but runs inside it. Frames lie at even addresses.
pub(crate) const INSIDE: u64 = 1;
/// A key that no frame has, and that no frame is called from.
pub(crate) const NOWHERE: u64 = !INSIDE;

const _: () = assert!(size_of::<Entry>() == 40);

impl Entry {
    /// Around all frames.
    pub(crate) const OUTERMOST: Self =
        Self { key: 0, call: 0, code: 0, form: Form::Call, status: Status::Hidden, began: 0, inside: 0 };
    /// Around all frames, of a thread that nothing is known of.
    pub(crate) const UNKNOWN: Self = Self { key: NOWHERE, ..Self::OUTERMOST };

    /// Returns whether its end may come without an event: of a frame that was open before anybody looked, or of a generator or
    /// coroutine that awaits another one, since an exception that is thrown into that one passes by it.
    pub(crate) fn may_end_unseen(&self) -> bool {
        matches!(self.form, Form::Earlier | Form::Resumed)
    }

    /// The address of the frame that it is, or runs in.
    #[inline(always)]
    pub(crate) const fn frame(&self) -> u64 {
        self.key & !INSIDE
    }

    pub(crate) const fn is_frame(&self) -> bool {
        self.key & INSIDE == 0
    }

    pub(crate) fn is_written(&self) -> bool {
        self.status == Status::Written
    }

    pub(crate) fn is_span(&self) -> bool {
        self.form == Form::Span
    }
}

/// A label as something that is called; `None` for other frames, and for labels beyond the eight millionth.
pub(crate) fn call_of_label(frame: RawFrame) -> Option<Call> {
    match frame.kind() {
        RawFrameKind::Label(label) => Call::to_label(label),
        _ => None,
    }
}
