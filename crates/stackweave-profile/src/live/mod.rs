//! Figures of a recording that is still being made, kept up to date as it grows.
//!
//! They mean what `aggregate` and `memory` say about the same file: the events go through the same tree of spans and the same
//! ledger, each once. What is shown is made anew from these when it is asked for.

mod calls;
mod memory;
mod names;
mod rows;

pub use calls::LiveCalls;
pub use memory::{LiveMemory, MemoryNow};
pub use names::NativeNames;
pub use rows::{FunctionRow, function_rows};
