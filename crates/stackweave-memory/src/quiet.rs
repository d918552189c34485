//! Threads, and times, of which nothing is told.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use crate::blocks::{Block, NEVER, QUIET};

/// While it lives, nothing that the calling thread allocates or frees is recorded: for what is not the program's own.
#[derive(Debug)]
#[must_use = "what follows is quiet only as long as it lives"]
pub struct Quiet {
    block: Option<&'static Block>,
    before: usize,
    /// It is the thread's that has made it.
    of_thread: PhantomData<*const ()>,
}

impl Quiet {
    /// Nothing is told of the calling thread from now on. Guards may be inside each other.
    pub fn begin() -> Self {
        let block = Block::for_this_thread();
        let before = block.map_or(0, |block| block.busy.load(Ordering::Relaxed));
        if let Some(block) = block.filter(|_| before == 0) {
            block.busy.store(QUIET, Ordering::Relaxed);
        }
        Self { block, before, of_thread: PhantomData }
    }

    /// Nothing is ever told of the calling thread: it is one of ours.
    pub fn for_ever() {
        if let Some(block) = Block::for_this_thread() {
            block.busy.store(NEVER, Ordering::Relaxed);
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(block) = self.block.filter(|_| self.before == 0) {
            block.busy.store(0, Ordering::Relaxed);
        }
    }
}
