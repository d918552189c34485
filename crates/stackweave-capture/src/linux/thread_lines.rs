//! One thread for a program to read, in the lines of `stack_query.rs`.
//!
//! No allocation, no lock, async-signal-safe.

use core::fmt::{self, Write};

use stackweave_core::{RawFrame, RawFrameKind};

use crate::capture::stacks;
use crate::platform::tasks;
use crate::platform::thread_text::{DumpedThread, write_missing_reply_reason};
use crate::request::Capture;
use crate::sources::{write_frame, write_parts};
use crate::stack_query::ReplyLine;

/// Writes a thread with all its frames.
pub(crate) fn write_thread_lines(out: &mut dyn Write, thread: &DumpedThread) -> fmt::Result {
    let mut buffer = [0; 64];
    write!(out, "{} {} ", ReplyLine::Thread.as_str(), thread.task)?;
    OneLine(out).write_str(tasks::name(thread.task, &mut buffer))?;
    out.write_char('\n')?;
    if let Some(capture) = thread.reply {
        return write_stack(out, capture);
    }
    write!(out, "{} ", ReplyLine::Silent.as_str())?;
    write_missing_reply_reason(out, thread)
}

fn write_stack(out: &mut dyn Write, capture: Capture) -> fmt::Result {
    let Some(stack) = capture.stack else {
        return writeln!(out, "{} no memory for its stack", ReplyLine::Cut.as_str());
    };
    for frame in stacks().frames(stack) {
        write_line(out, frame)?;
    }
    match capture.stop() {
        Some(stop) => writeln!(out, "{} {stop}", ReplyLine::Cut.as_str()),
        None => Ok(()),
    }
}

fn write_line(out: &mut dyn Write, frame: RawFrame) -> fmt::Result {
    let word = match frame.kind() {
        RawFrameKind::Native(address) => {
            let line = if address.is_exact() { ReplyLine::Exact } else { ReplyLine::Return };
            return writeln!(out, "{} {:x}", line.as_str(), address.address());
        }
        RawFrameKind::Python { .. } => ReplyLine::Python,
        RawFrameKind::Script { .. } => ReplyLine::Script,
        RawFrameKind::Label(_) => ReplyLine::Label,
    };
    write!(out, "{} ", word.as_str())?;
    if word != ReplyLine::Python || !write_parts(frame, out)? {
        write_frame(frame, &mut OneLine(out))?;
    }
    out.write_char('\n')
}

/// A writer that replaces control characters, including line ends, by U+FFFD.
struct OneLine<'a>(&'a mut dyn Write);

impl Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut pieces = text.split(char::is_control);
        self.0.write_str(pieces.next().unwrap_or_default())?;
        pieces.try_for_each(|piece| {
            self.0.write_char(char::REPLACEMENT_CHARACTER)?;
            self.0.write_str(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_does_not_break_its_line() {
        let mut out = String::new();
        OneLine(&mut out).write_str("a\nb\u{1f}\u{1f}c\t").unwrap();
        assert_eq!(out, "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}");
    }
}
