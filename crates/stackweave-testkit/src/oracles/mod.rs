//! Unwinders that are not ours. Each fills a buffer with the stack of its caller, which is the first frame,
//! and returns how many frames that was.

pub mod framehop;
pub mod gdb;
pub mod glibc;
pub mod libgcc;

/// An oracle that runs in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// glibc's `backtrace`: addresses only. Async-signal-safe once it has run.
    Glibc,
    /// libgcc's `_Unwind_Backtrace`: knows which addresses are exact. Async-signal-safe.
    Libgcc,
    /// framehop over all loaded modules: no signal frames, and it allocates.
    Framehop,
}

/// What can be asked anywhere, signal handlers included.
pub const SIGNAL_SAFE: &[Oracle] = &[Oracle::Glibc, Oracle::Libgcc];
/// Every oracle there is in a process.
pub const ALL: &[Oracle] = &[Oracle::Glibc, Oracle::Libgcc, Oracle::Framehop];
