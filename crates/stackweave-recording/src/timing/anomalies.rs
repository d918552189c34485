//! Counts of phase events that do not match.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of events that contradict each other. They do not stop the program, and the recording stays consistent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnomalyCounts {
    /// Pops on threads without an open phase.
    pub unmatched_pops: u64,
    /// Phases that were open when an enclosing phase, or their thread, ended.
    pub left_open: u64,
    /// Tokens of phases that were not open on the thread that closed them: closed before, or begun on another thread.
    pub lost_tokens: u64,
    /// Pushes and pops of a signal handler that interrupted another one on the same thread. They are not recorded.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(crate) struct AnomalyCounters {
    unmatched_pops: AtomicU64,
    left_open: AtomicU64,
    lost_tokens: AtomicU64,
    refused: AtomicU64,
}

impl AnomalyCounters {
    #[cold]
    pub(crate) fn unmatched_pop(&self) {
        self.unmatched_pops.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn left_open(&self, count: usize) {
        self.left_open.fetch_add(count as u64, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn lost_token(&self) {
        self.lost_tokens.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> AnomalyCounts {
        AnomalyCounts {
            unmatched_pops: self.unmatched_pops.load(Ordering::Relaxed),
            left_open: self.left_open.load(Ordering::Relaxed),
            lost_tokens: self.lost_tokens.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
