//! The result for an address.

use core::fmt;
use std::sync::Arc;

/// One function at an address. If calls were inlined, there are several, innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ResolvedFrame {
    /// The function's name, demangled. `module+0xoffset` of its first instruction if it has no name.
    pub function: Arc<str>,
    /// The source file, with its folder as the compiler received it.
    pub file: Option<Arc<str>>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// Whether the call of this function was inlined into the next frame's function.
    pub is_inlined: bool,
}

/// The source of a result, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SymbolSource {
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
    /// No name: only the start of the function in its unwind entry.
    UnwindEntry,
    /// An addr2line child.
    Addr2line,
}

/// The reason why an address could not be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum UnresolvedReason {
    /// It is in no module, and no perf map contains it.
    NoModule,
    /// The module's file does not exist, and is not on the search path.
    MissingFile,
    /// The file at the module's path is a different one: its build id differs, or it was rewritten.
    ChangedFile,
    /// The file is not an ELF file, or is malformed.
    BadFile,
    /// The file has no symbol, no debug information and no unwind entry for the address.
    NoSymbol,
}

impl UnresolvedReason {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 5] = [Self::NoModule, Self::MissingFile, Self::ChangedFile, Self::BadFile, Self::NoSymbol];

    /// Returns a short description of the reason.
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

impl fmt::Display for UnresolvedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The frames of an address, or the reason why there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbolized {
    /// The frames, innermost first: at least one.
    Frames {
        /// All but the last one were inlined. Addresses of a function without lines share them.
        frames: Arc<[ResolvedFrame]>,
        /// Their source.
        source: SymbolSource,
    },
    /// The address is unknown, for this reason.
    Unknown(UnresolvedReason),
}

/// The result for one address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The name of the module that contains it, without folders.
    pub module: Option<Arc<str>>,
    /// The address as the module's file states it, or the address itself if it is in no module.
    pub offset: u64,
    /// Its frames, or why there are none.
    pub symbolized: Symbolized,
}

impl Resolved {
    /// Returns the frames, innermost first; none if the address is unknown.
    pub fn frames(&self) -> &[ResolvedFrame] {
        match &self.symbolized {
            Symbolized::Frames { frames, .. } => frames,
            Symbolized::Unknown(_) => &[],
        }
    }

    /// Returns the source of the frames.
    pub fn source(&self) -> Option<SymbolSource> {
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
        for (index, reason) in UnresolvedReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
