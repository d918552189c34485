//! What the tests of the symbolizer are made of: libraries in every form that debug information comes in, and
//! outside oracles that say what their addresses are.
//!
//! The libraries are built when a test first asks for them. A tool that is not installed skips what needs it.

pub mod agreement;
pub mod comparison;
pub mod cxxfilt;
pub mod damage;
pub mod gnu_addr2line;
pub mod library;
pub mod llvm_symbolizer;
pub mod module_file;
pub mod names;
pub mod python_library;
pub mod tool;
pub mod truth;
pub mod variants;
pub mod workshop;

use std::fmt;

/// One function at an address, as an oracle or the symbolizer tells it. Of inlined calls there are several,
/// innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The demangled name.
    pub function: Option<String>,
    /// The file, with its folder.
    pub file: Option<String>,
    /// The line; 0 is none.
    pub line: u32,
    /// The column; 0 is none.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, file) = (self.function.as_deref().unwrap_or("??"), self.file.as_deref().unwrap_or("??"));
        write!(f, "{function} at {file}:{}:{}", self.line, self.column)
    }
}

/// Why something can't be tested here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped(pub String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}
