//! What threads ask of the writer.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::observing::Question;
use super::outcome::FlushError;
use crate::file::{Answered, EndReason, Pending};

/// The writer answers by the sender, or drops it if it is gone: so nobody waits for ever.
pub(super) enum Order {
    /// Write all that was recorded. Answers with what only an interpreter can tell, for the asker to ask it.
    Flush(Sender<(Pending, Result<(), FlushError>)>),
    /// Write what an interpreter has told.
    Tell(Answered, Sender<Result<(), FlushError>>),
    /// Name a thread, by the number the kernel has for it.
    Name(u32, String),
    /// Take these words as events of a thread, by the number the kernel has for it, behind all that it has recorded.
    RecordFor(u32, Vec<u64>, Sender<()>),
    /// Write the ring to this file, or to the recording's own.
    Dump(Option<PathBuf>, Sender<Result<PathBuf, FlushError>>),
    /// Give the file its name.
    Publish(Sender<io::Result<()>>),
    /// Ask the observer, and write what it notes by that.
    Ask(Question, Sender<()>),
    /// Write all, and end.
    Stop(EndReason, Sender<()>),
}

/// Orders on their way. `None`: the writer is gone.
pub(super) struct Orders(Mutex<Option<Vec<Order>>>);

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl Orders {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Whoever gives an order rings the doorbell then.
    pub(super) fn give(&self, order: Order) {
        if let Some(orders) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            orders.push(order);
        }
    }

    /// The same for a process that exits, which may do so in a signal handler that has interrupted this very thread in the
    /// middle of giving an order: waits no longer than some attempts take.
    pub(super) fn give_if_possible(&self, order: Order, attempts: u32) {
        for _ in 0..attempts {
            if let Ok(mut orders) = self.0.try_lock() {
                if let Some(orders) = orders.as_mut() {
                    orders.push(order);
                }
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn take(&self) -> Vec<Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
