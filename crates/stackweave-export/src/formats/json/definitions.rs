//! The frames and stacks that events refer to: each has its own line, before the first line that refers to it.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use stackweave_profile::WordMap;

/// The definitions of a file. Frames and stacks are numbered from 1. Equal frames of two processes are one.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    by_text: HashMap<Arc<[u8]>, u32>,
    /// The text of each frame until it is defined.
    frames: Vec<Option<Arc<[u8]>>>,
    by_frame: WordMap<(u32, u32), u32>,
    stacks: Vec<Stack>,
    /// Stacks whose lines are not written yet, innermost first.
    pending: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Stack {
    /// The stack of the callers; 0 if there are none.
    callers: u32,
    frame: u32,
    is_defined: bool,
}

impl Definitions {
    /// Returns the number of a frame, which is its fields as a JSON object.
    pub(super) fn frame(&mut self, text: &[u8]) -> u32 {
        if let Some(known) = self.by_text.get(text) {
            return *known;
        }
        let text: Arc<[u8]> = text.into();
        self.frames.push(Some(Arc::clone(&text)));
        let number = number(self.frames.len());
        self.by_text.insert(text, number);
        number
    }

    /// Returns the number of the stack with this frame inside these callers.
    pub(super) fn stack(&mut self, callers: u32, frame: u32) -> u32 {
        let stacks = &mut self.stacks;
        *self.by_frame.entry((callers, frame)).or_insert_with(|| {
            stacks.push(Stack { callers, frame, is_defined: false });
            number(stacks.len())
        })
    }

    /// Writes the line of a frame, unless it is written already.
    pub(super) fn define_frame(&mut self, frame: u32, out: &mut dyn Write) -> io::Result<()> {
        let text = frame.checked_sub(1).and_then(|index| self.frames.get_mut(index as usize)?.take());
        let Some(text) = text else { return Ok(()) };
        write!(out, "{{\"define\":\"frame\",\"frame\":{frame},")?;
        out.write_all(text.strip_prefix(b"{").unwrap_or(&text))?;
        out.write_all(b"\n")
    }

    /// Writes the lines of a stack, of its callers and of their frames, unless they are written already.
    pub(super) fn define_stack(&mut self, stack: u32, out: &mut dyn Write) -> io::Result<()> {
        let mut next = stack;
        while let Some(known) = next.checked_sub(1).and_then(|index| self.stacks.get_mut(index as usize)) {
            if known.is_defined {
                break;
            }
            known.is_defined = true;
            self.pending.push(next);
            next = known.callers;
        }
        while let Some(stack) = self.pending.pop() {
            let Stack { callers, frame, .. } = self.stacks[stack as usize - 1];
            self.define_frame(frame, out)?;
            write!(out, "{{\"define\":\"stack\",\"stack\":{stack},\"callers\":")?;
            write_stack_number(callers, out)?;
            writeln!(out, ",\"frame\":{frame}}}")?;
        }
        Ok(())
    }
}

/// Writes the number of a stack, or null if it has no frames.
pub(super) fn write_stack_number(stack: u32, out: &mut dyn Write) -> io::Result<()> {
    if stack == 0 { out.write_all(b"null") } else { write!(out, "{stack}") }
}

/// Converts an index to a number: a recording has fewer than 2^32 frames and stacks.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
