//! The figures of a recording that is still being made, updated as it grows.
//!
//! They are those of `aggregate` and `memory` for the same file: the events go through the same tree of spans and the
//! same ledger, once each. Tables are computed from these on request.

mod calls;
mod memory;
mod native_names;
mod rows;

pub use calls::LiveCalls;
pub use memory::{LiveMemory, MemoryNow};
pub use native_names::NativeNames;
pub use rows::{TopRow, function_rows};
