//! The memory recorder: every allocation of a process, with its woven stack, in a recording.
//!
//! Calls of `malloc` and its kin are led to functions of ours by the tables through which every loaded module calls them;
//! Python's own allocators, if that is asked for, by the interpreter. An event is one capture and one record. What is live, and
//! what was live at the peak, is kept by the recording's writer, off the program's threads.
//!
//! | file | holds | |
//! |---|---|---|
//! | `linux/hook_wrappers.rs`, `linux/*_functions.rs` | the hooks | hot |
//! | `hook_event.rs`, `host.rs`, `python_blocks.rs` | what an event does | hot |
//! | `host_words.rs` | what hosts tell rarely | |
//! | `state.rs`, `blocks.rs` | whether events are told, and what each thread has of its own | hot |
//! | `sampler.rs`, `sampled_blocks.rs` | which allocations are told, where some are chosen | hot |
//! | `memory.rs` | what programs call | |
//! | `ledger_observer.rs` | what the writer does with events: it has them in order (`merge.rs`), knows what they mean (`meaning.rs`), and keeps `books.rs`, the `curve.rs` and `snapshot.rs` | |

#![allow(clippy::inline_always, reason = "an event is a few nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the platforms that record memory are 64-bit: an address, a word and a usize are one size; random numbers are rounded"
)]

mod blocks;
mod books;
mod curve;
mod error;
mod event_layout;
mod failure;
mod foreign_hooks;
mod hook_event;
mod host;
mod host_event;
mod host_words;
mod hot_kinds;
mod kinds;
mod ledger_observer;
mod memory;
mod merge;
mod options;
mod python_blocks;
mod queries;
mod quiet;
mod resident;
mod sampled_blocks;
mod sampler;
pub mod sink;
mod snapshot;
mod state;
mod stats;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "unsupported.rs"]
mod platform;

pub use error::MemoryError;
pub use host::{HostBlock, tell_host};
pub use host_event::HostEvent;
pub use kinds::MemoryKinds;
pub use ledger_observer::{LedgerObserver, LedgerStats, observer};
pub use memory::Memory;
pub use options::{MemoryOptions, Mode};
pub use platform::{DumpSignal, InterposeError, KeptHooks};
pub use python_blocks::PythonBlocks;
pub use quiet::Quiet;
pub use snapshot::{BlockOrigin, DeviceSnapshot, Snapshot, UsageRow};
pub use stats::MemoryStats;
