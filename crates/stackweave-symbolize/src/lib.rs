//! Native addresses to names, lines and inlined calls, in process.
#![forbid(unsafe_code)]

#[cfg_attr(not(test), expect(dead_code, reason = "called by the resolver"))]
mod addr2line_child;
mod debug_file;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the resolver"))]
mod debug_link;
#[expect(dead_code, reason = "called by the resolver")]
mod debuginfod;
mod demangle;
mod dwarf;
mod elf;
mod function_starts;
mod mini_debug_info;
mod module_file;
mod options;
#[cfg_attr(not(test), expect(dead_code, reason = "called by the resolver"))]
mod perf_map;
mod resolved;
mod shelf;
mod split;
mod symbolizer;
mod symbols;
#[cfg(test)]
mod test_folder;

pub use options::{MODE_VARIABLE, Mode, Options, UnknownMode};
pub use resolved::{Frame, Reason, Resolved, Source, Symbolized};
pub use symbolizer::{Stats, Symbolizer};
