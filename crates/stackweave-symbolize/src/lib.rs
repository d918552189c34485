//! Native addresses to names, lines and inlined calls, in process.
//!
//! ```
//! use stackweave_core::{CodeAddress, Module, ModuleList};
//! use stackweave_symbolize::{Options, Symbolizer};
//!
//! # fn example(module: Module, return_address: u64) {
//! let symbolizer = Symbolizer::new(Options::default());
//! let modules = ModuleList::new(vec![module]);
//! for resolved in symbolizer.resolve(&[CodeAddress::return_address(return_address)], &modules) {
//!     for frame in resolved.frames() {
//!         println!("{} at {:?}:{:?}", frame.function, frame.file, frame.line);
//!     }
//! }
//! # }
//! ```
//!
//! Sources, best first: DWARF 2 to 5 (split, compressed, supplementary) in the file or in its debug file (by build
//! id, by debug link, from a debuginfod server if [`Options::debuginfod`] allows it), `.symtab`, `.gnu_debugdata`,
//! `.dynsym`, the start of the unwind entry; for addresses in no module, perf maps and jitdumps. Each answer says
//! where it came from, or why there is none.
//!
//! A symbolizer keeps what it read: a file's mapping (address space, not memory), the units of debug information that
//! addresses fell into, 16 bytes for each function of a symbol table that was needed, and each answer. A thousand
//! addresses of a 448 MB library with 300,000 functions and no debug information keep 8 MB of memory.
#![forbid(unsafe_code)]

mod addr2line_child;
mod byte_arena;
mod debug_file;
mod debug_link;
#[cfg_attr(not(feature = "debuginfod"), expect(dead_code, reason = "without the feature no server is asked"))]
mod debuginfod;
mod demangle;
mod dwarf;
mod elf;
mod function_starts;
mod known_module;
mod mini_debug_info;
mod module_file;
mod options;
mod outside;
mod partial_units;
mod perf_map;
mod resolved;
mod split;
mod symbolizer;
mod symbols;
#[cfg(test)]
mod test_folder;
mod without_threads;

pub use options::{MODE_VARIABLE, Mode, Options, UnknownMode};
pub use outside::PerfMapHealth;
pub use resolved::{Frame, Reason, Resolved, Source, Symbolized};
pub use symbolizer::{Stats, Symbolizer};
pub use without_threads::WithoutThreads;
