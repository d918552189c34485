//! Building blocks of the symbolizer's tests: libraries with debug information in every form, and outside oracles
//! that resolve their addresses.
//!
//! A test builds the libraries that it needs and that do not exist yet. A test is skipped if a tool that it needs
//! is not installed.

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

/// One function at an address, as an oracle or the symbolizer reports it. An address with inlined calls has
/// several, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolizedFrame {
    /// The demangled name.
    pub function: Option<String>,
    /// The file, with its folder.
    pub file: Option<String>,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// The column; 0 if it is not known.
    pub column: u32,
}

impl fmt::Display for SymbolizedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, file) = (self.function.as_deref().unwrap_or("??"), self.file.as_deref().unwrap_or("??"));
        write!(f, "{function} at {file}:{}:{}", self.line, self.column)
    }
}

/// The reason why a test cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped(pub String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}
