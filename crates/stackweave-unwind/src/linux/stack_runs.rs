//! The runs of a [`RunTree`](crate::platform::run_tree::RunTree), in limited memory.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::branch_index::StackDifference;
use crate::platform::last_stack::{CAPACITY, FrameDetail, SavedWord};
use crate::platform::stack_memory::read_word;

/// The size of the memory: 1 MiB.
const WORDS: usize = 1 << 17;

/// A run, by its place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct RunId(u32);

impl RunId {
    /// No run: beyond the outermost frame, or a stack that is not in the tree.
    pub(crate) const NONE: Self = Self(0);

    /// Restores an id from [`RunId::word`].
    #[inline(always)]
    pub(crate) fn from_word(word: u32) -> Self {
        Self(word)
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }
}

/// The head of a run. What follows it in memory, with `frames = end - start` and `words = frames + saved_end -
/// saved_start`: the addresses of `words` words (the slots of the frames, then the saved words, the outermost one
/// first), the values expected there, and the details of the frames.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RunHead {
    /// The number of the stack that begins with this run.
    pub(crate) number: u64,
    /// The end of the stack's outermost frame.
    pub(crate) extent: u64,
    /// The frame pointer of the first frame.
    pub(crate) fp: u64,
    /// Whether it matters.
    pub(crate) needs_fp: u32,
    /// The run in which the stack continues, with frame `end`.
    pub(crate) outer: RunId,
    /// The indexes of the frames in the record of the last stack; each stack ends at [`CAPACITY`].
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The indexes of the saved words in the record.
    pub(crate) saved_start: u32,
    pub(crate) saved_end: u32,
}

const HEAD_WORDS: usize = size_of::<RunHead>() / 8;
const DETAIL_WORDS: usize = size_of::<FrameDetail>() / 8;

/// The contents of a run, as in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunContents<'a> {
    pub(crate) slots: &'a [u64],
    pub(crate) addresses: &'a [u64],
    pub(crate) details: &'a [FrameDetail],
    pub(crate) saved: &'a [SavedWord],
}

/// A part of a stack: frames of one run, and the saved words that belong to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPart<'a> {
    /// The index of the first frame in the record.
    pub(crate) start: usize,
    pub(crate) slots: &'a [u64],
    pub(crate) addresses: &'a [u64],
    pub(crate) details: &'a [FrameDetail],
    /// The index of the first saved word in the record.
    pub(crate) saved_start: usize,
    /// The addresses and the values of the saved words, the outermost one first.
    pub(crate) saved: (&'a [u64], &'a [u64]),
}

/// The memory. All zeros: no runs.
#[repr(C)]
pub(crate) struct StackRuns {
    /// Number of used words. The first words are not used: 0 is no run.
    used: usize,
    words: [u64; WORDS],
}

impl StackRuns {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Returns whether there is memory for a run of this many frames and saved words.
    pub(crate) fn has_memory(&self, frames: usize, saved: usize) -> bool {
        self.used.max(HEAD_WORDS) + words_of(frames, saved) <= WORDS
    }

    /// Returns whether there would be memory for a run of this many frames and saved words if there was no other.
    pub(crate) fn could_have_memory(frames: usize, saved: usize) -> bool {
        HEAD_WORDS + words_of(frames, saved) <= WORDS
    }

    /// Adds a run. There is memory for it, and it has a frame.
    pub(crate) fn add(&mut self, head: &RunHead, contents: &RunContents<'_>) -> RunId {
        let RunContents { slots, addresses, details, saved } = contents;
        let (frames, words) = (slots.len(), slots.len() + saved.len());
        let at = self.used.max(HEAD_WORDS);
        let memory = &mut self.words[at..at + words_of(frames, saved.len())];
        self.used = at + memory.len();
        // SAFETY: the memory begins with a head's words, and both are aligned to a word.
        unsafe { memory.as_mut_ptr().cast::<RunHead>().write(*head) };
        let (places, rest) = memory[HEAD_WORDS..].split_at_mut(words);
        let (values, detail_words) = rest.split_at_mut(words);
        places[..frames].copy_from_slice(slots);
        values[..frames].copy_from_slice(addresses);
        for ((place, value), saved) in places[frames..].iter_mut().zip(&mut values[frames..]).zip(saved.iter().rev()) {
            (*place, *value) = (saved.address, saved.value);
        }
        // SAFETY: there are this many words for each detail, which is aligned to a word.
        unsafe { detail_words.as_mut_ptr().cast::<FrameDetail>().copy_from(details.as_ptr(), frames) };
        RunId(at as u32)
    }

