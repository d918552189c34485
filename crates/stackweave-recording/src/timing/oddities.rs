//! What went otherwise than begins and ends should, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a program has told that does not fit together. None of it stops the program, and the recording stays in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Oddities {
    /// Ends that came where nothing was open on their thread.
    pub unmatched_pops: u64,
    /// Phases that were open when something around them ended, or their thread.
    pub left_open: u64,
    /// Tokens of phases that were not open on the thread that closed them: closed before, or begun elsewhere.
    pub lost_tokens: u64,
    /// Begins and ends that came in the middle of another on the same thread, from a signal handler: left out.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    unmatched_pops: AtomicU64,
    left_open: AtomicU64,
    lost_tokens: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
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

    pub(crate) fn read(&self) -> Oddities {
        Oddities {
            unmatched_pops: self.unmatched_pops.load(Ordering::Relaxed),
            left_open: self.left_open.load(Ordering::Relaxed),
            lost_tokens: self.lost_tokens.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}
