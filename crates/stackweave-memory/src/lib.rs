//! The memory recorder: every allocation of a process, with its woven stack, in a recording.
//!
//! Calls of `malloc` and related functions reach our hooks through the tables by which every loaded module calls them.
//! Python's own allocators are hooked through the interpreter, if requested. An event is one capture and one record.
//! The recording's writer keeps what is live, and what was live at the peak, off the program's threads.
//!
//! | file | holds | |
//! |---|---|---|
//! | `linux/hook_wrappers.rs`, `linux/*_functions.rs` | the hooks | hot |
//! | `hook_event.rs`, `host.rs`, `python_blocks.rs` | how an event is recorded | hot |
//! | `rare_host_events.rs` | rare events of host allocators | |
//! | `state.rs`, `hook_threads.rs` | whether events are recorded, and the state of each thread | hot |
//! | `sampler.rs`, `sampled_blocks.rs` | which allocations a sampled recording includes | hot |
//! | `memory.rs` | the recorder's interface | |
//! | `ledger_observer.rs` | what the writer does with events: `merge.rs` orders them, `event_layout.rs` decodes them, `device_ledgers.rs` applies them, `curve.rs` and `snapshot.rs` write the results | |

#![allow(clippy::inline_always, reason = "an event is a few nanoseconds: what is inlined is measured")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the platforms that record memory are 64-bit: an address, a word and a usize are one size; random numbers are rounded"
)]

mod curve;
mod device_ledgers;
mod error;
mod event_kinds;
mod event_layout;
mod failed_allocations;
mod foreign_hooks;
mod hook_event;
mod hook_kinds;
mod hook_threads;
mod host;
mod host_event;
mod ledger_observer;
mod memory;
mod merge;
mod options;
mod python_blocks;
mod queries;
mod rare_host_events;
mod resident;
mod sampled_blocks;
mod sampler;
pub mod sink;
mod snapshot;
mod state;
mod stats;
mod suppress;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "unsupported.rs"]
mod platform;

pub use error::MemoryError;
pub use event_kinds::MemoryKinds;
pub use host::{HostBlock, record_host_event};
pub use host_event::HostEventKind;
pub use ledger_observer::{LedgerObserver, LedgerStats, observer};
pub use memory::MemoryRecorder;
pub use options::{MemoryMode, MemoryOptions};
pub use platform::{DumpSignal, InterposeError, KeptHooks};
pub use python_blocks::PythonBlocks;
pub use snapshot::{BlockOrigin, DeviceSnapshot, MemorySnapshot, SnapshotRow};
pub use stats::MemoryStats;
pub use suppress::SuppressGuard;
