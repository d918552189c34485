//! Merges the events of all threads in the order of their times.
//!
//! The events of each thread wait until all earlier events of other threads have arrived. At most [`MAX_WORDS`] wait;
//! if more arrive before the writer has read all threads, the oldest are merged as they are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem;

use crate::event_layout::{KindShape, KindShapes};

/// 64 MiB.
const MAX_WORDS: usize = 8 << 20;
/// The capacity of emptied buffers that is kept for the next threads: 8 MiB.
const MAX_SPARE: usize = 1 << 20;

/// There is no memory for the events.
#[derive(Debug)]
pub(crate) struct NoMemory;

/// An event of the merged sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedEvent<'a> {
    /// The index of the buffer that it is from: each thread always has the same.
    pub(crate) slot: usize,
    pub(crate) thread: u32,
    pub(crate) ticks: u64,
    pub(crate) shape: &'a KindShape,
    /// Its words, without the head.
    pub(crate) words: &'a [u64],
}

#[derive(Debug, Default)]
struct ThreadBuffer {
    thread: u32,
    words: Vec<u64>,
    /// The number of words that were merged.
    merged: usize,
    /// The time of the first event of the last chunk.
    latest: u64,
}

impl ThreadBuffer {
    fn next_ticks(&self) -> Option<u64> {
        self.words.get(self.merged).map(|head| head >> 8)
    }
}

#[derive(Debug, Default)]
pub(crate) struct MergeBuffers {
    of_threads: Vec<ThreadBuffer>,
    slots: HashMap<u32, usize>,
    /// The indexes of the buffers that have words.
    filled: Vec<usize>,
    spare: Vec<Vec<u64>>,
    spare_words: usize,
    waiting: usize,
    /// The times of the next events, with their threads and slots. Threads with the same time follow in the order of their
    /// numbers, as for readers of the recording.
    order: BinaryHeap<Reverse<(u64, u32, usize)>>,
    /// The number of times that events could not be decoded.
    pub(crate) unknown: u64,
}

impl MergeBuffers {
    /// Adds events of a thread. Returns whether it is time to merge the oldest.
    pub(crate) fn push(&mut self, thread: u32, words: &[u64]) -> Result<bool, NoMemory> {
        let Some(first) = words.first() else { return Ok(false) };
        let buffers = &mut self.of_threads;
        let slot = *self.slots.entry(thread).or_insert_with(|| {
            buffers.push(ThreadBuffer { thread, ..ThreadBuffer::default() });
            buffers.len() - 1
        });
        let buffer = &mut buffers[slot];
        if buffer.words.is_empty() {
            self.filled.push(slot);
            if let Some(spare) = self.spare.pop() {
                self.spare_words -= spare.capacity();
                buffer.words = spare;
            }
        }
        buffer.words.try_reserve(words.len()).map_err(|_| NoMemory)?;
        buffer.words.extend_from_slice(words);
        buffer.latest = first >> 8;
        self.waiting += words.len();
        Ok(self.waiting > MAX_WORDS)
    }

