//! The differences between processors: how a capture begins, the registers at its start, their DWARF numbers, and
//! machine code. One file and one `_code` file per architecture, with the same items in each.

#[path = "x86_64_code.rs"]
pub(crate) mod code;
mod x86_64;

pub use x86_64::Registers;
pub(crate) use x86_64::*;
