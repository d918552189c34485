//! A flight recorder: the last events of a recording, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;

use stackweave_files::output::{Created, Existing, OutputFile};

use super::loss_counter::CountedEvents;
use super::options;
use crate::clock::ClockPoint;
use crate::file::{LossReason, Nesting, OpenWord};
use crate::read::OpenStack;

/// The size by which definitions may exceed the limit on events, so that a small ring has room for definitions.
const SLACK: u64 = 64 << 10;
/// The size of definitions at which a ring that is only limited by time begins a new generation.
const GENERATION: u64 = 1 << 20;
/// If there are more points, every second one is removed.
const MAX_POINTS: usize = 1024;
/// If there are more combinations of threads and reasons, losses are not distinguished by thread.
const MAX_LOSSES: usize = 256;

/// Keeps blocks of events and their definitions within limits of size and age. Of dropped events it keeps their effect on open spans
/// and their number, so the rest is always a complete recording.
///
/// Definitions have at most two generations: when the last block of a generation is dropped, so are its definitions.
#[derive(Debug)]
pub(super) struct Ring {
    max_bytes: u64,
    max_ticks: u64,
    /// The start of the section, and the kinds of events.
    declared: Vec<u8>,
    /// The threads with events in the ring, and those that may still record.
    threads: BTreeMap<u32, RingThread>,
    lost: BTreeMap<(LossReason, u32), CountedEvents>,
    /// The last generation is that of future events.
    generations: VecDeque<DefinitionGeneration>,
    points: Vec<ClockPoint>,
    blocks: VecDeque<RingBlock>,
    /// The size of all blocks.
    bytes: u64,
    overwritten: Option<CountedEvents>,
    /// The open spans of threads before their first event in the ring.
    open: BTreeMap<u32, OpenStack<OpenWord>>,
}

#[derive(Debug)]
struct RingBlock {
    bytes: Vec<u8>,
    of: CountedEvents,
    nesting: Vec<(u32, Nesting)>,
}

/// Definitions, and the number of blocks that need them.
#[derive(Debug, Default)]
struct DefinitionGeneration {
    definitions: Vec<u8>,
    blocks: usize,
}

#[derive(Debug, Default)]
struct RingThread {
    tid: u32,
    name: String,
    /// The number of blocks with events of it.
    blocks: usize,
    has_ended: bool,
}

/// The open spans of a thread before its first event in the ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenAtStart {
    pub(super) thread: u32,
    /// The spans, outermost first, with their depths.
    pub(super) open: Vec<(u64, OpenWord)>,
    /// Whether the ring has events of the thread.
    pub(super) has_events: bool,
}

