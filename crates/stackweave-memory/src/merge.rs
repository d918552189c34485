//! Events of all threads, in the order of their times.
//!
//! Each thread's events wait until all that happened before is told of too. They wait in at most [`MOST_WORDS`]; when more
//! come before the writer has told of all, what waited longest goes on as it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::meaning::{Shape, Shapes};

/// 64 MiB.
const MOST_WORDS: usize = 8 << 20;
/// What an empty buffer may keep, for the thread to use again.
const KEPT_WORDS: usize = 16 << 10;
/// What all empty ones may keep together: 4 MiB.
const ALL_KEPT_WORDS: usize = 512 << 10;

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
    waiting: usize,
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Events that could not be told apart from others.
    pub(crate) unknown: u64,
}

impl Buffers {
    /// Adds events of a thread. Says whether it is time to take some out.
    pub(crate) fn push(&mut self, thread: u32, words: &[u64]) -> bool {
        let Some(first) = words.first() else { return false };
        let buffers = &mut self.of_threads;
        let slot = *self.slots.entry(thread).or_insert_with(|| {
            buffers.push(Buffer { thread, ..Buffer::default() });
            buffers.len() - 1
        });
        let buffer = &mut buffers[slot];
        if buffer.words.try_reserve(words.len()).is_err() {
            self.unknown += 1;
            return true;
        }
        buffer.words.extend_from_slice(words);
        buffer.latest = first >> 8;
        self.waiting += words.len();
        self.waiting > MOST_WORDS
    }

    /// Takes out what waited longest, when too much waits.
    pub(crate) fn take_oldest(&mut self, shapes: &Shapes, take: &mut impl FnMut(Taken<'_>)) {
        let with_words = self.of_threads.iter().filter(|buffer| buffer.at < buffer.words.len());
        let until = with_words.map(|buffer| buffer.latest).min().unwrap_or(0);
        self.take_until(until, shapes, take);
        if self.waiting > MOST_WORDS / 2 {
            self.take_until(u64::MAX, shapes, take);
        }
    }

    /// Takes out all events before `until`, in the order of their times; those of a thread in their own.
    pub(crate) fn take_until(&mut self, until: u64, shapes: &Shapes, take: &mut impl FnMut(Taken<'_>)) {
        self.order.clear();
        let heads = self.of_threads.iter().enumerate();
        self.order.extend(heads.filter_map(|(slot, buffer)| buffer.next_ticks().map(|ticks| Reverse((ticks, slot)))));
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
        let mut kept = 0;
        for buffer in self.of_threads.iter_mut().filter(|buffer| buffer.at > 0) {
            if buffer.at == buffer.words.len() {
                buffer.words.clear();
                if buffer.words.capacity() > KEPT_WORDS || kept > ALL_KEPT_WORDS {
                    buffer.words = Vec::new();
                }
                kept += buffer.words.capacity();
            } else {
                buffer.words.drain(..buffer.at);
            }
            buffer.at = 0;
        }
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let words = self.of_threads.iter().map(|buffer| buffer.words.capacity()).sum::<usize>();
        words * size_of::<u64>() + self.of_threads.capacity() * size_of::<Buffer>() + self.slots.capacity() * 16
    }
}
