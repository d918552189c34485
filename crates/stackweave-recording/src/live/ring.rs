//! The last events of a recording, in memory: a flight recorder.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;

use stackweave_files::output::{Created, Existing, OutputFile};

use super::options;
use super::tally::Counted;
use crate::clock::ClockPoint;
use crate::file::{LossReason, Nesting, OpenWord};
use crate::read::OpenStack;

/// A ring may hold so many bytes of definitions more than it may hold of events, so that a small one has room for any.
const SLACK: u64 = 64 << 10;
/// A ring that is limited by time alone begins a new generation of definitions when it has so many bytes of them.
const GENERATION: u64 = 1 << 20;
/// More points are thinned out.
const MOST_POINTS: usize = 1024;
/// For more threads and reasons, losses are not told apart by thread.
const MOST_LOSSES: usize = 256;

/// Keeps blocks of events and what they refer to, until there are too many bytes of them or they are too old. What was
/// dropped is kept as far as it is needed: what it left open, and how many events it was. So what is left is always a whole recording.
///
/// Definitions come in generations, of which there are two at most: when the last block of one has gone, so do its definitions.
#[derive(Debug)]
pub(super) struct Ring {
    most_bytes: u64,
    most_ticks: u64,
    /// The start of the section, and the kinds of events.
    declared: Vec<u8>,
    /// The threads that have events here, or may still record.
    threads: BTreeMap<u32, Thread>,
    lost: BTreeMap<(LossReason, u32), Counted>,
    /// The last one is that of the events to come.
    generations: VecDeque<Generation>,
    points: Vec<ClockPoint>,
    blocks: VecDeque<Block>,
    /// Bytes of all blocks.
    bytes: u64,
    overwritten: Option<Counted>,
    /// What threads had open where what is left of their events begins.
    open: BTreeMap<u32, OpenStack<OpenWord>>,
}

#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    of: Counted,
    nesting: Vec<(u32, Nesting)>,
}

/// Definitions, and the number of blocks that need them.
#[derive(Debug, Default)]
struct Generation {
    definitions: Vec<u8>,
    blocks: usize,
}

#[derive(Debug, Default)]
struct Thread {
    tid: u32,
    name: String,
    /// How many blocks have events of it.
    blocks: usize,
    has_ended: bool,
}

/// What a thread had open before its events that are left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenBefore {
    pub(super) thread: u32,
    /// Outermost first, each with how many are open around it.
    pub(super) open: Vec<(u64, OpenWord)>,
    /// Whether events of the thread are left.
    pub(super) goes_on: bool,
}