    /// Merges the oldest events, if too many wait.
    pub(crate) fn merge_oldest(&mut self, shapes: &KindShapes, each: &mut impl FnMut(MergedEvent<'_>)) {
        let until = self.filled.iter().map(|slot| self.of_threads[*slot].latest).min().unwrap_or(0);
        self.merge_until(until, shapes, each);
        if self.waiting > MAX_WORDS / 2 {
            self.merge_until(u64::MAX, shapes, each);
        }
    }

    /// Calls `each` with all events before `until`, in the order of their times; those of one thread keep their order.
    pub(crate) fn merge_until(&mut self, until: u64, shapes: &KindShapes, each: &mut impl FnMut(MergedEvent<'_>)) {
        self.order.clear();
        let head = |slot: &usize| {
            let buffer = &self.of_threads[*slot];
            Some(Reverse((buffer.next_ticks()?, buffer.thread, *slot)))
        };
        self.order.extend(self.filled.iter().filter_map(head));
        while let Some(Reverse((ticks, thread, slot))) = self.order.pop() {
            if ticks >= until {
                break;
            }
            let limit = self
                .order
                .peek()
                .map_or(until, |Reverse((next, other, _))| until.min(next.saturating_add(u64::from(thread < *other))));
            let buffer = &mut self.of_threads[slot];
            let before = buffer.merged;
            while let Some(ticks) = buffer.next_ticks().filter(|ticks| *ticks < limit) {
                let Some((shape, length)) = shapes.first(&buffer.words[buffer.merged..]) else {
                    self.unknown += 1;
                    buffer.merged = buffer.words.len();
                    break;
                };
                let words = &buffer.words[buffer.merged + 1..buffer.merged + length];
                each(MergedEvent { slot, thread, ticks, shape, words });
                buffer.merged += length;
            }
            self.waiting -= buffer.merged - before;
            self.order.extend(buffer.next_ticks().map(|ticks| Reverse((ticks, thread, slot))));
        }
        self.drop_merged();
    }

    /// Drops the words that were merged, and keeps some of the emptied buffers.
    fn drop_merged(&mut self) {
        self.filled.retain(|slot| {
            let buffer = &mut self.of_threads[*slot];
            let merged = mem::take(&mut buffer.merged);
            if merged < buffer.words.len() {
                buffer.words.drain(..merged);
                return true;
            }
            let mut words = mem::take(&mut buffer.words);
            if self.spare_words + words.capacity() <= MAX_SPARE {
                words.clear();
                self.spare_words += words.capacity();
                self.spare.push(words);
            }
            false
        });
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let words = self.of_threads.iter().map(|buffer| buffer.words.capacity()).sum::<usize>() + self.spare_words;
        words * size_of::<u64>() + self.of_threads.capacity() * size_of::<ThreadBuffer>() + self.slots.capacity() * 16
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stackweave_core::NoNames;
    use stackweave_recording::events;
    use stackweave_recording::{KindNumber, Recorder, RecorderOptions};
    use stackweave_store::StackTable;
    use stackweave_testkit::folder::Folder;
    use stackweave_testkit::random::Random;

    use super::*;

    static STACKS: StackTable = StackTable::new();

    /// Returns the shapes of the built-in kinds, and the numbers of two of them.
    fn shapes() -> (KindShapes, KindNumber, KindNumber) {
        let folder = Folder::new();
        let recorder =
            Recorder::start(RecorderOptions::new(folder.file("out.swv")), &STACKS, Arc::new(NoNames)).unwrap();
        let mut shapes = KindShapes::default();
        for kind in events::BUILT_IN {
            shapes.add(recorder.register(kind.clone()).unwrap(), KindShape::of(&kind, 1));
        }
        let [free, with] = [events::FREE, events::BEGIN_WITH].map(|kind| recorder.register(kind).unwrap());
        (shapes, free, with)
    }

    #[test]
    fn events_are_merged_by_time_and_none_before_it_is_due() {
        let (shapes, free, with) = shapes();
        for seed in 0..30 {
            let (mut random, mut buffers) = (Random::new(seed), MergeBuffers::default());
            let (mut ticks, mut merged, mut recorded, mut settled) = (0, Vec::new(), Vec::new(), 0);
            for _ in 0..200 {
                let mut words = vec![Vec::new(); 5];
                for _ in 0..random.below(30) {
                    let thread = random.below(5);
                    ticks += random.below(3) as u64;
                    words[thread].extend([ticks << 8 | u64::from(free.get()), ticks]);
                    recorded.push((ticks, thread as u32));
                    if random.below(4) == 0 {
                        words[thread].extend([ticks << 8 | u64::from(with.get()), 1, 2, 9, 0x4141, 0x41]);
                    }
                }
                for (thread, words) in words.iter().enumerate() {
                    assert!(!buffers.push(thread as u32, words).unwrap());
                }
                settled = ticks.saturating_sub(random.below(20) as u64).max(settled);
                buffers.merge_until(settled, &shapes, &mut |event| {
                    assert!(event.ticks < settled, "seed {seed}");
                    if event.words.len() == 1 {
                        merged.push((event.words[0], event.thread));
                    }
                });
                assert_eq!(merged.len(), recorded.iter().filter(|event| event.0 < settled).count(), "seed {seed}");
            }
            buffers.merge_until(u64::MAX, &shapes, &mut |event| {
                merged.extend((event.words.len() == 1).then(|| (event.words[0], event.thread)));
            });
            assert!(merged.is_sorted(), "seed {seed}");
            let sorted = |mut events: Vec<(u64, u32)>| {
                events.sort_unstable();
                events
            };
            assert_eq!(sorted(merged), sorted(recorded), "seed {seed}");
            assert_eq!((buffers.waiting, buffers.unknown), (0, 0), "seed {seed}");
        }
    }

    #[test]
    fn an_unknown_kind_ends_the_decodable_events_of_its_thread() {
        let (shapes, free, _) = shapes();
        let mut buffers = MergeBuffers::default();
        let known = [1 << 8 | u64::from(free.get()), 7];
        buffers.push(1, &[known[0], known[1], 0x2fa, 1, 2]).unwrap();
        buffers.push(2, &known).unwrap();
        let mut merged = 0;
        buffers.merge_until(u64::MAX, &shapes, &mut |_| merged += 1);
        assert_eq!((merged, buffers.unknown, buffers.waiting), (2, 1, 0));
    }

    #[test]
    fn a_limited_number_of_words_waits() {
        let (shapes, free, _) = shapes();
        let (mut buffers, mut merged, mut ticks) = (MergeBuffers::default(), 0, 0);
        let mut most = 0;
        for _ in 0..3000 {
            for thread in 1..4 {
                let mut words = Vec::new();
                for _ in 0..2048 {
                    ticks += 1;
                    words.extend([ticks << 8 | u64::from(free.get()), ticks]);
                }
                if buffers.push(thread, &words).unwrap() {
                    buffers.merge_oldest(&shapes, &mut |_| merged += 1);
                }
                most = most.max(buffers.waiting);
            }
        }
        buffers.merge_until(u64::MAX, &shapes, &mut |_| merged += 1);
        assert_eq!((merged, buffers.waiting), (ticks, 0));
        assert!(most <= MAX_WORDS + 4096, "{most}");
        // Few of the emptied buffers are kept.
        assert!(buffers.bytes_used() < 10 << 20, "{}", buffers.bytes_used());
    }

    #[test]
    fn buffers_of_ended_threads_keep_no_memory() {
        let (shapes, free, _) = shapes();
        let (mut buffers, mut merged) = (MergeBuffers::default(), 0);
        for thread in 0..5000 {
            let words: Vec<u64> = (0..4096).map(|ticks| ticks << 8 | u64::from(free.get())).collect();
            buffers.push(thread, &words).unwrap();
            buffers.merge_until(u64::MAX, &shapes, &mut |_| merged += 1);
        }
        assert_eq!(merged, 5000 * 2048);
        assert!(buffers.bytes_used() < 10 << 20, "{}", buffers.bytes_used());
    }
}
