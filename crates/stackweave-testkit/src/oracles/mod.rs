//! Other unwinders, as oracles. Each fills a buffer with the stack of its caller, which is the first frame, and
//! returns the number of frames.

pub mod framehop;
pub mod gdb;
pub mod glibc;
pub mod libgcc;

/// An oracle that runs in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// glibc's `backtrace`, which returns addresses only. Async-signal-safe once it has run.
    Glibc,
    /// libgcc's `_Unwind_Backtrace`, which knows which addresses are exact. Async-signal-safe.
    Libgcc,
    /// framehop over all loaded modules. It does not walk through signal frames, and it allocates.
    Framehop,
}

/// The oracles that may run anywhere, including signal handlers.
pub const SIGNAL_SAFE: &[Oracle] = &[Oracle::Glibc, Oracle::Libgcc];
/// Every oracle that runs in the process.
pub const ALL: &[Oracle] = &[Oracle::Glibc, Oracle::Libgcc, Oracle::Framehop];
