//! The vocabulary of Stackweave: the words every other crate speaks in.
//!
//! No I/O, no dependencies, no unsafe. A bare `u64` never crosses a crate border: an address says in
//! its type what it points at, and a walk that ends says why.
#![forbid(unsafe_code)]

mod address;
mod module;
mod stop_reason;

pub use address::{CodeAddress, StackPointer};
pub use module::{BuildId, Module, ModuleList};
pub use stop_reason::StopReason;
