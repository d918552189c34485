//! Spans that a program or a timing recorder begins and ends.
//!
//! A frame is a label with the phase's name, file and line.

use stackweave_core::{EventKind, Field};

use super::declare::family;
use super::fields::{BYTECODE_COUNT, INLINE_DEPTH};
use super::layout::{EventLayout, Form, is_called_as};
use crate::file::RawEvent;

family! { "Phases" {
    /// A phase begins.
    BEGIN = "begin": Begin(FRAME);
    /// A phase begins, with a stack.
    BEGIN_AT = "begin-at": Begin(FRAME, STACK);
    /// A phase begins, with details.
    BEGIN_WITH = "begin-with": Begin(FRAME, STACK, DETAILS);
    /// The innermost span of the thread ends.
    END = "end": End();
    /// The compilation of a function begins, with the size of its bytecode and its inlining depth.
    BEGIN_CODE = "begin-code": Begin(FRAME, BYTECODE_COUNT, INLINE_DEPTH);
    /// A run begins: a phase with a row of its own, as one compilation or one query.
    BEGIN_RUN = "begin-run": Begin(FRAME, DETAILS);
    /// The innermost span ends, with details.
    END_WITH = "end-with": End(DETAILS);
    /// The innermost span fails.
    END_FAILED = "end-failed": End(DETAILS);
    /// The innermost span is left open, because a span around it ends.
    END_LEFT_OPEN = "end-left-open": End();
    /// In a forked child: a span that the parent had open.
    STILL_OPEN = "still-open": Open(FRAME, DEPTH);
    /// An end without an open span. It is ignored, and recorded as this instant.
    UNMATCHED_POP = "unmatched-pop": Instant(FRAME, STACK);
} }

/// The kinds that only a timing recorder has, in the order above.
pub const TIMING: [EventKind; 7] =
    [BEGIN_CODE, BEGIN_RUN, END_WITH, END_FAILED, END_LEFT_OPEN, STILL_OPEN, UNMATCHED_POP];

/// The start of a span: a call, a phase, or a part of a generator's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin<'a> {
    /// The number of the frame that begins.
    pub frame: u32,
    /// The number of the frame that calls it; 0 if unknown.
    pub caller: u32,
    /// The number of the stack; 0 if none was recorded.
    pub stack: u32,
    /// The address of the object that it is a part of the run of; 0 if it is not in parts.
    pub object: u64,
    /// Whether it resumes its object.
    pub is_resumed: bool,
    /// Whether it is a run, which has a row of its own.
    pub is_run: bool,
    /// The amount of bytecode of the function that is compiled, and its inlining depth.
    pub code: Option<(u64, u64)>,
    /// The details that the program gave: a JSON object, or nothing.
    pub details: &'a [u8],
}

/// An open span that began earlier, as a recorder records it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpan {
    /// The number of its frame; 0 if no span is open.
    pub frame: u32,
    /// The number of the frame that calls it; 0 if unknown.
    pub caller: u32,
    /// The number of the stack at its start; 0 if none was recorded.
    pub stack: u32,
    /// The address of the object that it is a part of the run of; 0 if it is not in parts.
    pub object: u64,
    /// The number of open spans around it.
    pub depth: u64,
}

/// The end of the innermost span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanEnd<'a> {
    /// The outcome of the span.
    pub ending: Ending,
    /// The details that the program gave: a JSON object, or nothing.
    pub details: &'a [u8],
}

/// The outcome of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is complete.
    Done,
    /// It failed.
    Failed,
    /// It was open when a span around it ended.
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
    pub(super) fn decode(layout: &EventLayout, event: &RawEvent<'a>) -> Self {
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

impl OpenSpan {
    #[inline]
    pub(super) fn decode(layout: &EventLayout, words: &[u64]) -> Self {
        Self {
            frame: layout.frame.number(words),
            caller: layout.caller.number(words),
            stack: layout.stack.number(words),
            object: layout.address.word(words),
            depth: layout.value.word(words),
        }
    }
}
