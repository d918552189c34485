//! The cache of a thread's last stack, in the memory that is passed to a walk: what each frame was, and what was
//! written for it.
//!
//! ```text
//! index | entries: ... low ... start ... | end | new frames (a ring)
//! ```
//!
//! Entries are stored innermost first and end at a fixed position, so that a frame keeps its entry while frames inside
//! it are called and return. Those from `low` on are one chain: each leads to the next, and each frame's activation is
//! the next shim. Those before `start` belong to frames that have returned; if they are called again in the same way,
//! their entries are valid again.
//!
//! An entry is a guess. Its address is not followed before the chain of frames has led there.
//!
//! Hot file: no allocation, no lock, no GIL.

use super::cached_frame::{CachedFrame, WrittenFrame};
use super::frame_chain::{ChainStep, StepKind};

/// A frame without an entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct NewFrame {
    address: u64,
    word: u64,
    is_written: u64,
}

const INDEX_BITS: u32 = 10;
const INDEX_SLOTS: usize = 1 << INDEX_BITS;
/// The largest number of entries: the outermost frames of a deeper stack.
pub(super) const CAPACITY: usize = 1 << 14;

/// The contents of the memory. All zeros are a valid value: no stack yet.
#[derive(Debug)]
#[repr(C)]
struct CachedStack<const CAPACITY: usize> {
    /// The number of code objects that had died when the stack was walked, plus one; 0 for no stack.
    generation: u64,
    low: usize,
    start: usize,
    /// The number of frames that were ever reused from the cache.
    replayed: u64,
    /// The possible position of an address's entry.
    index: [u16; INDEX_SLOTS],
    entries: [CachedFrame; CAPACITY],
    /// Its address is the frame that follows the last entry, 0 if the chain ends there.
    end: CachedFrame,
    new: [NewFrame; CAPACITY],
}

/// The cache, during one walk.
#[derive(Debug)]
pub(super) struct StackCache<'a, const CAPACITY: usize> {
    cached: &'a mut CachedStack<CAPACITY>,
    /// The number of new frames that were added; the ring holds the last of them.
    new_len: usize,
    generation: u64,
}

impl<'a, const CAPACITY: usize> StackCache<'a, CAPACITY> {
    /// The size of the cache in words.
    pub(super) const WORDS: usize = size_of::<CachedStack<CAPACITY>>() / size_of::<u64>();

    /// Opens the cache in this memory; `None` if there is too little of it. What was cached before code objects died is
    /// dropped, because another may have the address of one of them.
    #[inline(always)]
    pub(super) fn open(memory: &'a mut [u64], deaths: u64) -> Option<Self> {
        const { assert!(CAPACITY.is_power_of_two() && CAPACITY < u16::MAX as usize) };
        if memory.len() < Self::WORDS {
            return None;
        }
        // SAFETY: there is enough memory, and the type consists of numbers with any bits, none larger than a word.
        let cached = unsafe { &mut *memory.as_mut_ptr().cast::<CachedStack<CAPACITY>>() };
        let generation = deaths + 1;
        if cached.generation != generation || cached.low > CAPACITY || cached.start > CAPACITY {
            (cached.low, cached.start, cached.end.address) = (CAPACITY, CAPACITY, 0);
        }
        Some(Self { cached, new_len: 0, generation })
    }

