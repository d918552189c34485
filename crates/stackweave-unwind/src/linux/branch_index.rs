//! The index of a [`RunTree`](crate::platform::run_tree::RunTree): from a stack that is in memory to the run that
//! it may have.
//!
//! Many stacks have the same innermost frame at the same address. So an entry is either a run, or the address of a word
//! by which the stacks with the entry's key differ: that word is read, and is part of the next key. Each word is the
//! slot of the innermost frame in which two of them differ. The result is a guess, and is checked.
//!
//! The first access of a thread to a page of memory is expensive, so the index begins with one page and grows.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::stack_memory::read_word;
use crate::platform::stack_runs::RunId;

const WAYS: usize = 4;
/// One page.
const FIRST_SETS: usize = 64;
const MAX_SETS: usize = 1 << 11;
const GROWTH: usize = 4;
/// The largest number of words that are read.
const MAX_WORDS: usize = 64;

/// An entry; all zeros are none.
#[derive(Clone, Copy, Debug, Default)]
struct IndexEntry {
    tag: u32,
    /// The run; or if there is a word, any of those that differ in it.
    run: u32,
    /// The address of the word; 0: none.
    word: u64,
}

/// Some entries in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct EntrySet {
    tags: [u32; WAYS],
    runs: [u32; WAYS],
    words: [u64; WAYS],
}

impl EntrySet {
    const EMPTY: Self = Self { tags: [0; WAYS], runs: [0; WAYS], words: [0; WAYS] };

    /// Returns the way that has this tag, without a branch for each.
    #[inline(always)]
    fn way(&self, tag: u32) -> Option<usize> {
        let matches = (0..WAYS).fold(0_usize, |bits, way| bits | usize::from(self.tags[way] == tag) << way);
        (matches != 0).then_some(matches.trailing_zeros() as usize % WAYS)
    }

    #[inline(always)]
    fn entry(&self, way: usize) -> IndexEntry {
        IndexEntry { tag: self.tags[way], run: self.runs[way], word: self.words[way] }
    }

    fn set(&mut self, way: usize, entry: IndexEntry) {
        (self.tags[way], self.runs[way], self.words[way]) = (entry.tag, entry.run, entry.word);
    }

    /// Adds an entry in place of the oldest.
    fn push(&mut self, entry: IndexEntry) {
        for way in (1..WAYS).rev() {
            self.set(way, self.entry(way - 1));
        }
        self.set(0, entry);
    }
}

/// The index. All zeros are an empty one.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BranchIndex {
    sets: [EntrySet; MAX_SETS],
    /// Number of sets in use, less one: a power of two, less one. 0 until the first insertion.
    mask: usize,
    /// Number of entries that were inserted since the index last grew.
    inserted: usize,
}

/// The key of some stacks: those with an innermost frame, and with some words.
#[derive(Clone, Copy, Debug)]
struct BranchKey(u64);

impl BranchKey {
    #[inline(always)]
    fn of_frame(slot: u64, address: u64) -> Self {
        Self(0).and(slot, address)
    }

    #[inline(always)]
    fn and(self, place: u64, word: u64) -> Self {
        let mixed = (self.0 ^ place.rotate_left(32).wrapping_add(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ mixed >> 32)
    }

    /// Returns the tag of an entry with this key. Never 0.
    #[inline(always)]
    fn tag(self) -> u32 {
        (self.0 >> 20) as u32 | 1 << 31
    }
}

/// The difference between a new stack and one in the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackDifference {
    /// The innermost slot in which they differ, with the words that they have there.
    pub(crate) slot: u64,
    pub(crate) new: u64,
    pub(crate) old: u64,
}

impl BranchIndex {
    pub(crate) fn clear(&mut self) {
        self.sets[..=self.mask].fill(EntrySet::EMPTY);
    }

    /// Returns the run that a stack with this innermost frame may have.
    ///
    /// # Safety
    /// Memory is readable from the slot up to `high`.
    #[inline(always)]
    pub(crate) unsafe fn find(&self, slot: u64, address: u64, high: u64) -> Option<RunId> {
        let mut key = BranchKey::of_frame(slot, address);
        for _ in 0..MAX_WORDS {
            let entry = self.entry(key)?;
            if entry.word == 0 {
                return Some(RunId::from_word(entry.run));
            }
            if entry.word < slot || entry.word.saturating_add(8) > high {
                return None;
            }
            // SAFETY: between the slot and `high`.
            key = key.and(entry.word, unsafe { read_word(entry.word) });
        }
        None
    }

    #[inline(always)]
    fn entry(&self, key: BranchKey) -> Option<IndexEntry> {
        let set = &self.sets[key.tag() as usize & self.mask & (MAX_SETS - 1)];
        set.way(key.tag()).map(|way| set.entry(way))
    }

    /// Inserts a run with this innermost frame. `compare` returns the difference between its stack and that of another
    /// run; `None` if none is in the address of a frame. `word_at` returns the address of its frame with that slot.
    pub(crate) fn insert(
        &mut self,
        new: RunId,
        (slot, address): (u64, u64),
        compare: impl Fn(RunId) -> Option<StackDifference>,
        word_at: impl Fn(u64) -> Option<u64>,
    ) {
        let mut key = BranchKey::of_frame(slot, address);
        for _ in 0..MAX_WORDS {
            let Some(IndexEntry { run, word, .. }) = self.entry(key) else { break };
            let difference = compare(RunId::from_word(run));
            if word != 0 && difference.is_none_or(|difference| difference.slot >= word) {
                let Some(value) = word_at(word) else { break };
                key = key.and(word, value);
                continue;
            }
            let Some(StackDifference { slot, new, old }) = difference else { break };
            // The entry moves to the key with the old word; the new run gets the key with the new word.
            self.put(key, run, slot);
            self.put(key.and(slot, old), run, word);
            key = key.and(slot, new);
        }
        self.put(key, new.word(), 0);
    }

    /// Sets the entry of a key. If there was none, it replaces the oldest of its set.
    fn put(&mut self, key: BranchKey, run: u32, word: u64) {
        let entry = IndexEntry { tag: key.tag(), run, word };
        let set = &mut self.sets[key.tag() as usize & self.mask];
        if let Some(way) = set.way(entry.tag) {
            return set.set(way, entry);
        }
        let is_half_full = self.inserted > self.mask / 2 * WAYS;
        if self.mask == 0 || (is_half_full && self.mask + 1 < MAX_SETS) {
            self.grow();
        }
        self.inserted += 1;
        self.sets[key.tag() as usize & self.mask].push(entry);
    }

    /// Uses more sets, and moves the existing entries to where they now belong.
    fn grow(&mut self) {
        let old = if self.mask == 0 { 0 } else { self.mask + 1 };
        self.mask = if old == 0 { FIRST_SETS } else { (old * GROWTH).min(MAX_SETS) } - 1;
        for index in 0..old {
            for way in (0..WAYS).rev() {
                let entry = self.sets[index].entry(way);
                let set = entry.tag as usize & self.mask;
                if entry.tag != 0 && set != index {
                    self.sets[index].set(way, IndexEntry::default());
                    self.sets[set].push(entry);
                }
            }
        }
        self.inserted = 0;
    }
}
