//! Locations in source code.

use core::fmt::{self, Display};
use std::sync::Arc;

/// The position of an instruction in its source. Unknown parts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// The line it begins on, from 1.
    pub line: Option<u32>,
    /// The line it ends on.
    pub end_line: Option<u32>,
    /// The column it begins at, in UTF-8 bytes from 0.
    pub column: Option<u32>,
    /// The column it ends before.
    pub end_column: Option<u32>,
}

/// The name and location of an interpreter's frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The function.
    pub name: Arc<str>,
    /// The function with the classes and functions around it, where that is known.
    pub qualname: Option<Arc<str>>,
    /// The file.
    pub filename: Arc<str>,
    /// The line that the function begins on, where that is known.
    pub first_line: Option<u32>,
    /// The position in the file.
    pub position: Position,
}

/// Writes a location as Python's `faulthandler` does: `File "x.py", line 3 in name`. Does not allocate.
pub fn write_location(
    out: &mut dyn fmt::Write,
    filename: &dyn Display,
    line: Option<u32>,
    name: &dyn Display,
) -> fmt::Result {
    match line {
        Some(line) => write!(out, "File \"{filename}\", line {line} in {name}"),
        None => write!(out, "File \"{filename}\", line ? in {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_written_with_or_without_a_line() {
        let mut text = String::new();
        write_location(&mut text, &"x.py", Some(3), &"Class.name").unwrap();
        text.push('\n');
        write_location(&mut text, &"x.py", None, &"name").unwrap();
        assert_eq!(text, "File \"x.py\", line 3 in Class.name\nFile \"x.py\", line ? in name");
    }
}
