//! Resolves native addresses to names, lines and inlined calls, in process.
//!
//! ```
//! use stackweave_core::{CodeAddress, Module, ModuleList};
//! use stackweave_symbolize::{SymbolizerOptions, Symbolizer};
//!
//! # fn example(module: Module, return_address: u64) {
//! let symbolizer = Symbolizer::new(SymbolizerOptions::default());
//! let modules = ModuleList::new(vec![module]);
//! for resolved in symbolizer.resolve(&[CodeAddress::return_address(return_address)], &modules) {
//!     for frame in resolved.frames() {
//!         println!("{} at {:?}:{:?}", frame.function, frame.file, frame.line);
//!     }
//! }
//! # }
//! ```
//!
//! Sources, in order of preference: DWARF 2 to 5 (split, compressed, supplementary) in the file or in its debug
//! file (by build id, by debug link, from a debuginfod server if [`SymbolizerOptions::debuginfod`] allows it), `.symtab`,
//! `.gnu_debugdata`, `.dynsym`, the start of the unwind entry; for addresses in no module, perf maps and jitdumps.
//! Each result has its source, or the reason why there is none.
//!
//! A symbolizer keeps what it has read: the mappings of files (address space, not memory), the units of debug
//! information that contain looked-up addresses, 16 bytes for each function of a symbol table that was needed, and
//! each result. A thousand addresses of a 448 MB library with 300,000 functions and no debug information need 8 MB
//! of memory. Without [`SymbolizerOptions::keeps_files`], it keeps only results, and releases the pages of files as it reads them:
//! a command that resolves 140,000 addresses of a program with torch needs 140 MB in all.
#![forbid(unsafe_code)]

mod abbreviations;
mod addr2line_child;
mod byte_arena;
mod debug_files;
mod debug_link;
#[cfg_attr(not(feature = "debuginfod"), expect(dead_code, reason = "without the feature no server is queried"))]
mod debuginfod;
mod demangle;
mod dwarf;
mod dwarf_units;
mod elf;
mod function_starts;
mod jit_code;
mod known_module;
mod mini_debug_info;
mod module_file;
mod module_lookup;
mod options;
mod perf_map;
mod resolved;
mod split_dwarf;
mod symbolizer;
mod symbols;
#[cfg(test)]
mod test_folder;
mod without_threads;

pub use jit_code::PerfMapHealth;
pub use options::{MODE_VARIABLE, SymbolizeMode, SymbolizerOptions, UnknownMode};
pub use resolved::{Resolved, ResolvedFrame, SymbolSource, Symbolized, UnresolvedReason};
pub use symbolizer::{Symbolizer, SymbolizerStats};
pub use without_threads::WithoutThreads;
