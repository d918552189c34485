//! The figures of a recording: while it runs, and at its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::file::LossReason;

/// The totals of a recording that has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The file. Empty in ring mode without a dump, and in a child that recorded nothing.
    pub path: PathBuf,
    /// The number of events in the file, or in the ring.
    pub events: u64,
    /// The size of the file in bytes.
    pub bytes_written: u64,
    /// The number of lost events, by reason.
    pub lost: BTreeMap<LossReason, u64>,
    /// The last error of the file.
    pub error: Option<String>,
}

/// The figures of a running recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderStats {
    /// The number of events that the writer has encoded so far.
    pub events: u64,
    /// The size of the file so far, in bytes.
    pub bytes_written: u64,
    /// The number of lost events so far, by reason.
    pub lost: BTreeMap<LossReason, u64>,
    /// The size of all buffers in bytes: full, in use, and free.
    pub buffer_bytes: usize,
    /// In ring mode: the size of the kept events and definitions, in bytes.
    pub ring_bytes: u64,
    /// The number of threads that have recorded so far.
    pub threads: u32,
    /// The last error of the file.
    pub error: Option<String>,
}

/// The writer's counters, which other threads read.
#[derive(Debug)]
pub(super) struct WriterCounts {
    pub(super) events: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) kept: AtomicU64,
    lost: [AtomicU64; 16],
    error: Mutex<Option<String>>,
}

impl WriterCounts {
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
