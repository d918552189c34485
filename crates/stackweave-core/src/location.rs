//! Places in source code.

use std::sync::Arc;

/// Where in the source an instruction comes from. What is not known is `None`.
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

/// A frame of an interpreter, named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The function.
    pub name: Arc<str>,
    /// The function with the classes and functions around it, where that is known.
    pub qualname: Option<Arc<str>>,
    /// The file.
    pub filename: Arc<str>,
    /// The place in the file.
    pub position: Position,
}
