//! Spans that a program or a timing recorder begins and ends.
//!
//! A frame is a label with the name, the file and the line that the phase was given.

use stackweave_core::EventKind;

use super::declare::family;

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
