//! Spans that a program or a timing recorder begins and ends.
//!
//! A frame is a label with the name, the file and the line that the phase was given.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{BYTECODE_COUNT, INLINE_DEPTH};
use super::layout::{Form, Layout, is_called_as};
use crate::file::RawEvent;

family! { "Phases" {
    /// A phase begins.
    BEGIN = "begin": Begin(FRAME);
    /// A phase begins, on this stack.
    BEGIN_AT = "begin-at": Begin(FRAME, STACK);
    /// A phase begins, and the program says more about it.
    BEGIN_WITH = "begin-with": Begin(FRAME, STACK, DETAILS);
    /// What the thread began last ends.
    END = "end": End();
    /// A function is compiled that has so much bytecode, inlined so deep.
    BEGIN_CODE = "begin-code": Begin(FRAME, BYTECODE_COUNT, INLINE_DEPTH);
    /// Something begins that has a row of its own: one compilation, one query.
    BEGIN_RUN = "begin-run": Begin(FRAME, DETAILS);
    /// What began last ends, and the program says more about it.
    END_WITH = "end-with": End(DETAILS);
    /// What began last has failed.
    END_FAILED = "end-failed": End(DETAILS);
    /// What began last was left open, and something around it has ended.
    END_LEFT_OPEN = "end-left-open": End();
    /// In a forked child: its parent had this open.
    STILL_OPEN = "still-open": Open(FRAME, DEPTH);
    /// An end came where nothing was open: it is left out, and this is in its place.
    UNMATCHED_POP = "unmatched-pop": Instant(FRAME, STACK);
} }

/// The kinds that only a timing recorder has, in the order above.
pub const TIMING: [EventKind; 7] =
    [BEGIN_CODE, BEGIN_RUN, END_WITH, END_FAILED, END_LEFT_OPEN, STILL_OPEN, UNMATCHED_POP];

/// Something that begins: a call, a phase, or a piece of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin<'a> {
    /// What begins: the number of a frame.
    pub frame: u32,
    /// The frame that calls it; 0 if that is not known.
    pub caller: u32,
    /// The stack that it begins on; 0 if that was not recorded.
    pub stack: u32,
    /// The address of what it is a piece of; 0 if it is whole.
    pub object: u64,
    /// Whether it is a further piece of its object.
    pub is_resumed: bool,
    /// Whether it has a row of its own.
    pub is_run: bool,
    /// How much bytecode the function has that is compiled, and how deep it is inlined.
    pub code: Option<(u64, u64)>,
    /// What the program says about it: a JSON object, or nothing.
    pub details: &'a [u8],
}

/// Something that is open and began before, as a recorder writes it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// What is open: the number of a frame; 0 if nothing is.
    pub frame: u32,
    /// The frame that calls it; 0 if that is not known.
    pub caller: u32,
    /// The stack that it began on; 0 if that was not recorded.
    pub stack: u32,
    /// The address of what it is a piece of; 0 if it is whole.
    pub object: u64,
    /// How many are open around it.
    pub depth: u64,
}

/// The end of what began last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// How it has ended.
    pub ending: Ending,
    /// What the program says about it: a JSON object, or nothing.
    pub details: &'a [u8],
}

/// How something has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is over.
    Done,
    /// It has failed.
    Failed,
    /// It was left open when something around it ended.
    LeftOpen,
}

pub(super) const CODE_FIELDS: &[Field] = &[BYTECODE_COUNT, INLINE_DEPTH];

pub(super) fn begin_form(kind: &EventKind) -> Form {
    let has = |known: &Field| kind.fields.iter().any(|field| field == known);
    if is_called_as(kind, &BEGIN_RUN) {
        Form::BeginRun
    } else if is_called_as(kind, &BEGIN_CODE) && CODE_FIELDS.iter().all(has) {
        Form::BeginCode
    } else {
        Form::Begin
    }
}

pub(super) fn ending(kind: &EventKind) -> Ending {
    match &*kind.name {
        name if name == END_FAILED.name => Ending::Failed,
        name if name == END_LEFT_OPEN.name => Ending::LeftOpen,
        _ => Ending::Done,
    }
}

impl<'a> Begin<'a> {
    #[inline]
    pub(super) fn decode(layout: &Layout, event: &RawEvent<'a>) -> Self {
        let words = event.words;
        let [bytecode_count, inline_depth, ..] = layout.named;
        let has_code = layout.form == Form::BeginCode;
        Self {
            frame: layout.frame.number(words),
            caller: layout.caller.number(words),
            stack: layout.stack.number(words),
            object: layout.address.word(words),
            is_resumed: layout.form == Form::Resume,
            is_run: layout.form == Form::BeginRun,
            code: has_code.then(|| (bytecode_count.word(words), inline_depth.word(words))),
            details: event.bytes.unwrap_or_default(),
        }
    }
}

impl Open {
    #[inline]
    pub(super) fn decode(layout: &Layout, words: &[u64]) -> Self {
        Self {
            frame: layout.frame.number(words),
            caller: layout.caller.number(words),
            stack: layout.stack.number(words),
            object: layout.address.word(words),
            depth: layout.value.word(words),
        }
    }
}
