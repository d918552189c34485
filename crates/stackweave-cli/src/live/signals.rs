//! Signals that end the view, after the terminal is restored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use crate::failure::Failure;
use crate::interrupt;

/// Remembers the last signal.
pub(super) struct Signals {
    caught: Arc<AtomicUsize>,
    watched: Vec<SigId>,
}

impl Signals {
    /// Handles signals; with a program, interrupts are left to it.
    pub(super) fn watch(has_program: bool) -> Result<Self, Failure> {
        let caught = Arc::new(AtomicUsize::new(0));
        let mut watched = Vec::new();
        for signal in [SIGHUP, SIGTERM, SIGQUIT, SIGINT] {
            let is_ignored = interrupt::ignored() & (1 << (signal - 1)) != 0;
            if is_ignored || (signal == SIGINT && has_program) {
                continue;
            }
            let number = usize::try_from(signal).unwrap_or(0);
            let id = flag::register_usize(signal, Arc::clone(&caught), number).map_err(Failure::new)?;
            watched.push(id);
        }
        Ok(Self { caught, watched })
    }

    pub(super) fn caught(&self) -> Option<i32> {
        i32::try_from(self.caught.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.watched.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// Ends this process as the signal would.
pub(super) fn end_by(signal: i32) {
    let _ = low_level::emulate_default_handler(signal);
}