    /// Begins to change the cache. It is empty until it is closed: a walk that does not come to its end leaves nothing
    /// in it.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.cached.generation = 0;
    }

    /// Returns the entries from this position on, and the end.
    #[inline(always)]
    pub(super) fn entries(&mut self, position: usize) -> &mut [CachedFrame] {
        let cached: *mut CachedStack<CAPACITY> = self.cached;
        // SAFETY: the end directly follows the last entry, and nothing else borrows either.
        let all = unsafe {
            core::slice::from_raw_parts_mut((&raw mut (*cached).entries).cast::<CachedFrame>(), CAPACITY + 1)
        };
        all.get_mut(position..).unwrap_or_default()
    }

    /// Returns the address of the entry at this position, or of the end.
    #[inline(always)]
    pub(super) fn address(&self, position: usize) -> u64 {
        self.cached.entries.get(position).unwrap_or(&self.cached.end).address
    }

    /// Returns the word of the entry at this position, or of the end.
    #[inline(always)]
    pub(super) fn word(&self, position: usize) -> u64 {
        self.cached.entries.get(position).unwrap_or(&self.cached.end).word
    }

    /// Returns the position of the innermost frame of the last stack.
    #[inline(always)]
    pub(super) fn start(&self) -> usize {
        self.cached.start
    }

    /// Returns the position of the entry with that address, if the index has it.
    #[inline(always)]
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let position = usize::from(self.cached.index[slot(address)]);
        let entry = self.cached.entries.get(position)?;
        (position >= self.cached.low && entry.address == address).then_some(position)
    }

    /// Changes the entry at this position into what the frame is now, and returns it. `None` if the frame is of another
    /// kind, or no longer leads to the next entry. The caller sets what is written.
    #[inline(always)]
    pub(super) fn update(&mut self, position: usize, step: &ChainStep) -> Option<&mut CachedFrame> {
        let next = self.address(position + 1);
        let entry = self.cached.entries.get_mut(position)?;
        if next != step.previous || !entry.has_kind(step.kind) {
            return None;
        }
        entry.word = CachedFrame::new(entry.address, step).word;
        Some(entry)
    }

    /// Adds a frame that has no entry.
    #[inline(always)]
    pub(super) fn push(&mut self, address: u64, step: &ChainStep) {
        let CachedFrame { word, .. } = CachedFrame::new(address, step);
        self.push_new(NewFrame { address, word, is_written: matches!(step.kind, StepKind::Frame(_)).into() });
    }

    /// Adds frames whose entries no longer lead to the rest of the stack.
    #[cold]
    pub(super) fn push_entries(&mut self, from: usize, to: usize) {
        for position in from..to {
            let entry = self.cached.entries[position];
            self.push_new(NewFrame { address: entry.address, word: entry.word, is_written: entry.is_written().into() });
        }
    }

    /// Ends the walk. The stack consists of the new frames, and of the entries from `position` on. `written` is what
    /// was written for the new frames, outermost first; `rest` is what follows the walked part: its first frame, if
    /// any, and `_PyCFrame`.
    #[inline(always)]
    pub(super) fn close(mut self, position: usize, written: impl Iterator<Item = WrittenFrame>, rest: (u64, u64)) {
        if self.new_len == 0 {
            self.cached.start = position;
        } else {
            self.add_new(position, written, rest);
        }
        self.cached.generation = self.generation;
    }

    fn add_new(&mut self, position: usize, mut written: impl Iterator<Item = WrittenFrame>, rest: (u64, u64)) {
        let cached = &mut *self.cached;
        if position == CAPACITY {
            let was_complete = cached.low < CAPACITY && cached.end.address == 0;
            if rest.0 != 0 && was_complete {
                // This stack was cut off; the complete one may be walked again.
                return;
            }
            (cached.end.address, cached.end.written.activation.0) = rest;
        }
        let count = self.new_len.min(CAPACITY).min(position);
        for back in 1..=count {
            let NewFrame { address, word, is_written } = cached.new[(self.new_len - back) % CAPACITY];
            let written = if is_written == 0 { None } else { written.next() };
            cached.entries[position - back] = CachedFrame { address, word, written: written.unwrap_or_default() };
            cached.index[slot(address)] = (position - back) as u16;
        }
        // The entries before belonged to another chain.
        cached.low = position - count;
        cached.start = cached.low;
    }

    /// Drops the new frames of this walk.
    pub(super) fn drop_new(&mut self) {
        self.new_len = 0;
    }

    /// Counts frames that were reused from the cache.
    #[inline(always)]
    pub(super) fn count_replayed(&mut self, frames: usize) {
        self.cached.replayed = self.cached.replayed.wrapping_add(frames as u64);
    }

    #[inline(always)]
    fn push_new(&mut self, new: NewFrame) {
        self.cached.new[self.new_len % CAPACITY] = new;
        self.new_len += 1;
    }
}

#[inline(always)]
fn slot(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - INDEX_BITS)) as usize
}

/// Returns how many frames walks with this cache have reused.
#[cfg(any(test, feature = "testing"))]
pub(super) fn replayed(memory: &[u64]) -> u64 {
    memory.get(core::mem::offset_of!(CachedStack<CAPACITY>, replayed) / size_of::<u64>()).copied().unwrap_or(0)
}