    #[inline(always)]
    pub(crate) fn head(&self, id: RunId) -> &RunHead {
        debug_assert!(id != RunId::NONE && id.0 as usize + HEAD_WORDS <= self.used);
        // SAFETY: ids are only made by `add`, for complete runs in this memory, and not used after `clear`.
        unsafe { &*self.words.as_ptr().add(id.0 as usize).cast::<RunHead>() }
    }

    /// Returns the addresses of a run's words, the expected values, and the details of its frames.
    #[inline(always)]
    pub(crate) fn contents(&self, id: RunId) -> (&[u64], &[u64], &[FrameDetail]) {
        let head = self.head(id);
        let frames = (head.end - head.start) as usize;
        let words = frames + (head.saved_end - head.saved_start) as usize;
        // SAFETY: `add` has written all of this after the head.
        unsafe {
            let first = self.words.as_ptr().add(id.0 as usize + HEAD_WORDS);
            (
                core::slice::from_raw_parts(first, words),
                core::slice::from_raw_parts(first.add(words), words),
                core::slice::from_raw_parts(first.add(2 * words).cast(), frames),
            )
        }
    }

    /// Returns whether memory still contains a stack, at least its frames before `end`, except for the slot of the
    /// first.
    ///
    /// # Safety
    /// Memory is readable from the stack's first slot up to its extent.
    #[inline(always)]
    pub(crate) unsafe fn holds(&self, id: RunId, end: usize) -> bool {
        let (end, mut id, mut head) = (end.min(CAPACITY), id, self.head(id));
        let (mut from, mut saved_from) = (head.start + 1, head.saved_start);
        loop {
            let (places, values, _) = self.contents(id);
            let checked = (from - head.start) as usize..places.len() - (saved_from - head.saved_start) as usize;
            let (Some(places), Some(values)) = (places.get(checked.clone()), values.get(checked)) else { return false };
            // SAFETY: the caller promises readable words.
            if !unsafe { all_hold(places, values) } {
                return false;
            }
            (from, saved_from) = (head.end, head.saved_end);
            if from as usize >= end {
                return true;
            }
            (id, head) = (head.outer, self.head(head.outer));
        }
    }

    /// Returns the parts of a stack, from the innermost outward.
    #[inline(always)]
    pub(crate) fn parts(&self, id: RunId) -> impl Iterator<Item = RunPart<'_>> {
        let (mut id, mut from, mut saved_from) = (id, 0, 0);
        core::iter::from_fn(move || {
            if id == RunId::NONE {
                return None;
            }
            let head = self.head(id);
            let (places, values, details) = self.contents(id);
            let (start, saved_start) = (head.start.max(from), head.saved_start.max(saved_from));
            let frames = (head.start.max(from) - head.start) as usize..(head.end - head.start) as usize;
            let saved = frames.end..places.len() - (saved_start - head.saved_start) as usize;
            (id, from, saved_from) = (head.outer, head.end, head.saved_end);
            Some(RunPart {
                start: start as usize,
                slots: &places[frames.clone()],
                addresses: &values[frames.clone()],
                details: &details[frames],
                saved_start: saved_start as usize,
                saved: (&places[saved.clone()], &values[saved]),
            })
        })
    }

    /// Returns the innermost difference of a stack to one that is given as slots and addresses; `None` if it is not in
    /// the address of a frame.
    pub(crate) fn difference(&self, id: RunId, slots: &[u64], addresses: &[u64]) -> Option<StackDifference> {
        let mut new = slots.iter().zip(addresses);
        for part in self.parts(id) {
            for ((old_slot, old), (slot, new)) in part.slots.iter().zip(part.addresses).zip(&mut new) {
                if slot != old_slot {
                    return None;
                }
                if new != old {
                    return Some(StackDifference { slot: *slot, new: *new, old: *old });
                }
            }
        }
        None
    }
}

fn words_of(frames: usize, saved: usize) -> usize {
    HEAD_WORDS + 2 * (frames + saved) + DETAIL_WORDS * frames
}

/// Returns whether these words of memory have these values.
///
/// # Safety
/// The words are readable.
#[inline(always)]
unsafe fn all_hold(places: &[u64], values: &[u64]) -> bool {
    // SAFETY: the caller promises readable words.
    let holds = |(place, value): (&u64, &u64)| unsafe { read_word(*place) } == *value;
    let (place_groups, place_rest) = places.as_chunks::<8>();
    let (value_groups, value_rest) = values.as_chunks::<8>();
    place_groups.iter().zip(value_groups).all(|(places, values)| places.iter().zip(values).all(holds))
        && place_rest.iter().zip(value_rest).all(holds)
}
