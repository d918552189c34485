//! The beginning of a buffer, where a recorder may record the open spans again.
//!
//! They show a reader the nesting where earlier events were dropped.
//!
//! Hot file: neither allocates nor locks nor makes system calls; async-signal-safe.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{mem, ptr};

use super::chunk::CHUNK_WORDS;
use super::kind_registry::KindNumber;
use super::lane::Lane;

/// The maximum number of words of a buffer that its beginning may use.
const MAX_WORDS: usize = CHUNK_WORDS / 2;

/// A function that a thread calls when it begins a new buffer, before the event that needed the buffer is recorded. The thread's lane
/// is busy meanwhile: events that the function records other than by the [`ChunkStart`] are lost, and counted. It must be
/// async-signal-safe.
pub type ChunkHook = fn(&mut ChunkStart<'_>);

/// The beginning of a thread's buffer.
pub struct ChunkStart<'a> {
    lane: &'a Lane,
    ticks: u64,
    words_left: usize,
}

impl fmt::Debug for ChunkStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkStart").field("ticks", &self.ticks).finish_non_exhaustive()
    }
}

impl<'a> ChunkStart<'a> {
    /// Returns the beginning of this lane's buffer, for an event of this many words at this time.
    pub(super) fn new(lane: &'a Lane, ticks: u64, words: usize) -> Self {
        Self { lane, ticks, words_left: MAX_WORDS.min(CHUNK_WORDS - words) }
    }

    /// Returns the time of the event that needs the buffer.
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the number of events of this kind that fit. If more spans are open, the innermost are the most important.
    pub fn capacity_for(&self, kind: KindNumber) -> usize {
        self.words_left / (1 + usize::from(kind.words))
    }

    /// Records an event as [`Recorder::record_at`](super::Recorder::record_at) does. Returns whether it fits.
    pub fn record_at(&mut self, ticks: u64, kind: KindNumber, words: &[u64]) -> bool {
        debug_assert!(words.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of kind {kind:?}");
        let needed = 1 + words.len();
        if words.len() != usize::from(kind.words) || kind.has_bytes || needed > self.words_left {
            return false;
        }
        self.words_left -= needed;
        self.lane.append_at(ticks, kind.number, words);
        true
    }
}

/// The hook of a recorder, shared by its sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkHookSlot(Arc<AtomicPtr<()>>);

impl ChunkHookSlot {
    pub(super) fn set(&self, hook: Option<ChunkHook>) {
        let word = hook.map_or(ptr::null_mut(), |hook| hook as *mut ());
        self.0.store(word, Ordering::Release);
    }

    pub(super) fn get(&self) -> Option<ChunkHook> {
        let word = self.0.load(Ordering::Acquire);
        // SAFETY: null, which is `None`, or a hook that was stored as a pointer.
        unsafe { mem::transmute::<*mut (), Option<ChunkHook>>(word) }
    }
}
