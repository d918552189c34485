//! The line about what is hidden inside libraries and the interpreter.

use std::io::{self, Write};

/// The option of commands that shows everything.
pub const ALL: &str = "--all";

/// Writes a sentence of [`Hidden`](stackweave_profile::Hidden) as a line; nothing for a negligible share.
pub fn write_hidden(out: &mut dyn Write, sentence: Option<String>) -> io::Result<()> {
    sentence.map_or(Ok(()), |sentence| writeln!(out, "({sentence})"))
}
