//! The last stack of a thread, kept in the memory that a walk is lent: what each frame was, and what was written for
//! it.
//!
//! ```text
//! index | entries: ... low ... start ... | end | new frames (a ring)
//! ```
//!
//! Entries lie innermost first and end at a fixed place, so that a frame keeps its entry while frames come and go
//! inside it. Those from `low` on are one chain: each leads to the next, and each frame's activation is the next shim.
//! Those before `start` were left by frames that have returned; if they are called again in the same way, they fit
//! again.
//!
//! An entry is a guess. Its address is not followed before the chain of frames has led there.
//!
//! Hot file: no allocation, no lock, no GIL.

use super::entry::{Entry, Written};
use super::form::{Step, What};

/// A frame that is not in the entries yet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct New {
    address: u64,
    word: u64,
    is_written: u64,
}

const INDEX_BITS: u32 = 10;
const INDEX_SLOTS: usize = 1 << INDEX_BITS;
/// The most frames that are kept: the outermost of a deeper stack.
pub(super) const CAPACITY: usize = 1 << 14;

/// What lies in the memory. All zeros are a valid value: no stack yet.
#[derive(Debug)]
#[repr(C)]
struct Kept<const CAPACITY: usize> {
    /// How many code objects had died when the stack was walked, plus one; 0 for no stack.
    generation: u64,
    low: usize,
    start: usize,
    /// How many frames were taken from the record, ever.
    replayed: u64,
    /// Where the entry of an address may be.
    index: [u16; INDEX_SLOTS],
    entries: [Entry; CAPACITY],
    /// Its address is where the chain goes on behind the last entry, 0 if it ends there.
    end: Entry,
    new: [New; CAPACITY],
}

/// The record, during one walk.
#[derive(Debug)]
pub(super) struct Record<'a, const CAPACITY: usize> {
    kept: &'a mut Kept<CAPACITY>,
    /// How many new frames came, of which the ring holds the last.
    new_len: usize,
    generation: u64,
}

impl<'a, const CAPACITY: usize> Record<'a, CAPACITY> {
    /// How much memory it takes, in words.
    pub(super) const WORDS: usize = size_of::<Kept<CAPACITY>>() / size_of::<u64>();

    /// The record in this memory; `None` if there is too little of it. What was recorded before code objects died is
    /// forgotten: another may have the address of one of them.
    #[inline(always)]
    pub(super) fn open(memory: &'a mut [u64], deaths: u64) -> Option<Self> {
        const { assert!(CAPACITY.is_power_of_two() && CAPACITY < u16::MAX as usize) };
        if memory.len() < Self::WORDS {
            return None;
        }
        // SAFETY: there is enough memory for it, it consists of numbers with any bits, none larger than a word.
        let kept = unsafe { &mut *memory.as_mut_ptr().cast::<Kept<CAPACITY>>() };
        let generation = deaths + 1;
        if kept.generation != generation || kept.low > CAPACITY || kept.start > CAPACITY {
            (kept.low, kept.start, kept.end.address) = (CAPACITY, CAPACITY, 0);
        }
        Some(Self { kept, new_len: 0, generation })
    }

