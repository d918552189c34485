//! The beginning of a buffer, where a recorder may say again what is open.
//!
//! Whoever reads a recording from its middle, because the events before were dropped, knows so where it is.
//!
//! Hot file: neither allocates nor locks nor calls the system; async-signal-safe.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{mem, ptr};

use super::chunk::CHUNK_WORDS;
use super::kinds::KindNumber;
use super::lane::Lane;

/// Of a buffer so much may be used for what its beginning says.
const MOST_WORDS: usize = CHUNK_WORDS / 2;

/// Is called by a thread that begins a new buffer, before the event that needed it is recorded, with the thread's
/// recording busy: what it records by other ways than the [`ChunkStart`] is lost, and counted. Must be async-signal-safe.
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
    /// Of this lane, for an event of so many words at this time.
    pub(super) fn new(lane: &'a Lane, ticks: u64, words: usize) -> Self {
        Self { lane, ticks, words_left: MOST_WORDS.min(CHUNK_WORDS - words) }
    }

    /// The time of the event that needs the buffer.
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many events of this kind there is room for. If it is less than are to be told, those that are innermost matter
    /// most.
    pub fn room_for(&self, kind: KindNumber) -> usize {
        self.words_left / (1 + usize::from(kind.words))
    }

    /// Records an event as [`Recorder::record_at`](super::Recorder::record_at) does. Says whether there was room.
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

/// The hook of a recorder, which its sessions share.
#[derive(Clone, Debug, Default)]
pub(super) struct HookSlot(Arc<AtomicPtr<()>>);

impl HookSlot {
    pub(super) fn set(&self, hook: Option<ChunkHook>) {
        let word = hook.map_or(ptr::null_mut(), |hook| hook as *mut ());
        self.0.store(word, Ordering::Release);
    }

    pub(super) fn get(&self) -> Option<ChunkHook> {
        let word = self.0.load(Ordering::Acquire);
        // SAFETY: null, which is none, or a hook that was put there as a pointer.
        unsafe { mem::transmute::<*mut (), Option<ChunkHook>>(word) }
    }
}
