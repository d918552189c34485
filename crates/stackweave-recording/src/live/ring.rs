//! The last events of a recording, in memory: a flight recorder.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::options;
use super::tally::Counted;
use crate::clock::ClockPoint;
use crate::file::{Nesting, OpenWord};
use crate::read::OpenStack;

/// Keeps blocks of events, until there are too many bytes of them or they are too old. What they refer to is kept for
/// ever, and so is what they left open, so that what is left is always a whole recording.
#[derive(Debug)]
pub(super) struct Ring {
    most_bytes: u64,
    most_ticks: u64,
    /// The start of the section, and all definitions and losses.
    kept: Vec<u8>,
    points: Vec<ClockPoint>,
    blocks: VecDeque<Block>,
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
            kept: start,
            points: vec![first],
            blocks: VecDeque::new(),
            bytes: 0,
            overwritten: None,
            open: BTreeMap::new(),
        }
    }

    /// Adds what must never be dropped.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
    }

    pub(super) fn add_point(&mut self, point: ClockPoint) {
        self.points.push(point);
    }

    /// Adds blocks with these events, which do that to what is open.
    pub(super) fn add(&mut self, bytes: Vec<u8>, of: Counted, nesting: Vec<(u32, Nesting)>) {
        self.bytes += bytes.len() as u64;
        self.blocks.push_back(Block { bytes, of, nesting });
    }

    /// Drops what is too much, or too old at this time.
    pub(super) fn shrink(&mut self, now: u64) {
        let oldest = now.saturating_sub(self.most_ticks);
        while let Some(block) = self.blocks.front()
            && (self.bytes > self.most_bytes || block.of.last_ticks < oldest)
        {
            self.bytes -= block.bytes.len() as u64;
            for (thread, nesting) in &block.nesting {
                let open = self.open.entry(*thread).or_default();
                nesting.apply(open);
                if open.depth() == 0 && !open.was_told() {
                    self.open.remove(thread);
                }
            }
            self.overwritten = Some(self.overwritten.map_or(block.of, |others| others.and(block.of)));
            self.blocks.pop_front();
        }
        self.drop_points();
    }

    /// What threads had open before the events that are left, and when these begin; at this time if there are none.
    pub(super) fn open_before(&self, now: u64) -> (Vec<OpenBefore>, u64) {
        let left: BTreeSet<u32> =
            self.blocks.iter().flat_map(|block| &block.nesting).map(|(thread, _)| *thread).collect();
        let of = |(thread, open): (&u32, &OpenStack<OpenWord>)| OpenBefore {
            thread: *thread,
            open: open.with_depths().map(|(depth, what)| (depth, *what)).collect(),
            goes_on: left.contains(thread),
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
    /// at all. Gives its length.
    pub(super) fn write(&self, path: &Path, head: &[u8], tail: &[u8]) -> io::Result<u64> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let written = self.write_to(&part, head, tail).and_then(|length| {
            fs::rename(&part, path)?;
            Ok(length)
        });
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    fn write_to(&self, part: &Path, head: &[u8], tail: &[u8]) -> io::Result<u64> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o666).open(part)?;
        let mut out = BufWriter::new(file);
        let blocks = self.blocks.iter().map(|block| &block.bytes[..]);
        let mut length = 0;
        for bytes in [&self.kept[..], head].into_iter().chain(blocks).chain([tail]) {
            out.write_all(bytes)?;
            length += bytes.len() as u64;
        }
        out.flush()?;
        Ok(length)
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
