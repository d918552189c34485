//! What became of a recording.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use crate::file::LossReason;

/// What was recorded, once it has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The file. In ring mode without a dump, and in a child that recorded nothing, there is none.
    pub path: PathBuf,
    /// Events in the file, or in the ring.
    pub events: u64,
    /// Bytes of the file.
    pub bytes_written: u64,
    /// Events that are not, and why.
    pub lost: BTreeMap<LossReason, u64>,
    /// The last thing that went wrong with the file.
    pub error: Option<String>,
}

/// How a recording is going.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderStats {
    /// Events that the writer has taken so far.
    pub events: u64,
    /// Bytes of the file so far.
    pub bytes_written: u64,
    /// Events that are lost so far, and why.
    pub lost: BTreeMap<LossReason, u64>,
    /// Bytes of memory for buffers: waiting, being filled, and free.
    pub buffer_bytes: usize,
    /// In ring mode, bytes of events and of what they refer to that are kept.
    pub ring_bytes: u64,
    /// Threads that have recorded so far.
    pub threads: u32,
    /// The last thing that went wrong with the file.
    pub error: Option<String>,
}

/// Why a recording could not start.
#[derive(Debug)]
pub enum StartError {
    /// The file could not be made.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system refused what a recording needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => {
                write!(f, "cannot record to {}: ", path.display())?;
                match error.kind() {
                    io::ErrorKind::AlreadyExists => f.write_str("the file exists already"),
                    io::ErrorKind::NotFound => f.write_str("its folder does not exist"),
                    _ => error.fmt(f),
                }
            }
            Self::System(error) => write!(f, "cannot start a recording: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } | Self::System(error) => Some(error),
        }
    }
}

/// Why a flush or a dump did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushError {
    /// The file could not be written; the text says why.
    Write(String),
    /// The recording has stopped.
    Stopped,
    /// There is nothing to dump but in ring mode.
    NoRing,
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => f.write_str(error),
            Self::Stopped => f.write_str("the recording has stopped"),
            Self::NoRing => f.write_str("only a recording in ring mode can be dumped"),
        }
    }
}

impl std::error::Error for FlushError {}

/// What the writer counts, for all to see.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) events: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) kept: AtomicU64,
    lost: [AtomicU64; 16],
    error: Mutex<Option<String>>,
}

impl Counts {
    pub(super) const fn new() -> Self {
        Self {
            events: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            lost: [const { AtomicU64::new(0) }; 16],
            error: Mutex::new(None),
        }
    }

    pub(super) fn lose(&self, reason: LossReason, count: u64) {
        self.lost[reason as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) -> BTreeMap<LossReason, u64> {
        let count = |reason: LossReason| self.lost[reason as usize].load(Ordering::Relaxed);
        LossReason::ALL.iter().map(|reason| (*reason, count(*reason))).filter(|(_, count)| *count > 0).collect()
    }

    pub(super) fn set_error(&self, error: String) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