impl Ring {
    /// Returns a ring with this start and this point.
    pub(super) fn new(limits: options::RingLimits, ticks_per_second: u64, start: Vec<u8>, first: ClockPoint) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a limit on age needs no exactness; casts from floats saturate"
        )]
        let ticks = |seconds: f64| (seconds * ticks_per_second as f64) as u64;
        Self {
            max_bytes: limits.bytes.unwrap_or(u64::MAX),
            max_ticks: limits.seconds.map_or(u64::MAX, ticks),
            declared: start,
            threads: BTreeMap::new(),
            lost: BTreeMap::new(),
            generations: VecDeque::from([DefinitionGeneration::default()]),
            points: vec![first],
            blocks: VecDeque::new(),
            bytes: 0,
            overwritten: None,
            open: BTreeMap::new(),
        }
    }

    /// Returns the bytes that are never dropped, to which the few kinds of events are added.
    pub(super) const fn declared(&mut self) -> &mut Vec<u8> {
        &mut self.declared
    }

    /// Adds definitions that later events refer to.
    pub(super) fn define(&mut self, bytes: &[u8]) {
        if let Some(current) = self.generations.back_mut() {
            current.definitions.extend_from_slice(bytes);
        }
    }

    /// Adds a thread, or changes its name.
    pub(super) fn name_thread(&mut self, number: u32, tid: u32, name: &str) {
        let thread = self.threads.entry(number).or_default();
        (thread.tid, thread.name) = (tid, name.to_owned());
    }

    /// Notes that a thread will not record again: it is removed with its last events.
    pub(super) fn end_thread(&mut self, number: u32) {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.has_ended = true;
        }
        self.forget_thread_without_events(number);
    }

    /// Returns the threads, each with its number, thread id and name.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u32, u32, &str)> {
        self.threads.iter().map(|(number, thread)| (*number, thread.tid, &*thread.name))
    }

    /// Counts lost events.
    pub(super) fn lose(&mut self, reason: LossReason, thread: u32, counted: CountedEvents) {
        let is_known = self.lost.contains_key(&(reason, thread));
        let thread = if is_known || self.lost.len() < MAX_LOSSES { thread } else { 0 };
        self.lost.entry((reason, thread)).and_modify(|others| *others = others.and(counted)).or_insert(counted);
    }

    /// Returns the lost events, without those that the ring dropped.
    pub(super) fn lost(&self) -> impl Iterator<Item = (LossReason, u32, CountedEvents)> {
        self.lost.iter().map(|((reason, thread), counted)| (*reason, *thread, *counted))
    }

    pub(super) fn add_point(&mut self, point: ClockPoint) {
        self.points.push(point);
        if self.points.len() > MAX_POINTS {
            let last = self.points.len() - 1;
            let mut index = 0..;
            self.points.retain(|_| index.next().is_some_and(|index| index == last || index % 2 == 0));
        }
    }

    /// Adds blocks with these events, and their effect on open spans.
    pub(super) fn add(&mut self, bytes: Vec<u8>, of: CountedEvents, nesting: Vec<(u32, Nesting)>) {
        self.bytes += bytes.len() as u64;
        for (thread, _) in &nesting {
            self.threads.entry(*thread).or_default().blocks += 1;
        }
        if let Some(current) = self.generations.back_mut() {
            current.blocks += 1;
        }
        self.blocks.push_back(RingBlock { bytes, of, nesting });
    }

    /// Returns the size of the events and definitions.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.bytes + self.definition_bytes()
    }

    fn definition_bytes(&self) -> u64 {
        self.generations.iter().map(|generation| generation.definitions.len() as u64).sum()
    }

    /// Returns whether definitions of an earlier generation are kept.
    pub(super) fn has_previous(&self) -> bool {
        self.generations.len() > 1
    }

    /// Returns whether later events should start a new generation, because there are too many definitions to keep.
    pub(super) fn wants_generation(&self) -> bool {
        let limited = self.max_bytes.saturating_add(SLACK) / 2;
        let most = if self.max_bytes == u64::MAX { self.bytes.max(GENERATION) } else { limited };
        !self.has_previous() && self.definition_bytes() > most
    }

    /// Begins a generation of definitions for later events.
    pub(super) fn begin_generation(&mut self) {
        self.generations.push_back(DefinitionGeneration::default());
        self.drop_unused_generations();
    }

    /// Drops the previous generation, with its events.
    pub(super) fn drop_previous(&mut self) {
        while self.has_previous() {
            self.drop_first();
        }
    }

    fn drop_unused_generations(&mut self) {
        while self.has_previous() && self.generations.front().is_some_and(|generation| generation.blocks == 0) {
            self.generations.pop_front();
        }
    }

    fn forget_thread_without_events(&mut self, number: u32) {
        if self.threads.get(&number).is_some_and(|thread| thread.has_ended && thread.blocks == 0) {
            self.threads.remove(&number);
            self.open.remove(&number);
        }
    }

    /// Returns whether the limit on size is exceeded. The last block stays, however many definitions it needs.
    fn is_too_large(&self) -> bool {
        let most = self.max_bytes.saturating_add(SLACK);
        self.bytes > self.max_bytes || self.blocks.len() > 1 && self.kept_bytes() > most
    }

    /// Drops blocks that exceed the limit on size, or are too old at this time.
    pub(super) fn shrink(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.max_ticks);
        while let Some(block) = self.blocks.front()
            && (self.is_too_large() || block.of.last_ticks < oldest)
        {
            self.drop_first();
        }
        self.drop_points();
    }

    /// Drops the oldest block, and what only it needs.
    fn drop_first(&mut self) {
        let Some(block) = self.blocks.pop_front() else { return self.drop_unused_generations() };
        self.bytes -= block.bytes.len() as u64;
        self.overwritten = Some(self.overwritten.map_or(block.of, |others| others.and(block.of)));
        if let Some(generation) = self.generations.front_mut() {
            generation.blocks -= 1;
        }
        self.drop_unused_generations();
        for (thread, nesting) in &block.nesting {
            let open = self.open.entry(*thread).or_default();
            nesting.apply(open);
            if open.depth() == 0 && !open.was_recorded_open() {
                self.open.remove(thread);
            }
            if let Some(known) = self.threads.get_mut(thread) {
                known.blocks -= 1;
            }
            self.forget_thread_without_events(*thread);
        }
    }

    /// Returns the open spans of threads before their first event in the ring, and the time of its first event, or `now` if it is
    /// empty.
    pub(super) fn open_at_start(&self, now: u64) -> (Vec<OpenAtStart>, u64) {
        let of = |(thread, open): (&u32, &OpenStack<OpenWord>)| OpenAtStart {
            thread: *thread,
            open: open.with_depths().map(|(depth, span)| (depth, *span)).collect(),
            has_events: self.threads.get(thread).is_some_and(|thread| thread.blocks > 0),
        };
        let first = self.blocks.iter().map(|block| block.of.first_ticks).min().unwrap_or(now);
        (self.open.iter().map(of).filter(|before| !before.open.is_empty()).collect(), first)
    }

    /// Removes points before all events, except two: the first is the start of the recording, and the last fixes the
    /// line.
    fn drop_points(&mut self) {
        let first_event = self.blocks.iter().map(|block| block.of.first_ticks).min().unwrap_or(u64::MAX);
        let before = self.points.partition_point(|point| point.ticks < first_event);
        if before > 2 {
            self.points.drain(1..before - 1);
        }
    }

    /// Returns the clock points for its events.
    pub(super) fn points(&self) -> &[ClockPoint] {
        &self.points
    }

    /// Returns the events that were dropped so far.
    pub(super) const fn overwritten(&self) -> Option<CountedEvents> {
        self.overwritten
    }

    /// Returns the number of its events.
    pub(super) fn events(&self) -> u64 {
        self.blocks.iter().map(|block| block.of.count).sum()
    }

    /// Writes everything to a file, with encoded blocks before (`head`) and after (`tail`) the events. The file is created completely
    /// or not at all. Returns its length, and the proof that it was created here; none for a device, a FIFO or a socket.
    pub(super) fn write(
        &self,
        path: &Path,
        existing: Existing,
        [head, tail]: [&[u8]; 2],
    ) -> io::Result<(u64, Option<Created>)> {
        let mut out = OutputFile::create(path, existing)?;
        let blocks = self.blocks.iter().map(|block| &block.bytes[..]);
        let definitions = self.generations.iter().map(|generation| &generation.definitions[..]);
        for bytes in [&self.declared[..]].into_iter().chain(definitions).chain([head]).chain(blocks).chain([tail]) {
            out.write_all(bytes)?;
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(bytes: Option<u64>, seconds: Option<f64>) -> Ring {
        Ring::new(options::RingLimits { bytes, seconds }, 1_000, b"start".to_vec(), ClockPoint::default())
    }

    fn events(count: u64, first_ticks: u64, last_ticks: u64) -> CountedEvents {
        CountedEvents { count, first_ticks, last_ticks }
    }

    #[test]
    fn the_oldest_blocks_are_dropped_at_the_limit_on_size() {
        let mut ring = ring(Some(25), None);
        for (number, ticks) in (1..=5).zip([10, 20, 30, 40, 50]) {
            ring.add(vec![number; 10], events(number.into(), ticks, ticks + 5), Vec::new());
            ring.shrink(ticks);
        }
        assert_eq!(ring.events(), 9);
        assert_eq!(ring.overwritten(), Some(events(6, 10, 35)));
    }

    #[test]
    fn the_oldest_blocks_are_dropped_at_the_limit_on_age() {
        let mut ring = ring(None, Some(0.1));
        for ticks in [0, 50, 100, 150] {
            ring.add(vec![0; 10], events(1, ticks, ticks + 49), Vec::new());
            ring.add_point(ClockPoint { ticks: ticks + 1, ..ClockPoint::default() });
        }
        ring.shrink(200);
        assert_eq!((ring.events(), ring.overwritten()), (2, Some(events(2, 0, 99))));
        let points: Vec<u64> = ring.points().iter().map(|point| point.ticks).collect();
        assert_eq!(points, [0, 51, 101, 151]);
        ring.shrink(10_000);
        assert_eq!(ring.events(), 0);
        assert_eq!(ring.points().len(), 2);
    }
}
