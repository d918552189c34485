//! Events of all threads, in the order of their times.
//!
//! Each thread's events wait until all that happened before is told of too. They wait in at most [`MOST_WORDS`]; when more
//! come before the writer has told of all, what waited longest goes on as it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem;

use crate::event_layout::{Shape, Shapes};

/// 64 MiB.
const MOST_WORDS: usize = 8 << 20;
/// What is kept of emptied buffers, for whichever thread comes next: 8 MiB.
const MOST_SPARE: usize = 1 << 20;

/// There is none for what came.
#[derive(Debug)]
pub(crate) struct NoMemory;

/// An event that is taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<'a> {
    /// Which buffer it comes from: each thread has its own, always the same.
    pub(crate) slot: usize,
    pub(crate) thread: u32,
    pub(crate) ticks: u64,
    pub(crate) shape: &'a Shape,
    /// Its words, without the head.
    pub(crate) words: &'a [u64],
}

#[derive(Debug, Default)]
struct Buffer {
    thread: u32,
    words: Vec<u64>,
    /// How many of the words are taken.
    at: usize,
    /// The time of the first event that was told of last.
    latest: u64,
}

impl Buffer {
    fn next_ticks(&self) -> Option<u64> {
        self.words.get(self.at).map(|head| head >> 8)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Buffers {
    of_threads: Vec<Buffer>,
    slots: HashMap<u32, usize>,
    /// Those that have words.
    filled: Vec<usize>,
    spare: Vec<Vec<u64>>,
    spare_words: usize,
    waiting: usize,
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Events that could not be told apart from others.
    pub(crate) unknown: u64,
}

impl Buffers {
    /// Adds events of a thread. Says whether it is time to take some out.
    pub(crate) fn push(&mut self, thread: u32, words: &[u64]) -> Result<bool, NoMemory> {
        let Some(first) = words.first() else { return Ok(false) };
        let buffers = &mut self.of_threads;
        let slot = *self.slots.entry(thread).or_insert_with(|| {
            buffers.push(Buffer { thread, ..Buffer::default() });
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
        Ok(self.waiting > MOST_WORDS)
    }

    /// Takes out what waited longest, when too much waits.
    pub(crate) fn take_oldest(&mut self, shapes: &Shapes, take: &mut impl FnMut(Taken<'_>)) {
        let until = self.filled.iter().map(|slot| self.of_threads[*slot].latest).min().unwrap_or(0);
        self.take_until(until, shapes, take);
        if self.waiting > MOST_WORDS / 2 {
            self.take_until(u64::MAX, shapes, take);
        }
    }

    /// Takes out all events before `until`, in the order of their times; those of a thread in their own.
    pub(crate) fn take_until(&mut self, until: u64, shapes: &Shapes, take: &mut impl FnMut(Taken<'_>)) {
        self.order.clear();
        let heads = self.filled.iter().filter_map(|slot| Some(Reverse((self.of_threads[*slot].next_ticks()?, *slot))));
        self.order.extend(heads);
        while let Some(Reverse((ticks, slot))) = self.order.pop() {
            if ticks >= until {
                break;
            }
            let limit = self.order.peek().map_or(until, |next| until.min(next.0.0.saturating_add(1)));
            let buffer = &mut self.of_threads[slot];
            let before = buffer.at;
            while let Some(ticks) = buffer.next_ticks().filter(|ticks| *ticks < limit) {
                let Some((shape, length)) = shapes.first(&buffer.words[buffer.at..]) else {
                    self.unknown += 1;
                    buffer.at = buffer.words.len();
                    break;
                };
                let words = &buffer.words[buffer.at + 1..buffer.at + length];
                take(Taken { slot, thread: buffer.thread, ticks, shape, words });
                buffer.at += length;
            }
            self.waiting -= buffer.at - before;
            self.order.extend(buffer.next_ticks().map(|ticks| Reverse((ticks, slot))));
        }
        self.tidy();
    }

    /// Gives back the room of what is taken.
    fn tidy(&mut self) {
        self.filled.retain(|slot| {
            let buffer = &mut self.of_threads[*slot];
            let taken = mem::take(&mut buffer.at);
            if taken < buffer.words.len() {
                buffer.words.drain(..taken);
                return true;
            }
            let mut words = mem::take(&mut buffer.words);
            if self.spare_words + words.capacity() <= MOST_SPARE {
                words.clear();
                self.spare_words += words.capacity();
                self.spare.push(words);
            }
            false
        });
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let words = self.of_threads.iter().map(|buffer| buffer.words.capacity()).sum::<usize>() + self.spare_words;
        words * size_of::<u64>() + self.of_threads.capacity() * size_of::<Buffer>() + self.slots.capacity() * 16
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stackweave_core::NoNames;
    use stackweave_recording::events;
    use stackweave_recording::{KindNumber, Options, Recorder};
    use stackweave_store::StackTable;
    use stackweave_testkit::folder::Folder;
    use stackweave_testkit::random::Random;

    use super::*;

    static STACKS: StackTable = StackTable::new();

    /// Shapes of the built-in kinds, and the numbers of two.
    fn shapes() -> (Shapes, KindNumber, KindNumber) {
        let folder = Folder::new();
        let recorder = Recorder::start(Options::new(folder.file("out.swv")), &STACKS, Arc::new(NoNames)).unwrap();
        let mut shapes = Shapes::default();
        for kind in events::BUILT_IN {
            shapes.add(recorder.register(kind.clone()).unwrap(), Shape::of(&kind, 1));
        }
        let [free, with] = [events::FREE, events::BEGIN_WITH].map(|kind| recorder.register(kind).unwrap());
        (shapes, free, with)
    }

    #[test]
    fn events_come_out_by_time_and_none_before_it_is_due() {
        let (shapes, free, with) = shapes();
        for seed in 0..30 {
            let (mut random, mut buffers) = (Random::new(seed), Buffers::default());
            let (mut ticks, mut taken, mut told, mut settled) = (0, Vec::new(), Vec::new(), 0);
            for _ in 0..200 {
                let mut words = vec![Vec::new(); 5];
                for _ in 0..random.below(30) {
                    let thread = random.below(5);
                    ticks += random.below(3) as u64;
                    words[thread].extend([ticks << 8 | u64::from(free.get()), ticks]);
                    told.push((ticks, thread as u32));
                    if random.below(4) == 0 {
                        words[thread].extend([ticks << 8 | u64::from(with.get()), 1, 2, 9, 0x4141, 0x41]);
                    }
                }
                for (thread, words) in words.iter().enumerate() {
                    assert!(!buffers.push(thread as u32, words).unwrap());
                }
                settled = ticks.saturating_sub(random.below(20) as u64).max(settled);
                buffers.take_until(settled, &shapes, &mut |event| {
                    assert!(event.ticks < settled, "seed {seed}");
                    if event.words.len() == 1 {
                        taken.push((event.words[0], event.thread));
                    }
                });
                assert_eq!(taken.len(), told.iter().filter(|event| event.0 < settled).count(), "seed {seed}");
            }
            buffers.take_until(u64::MAX, &shapes, &mut |event| {
                taken.extend((event.words.len() == 1).then(|| (event.words[0], event.thread)));
            });
            assert!(taken.is_sorted_by_key(|event| event.0), "seed {seed}");
            let sorted = |mut events: Vec<(u64, u32)>| {
                events.sort_unstable();
                events
            };
            assert_eq!(sorted(taken), sorted(told), "seed {seed}");
            assert_eq!((buffers.waiting, buffers.unknown), (0, 0), "seed {seed}");
        }
    }

    #[test]
    fn what_is_of_no_known_kind_ends_what_can_be_told_apart() {
        let (shapes, free, _) = shapes();
        let mut buffers = Buffers::default();
        let known = [1 << 8 | u64::from(free.get()), 7];
        buffers.push(1, &[known[0], known[1], 0x2fa, 1, 2]).unwrap();
        buffers.push(2, &known).unwrap();
        let mut taken = 0;
        buffers.take_until(u64::MAX, &shapes, &mut |_| taken += 1);
        assert_eq!((taken, buffers.unknown, buffers.waiting), (2, 1, 0));
    }

    #[test]
    fn too_much_does_not_wait() {
        let (shapes, free, _) = shapes();
        let (mut buffers, mut taken, mut ticks) = (Buffers::default(), 0, 0);
        let mut most = 0;
        for _ in 0..3000 {
            for thread in 1..4 {
                let mut words = Vec::new();
                for _ in 0..2048 {
                    ticks += 1;
                    words.extend([ticks << 8 | u64::from(free.get()), ticks]);
                }
                if buffers.push(thread, &words).unwrap() {
                    buffers.take_oldest(&shapes, &mut |_| taken += 1);
                }
                most = most.max(buffers.waiting);
            }
        }
        buffers.take_until(u64::MAX, &shapes, &mut |_| taken += 1);
        assert_eq!((taken, buffers.waiting), (ticks, 0));
        assert!(most <= MOST_WORDS + 4096, "{most}");
        // Little of it is kept.
        assert!(buffers.bytes_used() < 10 << 20, "{}", buffers.bytes_used());
    }

    #[test]
    fn threads_that_are_gone_keep_nothing() {
        let (shapes, free, _) = shapes();
        let (mut buffers, mut taken) = (Buffers::default(), 0);
        for thread in 0..5000 {
            let words: Vec<u64> = (0..4096).map(|ticks| ticks << 8 | u64::from(free.get())).collect();
            buffers.push(thread, &words).unwrap();
            buffers.take_until(u64::MAX, &shapes, &mut |_| taken += 1);
        }
        assert_eq!(taken, 5000 * 2048);
        assert!(buffers.bytes_used() < 10 << 20, "{}", buffers.bytes_used());
    }
}