impl Ring {
    /// Begins with this start and this point.
    pub(super) fn new(limits: options::Ring, ticks_per_second: u64, start: Vec<u8>, first: ClockPoint) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a limit on age needs no exactness; casts from floats saturate"
        )]
        let ticks = |seconds: f64| (seconds * ticks_per_second as f64) as u64;
        Self {
            most_bytes: limits.bytes.unwrap_or(u64::MAX),
            most_ticks: limits.seconds.map_or(u64::MAX, ticks),
            declared: start,
            threads: BTreeMap::new(),
            lost: BTreeMap::new(),
            generations: VecDeque::from([Generation::default()]),
            points: vec![first],
            blocks: VecDeque::new(),
            bytes: 0,
            overwritten: None,
            open: BTreeMap::new(),
        }
    }

    /// Where to add what is never dropped: kinds of events, of which there are few.
    pub(super) const fn declared(&mut self) -> &mut Vec<u8> {
        &mut self.declared
    }

    /// Adds definitions that the events to come refer to.
    pub(super) fn define(&mut self, bytes: &[u8]) {
        if let Some(current) = self.generations.back_mut() {
            current.definitions.extend_from_slice(bytes);
        }
    }

    /// Adds a thread, or gives it another name.
    pub(super) fn name_thread(&mut self, number: u32, tid: u32, name: &str) {
        let thread = self.threads.entry(number).or_default();
        (thread.tid, thread.name) = (tid, name.to_owned());
    }

    /// A thread will not record again: it is forgotten with its last events.
    pub(super) fn end_thread(&mut self, number: u32) {
        if let Some(thread) = self.threads.get_mut(&number) {
            thread.has_ended = true;
        }
        self.forget_thread_without_events(number);
    }

    /// The threads, each with its number, that of the kernel, and its name.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u32, u32, &str)> {
        self.threads.iter().map(|(number, thread)| (*number, thread.tid, &*thread.name))
    }

    /// Counts events that were lost.
    pub(super) fn lose(&mut self, reason: LossReason, thread: u32, counted: Counted) {
        let is_known = self.lost.contains_key(&(reason, thread));
        let thread = if is_known || self.lost.len() < MOST_LOSSES { thread } else { 0 };
        self.lost.entry((reason, thread)).and_modify(|others| *others = others.and(counted)).or_insert(counted);
    }

    /// Events that were lost, other than those that were dropped here.
    pub(super) fn lost(&self) -> impl Iterator<Item = (LossReason, u32, Counted)> {
        self.lost.iter().map(|((reason, thread), counted)| (*reason, *thread, *counted))
    }

    pub(super) fn add_point(&mut self, point: ClockPoint) {
        self.points.push(point);
        if self.points.len() > MOST_POINTS {
            let last = self.points.len() - 1;
            let mut place = 0..;
            self.points.retain(|_| place.next().is_some_and(|place| place == last || place % 2 == 0));
        }
    }

    /// Adds blocks with these events, which do that to what is open.
    pub(super) fn add(&mut self, bytes: Vec<u8>, of: Counted, nesting: Vec<(u32, Nesting)>) {
        self.bytes += bytes.len() as u64;
        for (thread, _) in &nesting {
            self.threads.entry(*thread).or_default().blocks += 1;
        }
        if let Some(current) = self.generations.back_mut() {
            current.blocks += 1;
        }
        self.blocks.push_back(Block { bytes, of, nesting });
    }

    /// Bytes of events and of definitions.
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

    /// Returns whether there are so many definitions that the events to come should have their own, so that these can be dropped.
    pub(super) fn wants_generation(&self) -> bool {
        let limited = self.most_bytes.saturating_add(SLACK) / 2;
        let most = if self.most_bytes == u64::MAX { self.bytes.max(GENERATION) } else { limited };
        !self.has_previous() && self.definition_bytes() > most
    }

    /// The events to come have definitions of their own.
    pub(super) fn begin_generation(&mut self) {
        self.generations.push_back(Generation::default());
        self.drop_unused_generations();
    }

    /// Drops the earlier generation, with its events.
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

    /// Whether there are too many bytes. The last block stays, however many definitions it needs.
    fn is_too_large(&self) -> bool {
        let most = self.most_bytes.saturating_add(SLACK);
        self.bytes > self.most_bytes || self.blocks.len() > 1 && self.kept_bytes() > most
    }

    /// Drops what is too much, or too old at this time.
    pub(super) fn shrink(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.most_ticks);
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
            if open.depth() == 0 && !open.was_told() {
                self.open.remove(thread);
            }
            if let Some(known) = self.threads.get_mut(thread) {
                known.blocks -= 1;
            }
            self.forget_thread_without_events(*thread);
        }
    }

    /// What threads had open before the events that are left, and when these begin; at this time if there are none.
    pub(super) fn open_before(&self, now: u64) -> (Vec<OpenBefore>, u64) {
        let of = |(thread, open): (&u32, &OpenStack<OpenWord>)| OpenBefore {
            thread: *thread,
            open: open.with_depths().map(|(depth, what)| (depth, *what)).collect(),
            goes_on: self.threads.get(thread).is_some_and(|thread| thread.blocks > 0),
        };
        let first = self.blocks.iter().map(|block| block.of.first_ticks).min().unwrap_or(now);
        (self.open.iter().map(of).filter(|before| !before.open.is_empty()).collect(), first)
    }

    /// Of the points before all events the first says when the recording began, the last holds the line.
    fn drop_points(&mut self) {
        let first_event = self.blocks.iter().map(|block| block.of.first_ticks).min().unwrap_or(u64::MAX);
        let before = self.points.partition_point(|point| point.ticks < first_event);
        if before > 2 {
            self.points.drain(1..before - 1);
        }
    }

    /// The points that say what the ticks of its events are.
    pub(super) fn points(&self) -> &[ClockPoint] {
        &self.points
    }

    /// What was dropped so far.
    pub(super) const fn overwritten(&self) -> Option<Counted> {
        self.overwritten
    }

    /// How many events are in it.
    pub(super) fn events(&self) -> u64 {
        self.blocks.iter().map(|block| block.of.count).sum()
    }

    /// Writes all to a file, with `head`, which comes before all events, and `tail` encoded. The file is there whole, or not
    /// at all. Returns its length, and the proof that it was created here; none for a device, a FIFO or a socket.
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
        Ring::new(options::Ring { bytes, seconds }, 1_000, b"start".to_vec(), ClockPoint::default())
    }

    fn events(count: u64, first_ticks: u64, last_ticks: u64) -> Counted {
        Counted { count, first_ticks, last_ticks }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_bytes() {
        let mut ring = ring(Some(25), None);
        for (number, ticks) in (1..=5).zip([10, 20, 30, 40, 50]) {
            ring.add(vec![number; 10], events(number.into(), ticks, ticks + 5), Vec::new());
            ring.shrink(ticks);
        }
        assert_eq!(ring.events(), 9);
        assert_eq!(ring.overwritten(), Some(events(6, 10, 35)));
    }

    #[test]
    fn the_oldest_go_when_they_are_too_old() {
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
