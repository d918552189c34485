//! What became of a recording.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

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
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file could not be made.
    #[error("cannot record to {path}: {}", reason(.error))]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The system refused what a recording needs.
    #[error("cannot start a recording: {0}")]
    System(#[source] io::Error),
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "the file exists already".to_owned(),
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        _ => error.to_string(),
    }
}

/// Why a flush or a dump did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// The file could not be written; the text says why.
    #[error("{0}")]
    Write(String),
    /// The recording has stopped.
    #[error("the recording has stopped")]
    Stopped,
    /// There is nothing to dump but in ring mode.
    #[error("only a recording in ring mode can be dumped")]
    NoRing,
}

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
