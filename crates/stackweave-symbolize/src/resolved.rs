//! What an address turned out to be.

use core::fmt;
use std::sync::Arc;

/// One function at an address. Where calls were inlined there are several, innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function's name, demangled. `module+0xoffset` of its first instruction if it has none.
    pub function: Arc<str>,
    /// The source file, with its folder as the compiler was given it.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// Whether the call of this function was inlined into the next frame's function.
    pub is_inlined: bool,
}

/// Where an answer came from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Debug information: names, lines and inlined calls.
    Dwarf,
    /// The symbol table of the file or of its debug file.
    SymbolTable,
    /// The compressed symbol table in `.gnu_debugdata`.
    MiniDebugInfo,
    /// The table of exported symbols.
    DynamicSymbols,
    /// A perf map or jitdump that a just-in-time compiler writes.
    PerfMap,
    /// No name: the start of the function by its unwind entry.
    UnwindEntry,
    /// An addr2line child.
    Addr2line,
}

/// Why nothing could be told about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// It lies in no module, and no perf map knows it.
    NoModule,
    /// The module's file is not there, nor anywhere on the search path.
    MissingFile,
    /// Another file is at the module's path: its build id differs, or it was rewritten.
    ChangedFile,
    /// The file is not an ELF file, or is malformed.
    BadFile,
    /// The file has no symbol, no debug information and no unwind entry for it.
    NoSymbol,
}

impl Reason {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 5] = [Self::NoModule, Self::MissingFile, Self::ChangedFile, Self::BadFile, Self::NoSymbol];

    /// The reason in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoModule => "address in no module",
            Self::MissingFile => "module's file not found",
            Self::ChangedFile => "module's file was replaced",
            Self::BadFile => "module's file is malformed",
            Self::NoSymbol => "no symbol for the address",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What could be told about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbolized {
    /// Its frames, innermost first: at least one.
    Frames {
        /// All but the last were inlined.
        frames: Box<[Frame]>,
        /// Where they came from.
        source: Source,
    },
    /// Nothing, and why.
    Unknown(Reason),
}

/// The answer for one address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The name of the module that holds it, without folders.
    pub module: Option<Arc<str>>,
    /// The address as the module's file states it, or the address itself in no module.
    pub offset: u64,
    /// Its frames, or why there are none.
    pub symbolized: Symbolized,
}

impl Resolved {
    /// The frames, innermost first; none if nothing is known.
    pub fn frames(&self) -> &[Frame] {
        match &self.symbolized {
            Symbolized::Frames { frames, .. } => frames,
            Symbolized::Unknown(_) => &[],
        }
    }

    /// Where the frames came from.
    pub fn source(&self) -> Option<Source> {
        match &self.symbolized {
            Symbolized::Frames { source, .. } => Some(*source),
            Symbolized::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_indexed_by_discriminant() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