    /// Before anything is changed. Until the record is closed nothing is recorded: a walk that does not come to its end
    /// leaves nothing behind.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.kept.generation = 0;
    }

    /// From this position on, and the end.
    #[inline(always)]
    pub(super) fn entries(&mut self, position: usize) -> &mut [Entry] {
        let kept: *mut Kept<CAPACITY> = self.kept;
        // SAFETY: the end lies right behind the last entry, and nobody else has either.
        let all = unsafe { core::slice::from_raw_parts_mut((&raw mut (*kept).entries).cast::<Entry>(), CAPACITY + 1) };
        all.get_mut(position..).unwrap_or_default()
    }

    /// The address of the entry at this position, or of the end.
    #[inline(always)]
    pub(super) fn address(&self, position: usize) -> u64 {
        self.kept.entries.get(position).unwrap_or(&self.kept.end).address
    }

    /// The word of the entry at this position, or of the end.
    #[inline(always)]
    pub(super) fn word(&self, position: usize) -> u64 {
        self.kept.entries.get(position).unwrap_or(&self.kept.end).word
    }

    /// The entry of the innermost frame of the last stack.
    #[inline(always)]
    pub(super) fn start(&self) -> usize {
        self.kept.start
    }

    /// The entry with that address, if it is easily found.
    #[inline(always)]
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let position = usize::from(self.kept.index[slot(address)]);
        let entry = self.kept.entries.get(position)?;
        (position >= self.kept.low && entry.address == address).then_some(position)
    }

    /// The entry at this position, changed into what the frame there is now. `None` if that is of another kind, or no
    /// longer leads to the next entry. What was written is up to the caller.
    #[inline(always)]
    pub(super) fn update(&mut self, position: usize, step: &Step) -> Option<&mut Entry> {
        let next = self.address(position + 1);
        let entry = self.kept.entries.get_mut(position)?;
        if next != step.previous || !entry.is_like(step.what) {
            return None;
        }
        entry.word = Entry::new(entry.address, step).word;
        Some(entry)
    }

    /// Remembers a frame that has no entry.
    #[inline(always)]
    pub(super) fn push(&mut self, address: u64, step: &Step) {
        let Entry { word, .. } = Entry::new(address, step);
        self.push_new(New { address, word, is_written: matches!(step.what, What::Frame(_)).into() });
    }

    /// Remembers frames whose entries no longer lead to the rest of the stack.
    #[cold]
    pub(super) fn push_entries(&mut self, from: usize, to: usize) {
        for position in from..to {
            let entry = self.kept.entries[position];
            self.push_new(New { address: entry.address, word: entry.word, is_written: entry.is_written().into() });
        }
    }

    /// Ends the walk. The stack is the new frames, and from `place` on the entries. `written` is what was written for
    /// the new frames, outermost first, `rest` where the chain goes on behind what was walked: its frame, if any, and
    /// `_PyCFrame`.
    #[inline(always)]
    pub(super) fn close(mut self, place: usize, written: impl Iterator<Item = Written>, rest: (u64, u64)) {
        if self.new_len == 0 {
            self.kept.start = place;
        } else {
            self.add_new(place, written, rest);
        }
        self.kept.generation = self.generation;
    }

    fn add_new(&mut self, place: usize, mut written: impl Iterator<Item = Written>, rest: (u64, u64)) {
        let kept = &mut *self.kept;
        if place == CAPACITY {
            let was_whole = kept.low < CAPACITY && kept.end.address == 0;
            if rest.0 != 0 && was_whole {
                // A stack that was cut off, beside which the whole one may be walked again.
                return;
            }
            (kept.end.address, kept.end.written.activation.0) = rest;
        }
        let count = self.new_len.min(CAPACITY).min(place);
        for back in 1..=count {
            let New { address, word, is_written } = kept.new[(self.new_len - back) % CAPACITY];
            let written = if is_written == 0 { None } else { written.next() };
            kept.entries[place - back] = Entry { address, word, written: written.unwrap_or_default() };
            kept.index[slot(address)] = (place - back) as u16;
        }
        // What was there before belonged to another chain.
        kept.low = place - count;
        kept.start = kept.low;
    }

    /// Forgets the new frames of this walk.
    pub(super) fn drop_new(&mut self) {
        self.new_len = 0;
    }

    /// Counts frames that were taken from the record.
    #[inline(always)]
    pub(super) fn count_replayed(&mut self, frames: usize) {
        self.kept.replayed = self.kept.replayed.wrapping_add(frames as u64);
    }

    #[inline(always)]
    fn push_new(&mut self, new: New) {
        self.kept.new[self.new_len % CAPACITY] = new;
        self.new_len += 1;
    }
}

#[inline(always)]
fn slot(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - INDEX_BITS)) as usize
}

/// How many frames walks with this memory have taken from their records.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn replayed(memory: &[u64]) -> u64 {
    memory.get(core::mem::offset_of!(Kept<CAPACITY>, replayed) / size_of::<u64>()).copied().unwrap_or(0)
}
