//! What threads ask of the writer.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use super::outcome::FlushError;
use crate::file::{Answered, EndReason, Pending};

/// The writer answers by the sender, or drops it if it is gone: so nobody waits for ever.
#[derive(Debug)]
pub(super) enum Order {
    /// Write all that was recorded. Answers with what only an interpreter can tell, for the asker to ask it.
    Flush(Sender<(Pending, Result<(), FlushError>)>),
    /// Write what an interpreter has told.
    Tell(Answered, Sender<Result<(), FlushError>>),
    /// Name a thread, by the number the kernel has for it.
    Name(u32, String),
    /// Write the ring to this file, or to the recording's own.
    Dump(Option<PathBuf>, Sender<Result<PathBuf, FlushError>>),
    /// Write all, and end.
    Stop(EndReason, Sender<()>),
}

/// Orders on their way. `None`: the writer is gone.
#[derive(Debug)]
pub(super) struct Orders(Mutex<Option<Vec<Order>>>);

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

    pub(super) fn take(&self) -> Vec<Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
