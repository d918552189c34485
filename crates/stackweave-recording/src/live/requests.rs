//! Requests of threads to the writer.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::error::FlushError;
use super::guarded_observer::ObserverQuery;
use crate::file::{EndReason, PendingNames, ResolvedNames};

/// The writer replies by the sender, or drops it when it has ended, so that no thread waits forever.
pub(super) enum WriterRequest {
    /// Write everything that was recorded. The reply has the names that only an interpreter can resolve, for the caller.
    Flush(Sender<(PendingNames, Result<(), FlushError>)>),
    /// Write resolved names.
    WriteNames(ResolvedNames, Sender<Result<(), FlushError>>),
    /// Set the name of a thread, by thread id.
    Name(u32, String),
    /// Encode these words as events of a thread, by thread id, after everything that it has recorded.
    RecordFor(u32, Vec<u64>, Sender<()>),
    /// Write the ring to this file, or to the recording's own.
    Dump(Option<PathBuf>, Sender<Result<PathBuf, FlushError>>),
    /// Give the file its name.
    Publish(Sender<io::Result<()>>),
    /// Query the observer, and write its notes.
    QueryObserver(ObserverQuery, Sender<()>),
    /// Write everything, and end.
    Stop(EndReason, Sender<()>),
}

/// A queue of requests. `None`: the writer has ended.
pub(super) struct RequestQueue(Mutex<Option<Vec<WriterRequest>>>);

impl fmt::Debug for RequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestQueue").finish_non_exhaustive()
    }
}

impl RequestQueue {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Adds a request. The caller must ring the doorbell afterwards.
    pub(super) fn push(&self, request: WriterRequest) {
        if let Some(requests) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            requests.push(request);
        }
    }

    /// Does the same for a process that exits, possibly in a signal handler that interrupted this very thread in
    /// [`RequestQueue::push`]: so it gives up after some attempts.
    pub(super) fn try_push(&self, request: WriterRequest, attempts: u32) {
        for _ in 0..attempts {
            if let Ok(mut requests) = self.0.try_lock() {
                if let Some(requests) = requests.as_mut() {
                    requests.push(request);
                }
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn take(&self) -> Vec<WriterRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
