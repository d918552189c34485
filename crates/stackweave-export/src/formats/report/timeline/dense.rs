//! Merges spans that are too short to be drawn into segments that are long enough.
//!
//! The segments of a level stand for all shorter spans at their depth. They are made of the segments and spans of the
//! level below, which come in the order of time at each depth.

use std::io;

use super::spans::TimelineSpan;
use super::tiles::{TileSizes, Tiles};
use crate::formats::report::blocks::{Columns, PageBlocks};

/// The maximum length of a segment, in multiples of the shortest span of its level: a few pixels.
const MAX_LENGTH: u64 = 4;

/// Adjacent spans of one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DenseSegment {
    began: u64,
    ended: u64,
    calls: u64,
    /// The time of its spans, without gaps.
    busy: u64,
    /// The majority frame, if one took more than half of the time, and how much of its time is left after subtracting
    /// that of all other frames.
    frame: u32,
    surplus: u64,
}

impl DenseSegment {
    fn of(span: &TimelineSpan) -> Self {
        let TimelineSpan { began, duration, frame, .. } = *span;
        Self { began, ended: span.ended(), calls: 1, busy: duration, frame, surplus: duration.max(1) }
    }

    /// Merges the next segment, unless a gap between them is visible or the result would be too long.
    fn absorb(&mut self, next: &Self, least: u64) -> bool {
        let extent = next.ended.saturating_sub(self.began);
        if next.began.saturating_sub(self.ended) >= least || extent > least.saturating_mul(MAX_LENGTH) {
            return false;
        }
        self.ended = self.ended.max(next.ended);
        self.calls = self.calls.saturating_add(next.calls);
        self.busy = self.busy.saturating_add(next.busy);
        if next.frame == self.frame {
            self.surplus = self.surplus.saturating_add(next.surplus);
        } else if next.surplus > self.surplus {
            (self.frame, self.surplus) = (next.frame, next.surplus - self.surplus);
        } else {
            self.surplus -= next.surplus;
        }
        true
    }

    /// Returns the index of the frame that is drawn, plus 1; 0 for none. It took at least a quarter of the time, and is
    /// the majority frame if there is one.
    fn drawn_frame(&self) -> u64 {
        if self.surplus > 0 && self.surplus >= self.busy.max(self.calls) / 4 { u64::from(self.frame) + 1 } else { 0 }
    }
}

/// The segments of one thread, by level.
#[derive(Debug)]
pub(super) struct DenseTiles {
    /// The number of rows in a tile.
    rows: usize,
    all: Vec<DenseLevel>,
}

#[derive(Debug)]
struct DenseLevel {
    least: u64,
    tiles: Tiles,
    /// The segment of each depth that may still grow.
    growing: Vec<Option<DenseSegment>>,
    /// Segments with their depths that are not written yet.
    done: Vec<(DenseSegment, u32)>,
}

impl DenseTiles {
    pub(super) fn new(sizes: TileSizes) -> Self {
        let level = |least: &u64| {
            let (tiles, growing, done) = Default::default();
            DenseLevel { least: *least, tiles, growing, done }
        };
        Self { rows: sizes.rows, all: sizes.levels.min_durations().iter().map(level).collect() }
    }

    /// Adds an ended span of this level.
    pub(super) fn add(&mut self, span: &TimelineSpan, level: usize, blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        // Shorter spans inside it have ended before; the span separates segments of shorter spans.
        for shorter in 1..=level {
            if let Some(segment) = self.all[shorter].growing.get_mut(span.depth as usize).and_then(Option::take) {
                self.close(shorter, (segment, span.depth), blocks)?;
            }
        }
        self.grow(level + 1, (DenseSegment::of(span), span.depth), blocks)
    }

    /// Adds a segment or a span of the level below to the segments of this level.
    fn grow(
        &mut self,
        level: usize,
        (next, depth): (DenseSegment, u32),
        blocks: &mut PageBlocks<'_>,
    ) -> io::Result<()> {
        let Some(DenseLevel { least, growing, .. }) = self.all.get_mut(level) else { return Ok(()) };
        if growing.len() <= depth as usize {
            growing.resize(depth as usize + 1, None);
        }
        let segment = &mut growing[depth as usize];
        if segment.as_mut().is_some_and(|segment| segment.absorb(&next, *least)) {
            return Ok(());
        }
        match segment.replace(next) {
            Some(before) => self.close(level, (before, depth), blocks),
            None => Ok(()),
        }
    }

    fn close(&mut self, level: usize, segment: (DenseSegment, u32), blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        self.all[level].done.push(segment);
        self.grow(level + 1, segment, blocks)?;
        if self.all[level].done.len() < self.rows {
            return Ok(());
        }
        self.close_all(level, segment.0.ended, blocks)?;
        self.all[level].write(blocks)
    }

    /// Closes segments that can't grow at this time, so that they are in a tile with other events of their time.
    fn close_all(&mut self, level: usize, time: u64, blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        for depth in 0..self.all[level].growing.len() {
            let DenseLevel { least, growing, done, .. } = &mut self.all[level];
            let old = growing[depth].take_if(|segment| time.saturating_sub(segment.ended) >= *least);
            if let Some(segment) = old.map(|segment| (segment, u32::try_from(depth).unwrap_or(u32::MAX))) {
                done.push(segment);
                self.grow(level + 1, segment, blocks)?;
            }
        }
        Ok(())
    }

    /// Returns the head entries of each level, after the last span was added.
    pub(super) fn finish(mut self, blocks: &mut PageBlocks<'_>) -> io::Result<Vec<Vec<u64>>> {
        for level in 0..self.all.len() {
            self.close_all(level, u64::MAX, blocks)?;
            self.all[level].write(blocks)?;
        }
        Ok(self.all.into_iter().map(|level| level.tiles.into_entries()).collect())
    }
}

impl DenseLevel {
    fn write(&mut self, blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        self.done.sort_by_key(|(segment, depth)| (segment.began, *depth));
        let Some((first, _)) = self.done.first() else { return Ok(()) };
        let from = first.began;
        let to = self.done.iter().map(|(segment, _)| segment.ended).max().unwrap_or(from);
        let mut columns = Columns::default();
        columns.differences(self.done.iter().map(|(segment, _)| segment.began), from);
        columns.plain(self.done.iter().map(|(segment, _)| segment.ended - segment.began));
        columns.plain(self.done.iter().map(|(_, depth)| (*depth).into()));
        columns.plain(self.done.iter().map(|(segment, _)| segment.drawn_frame()));
        columns.plain(self.done.iter().map(|(segment, _)| segment.calls));
        columns.plain(self.done.iter().map(|(segment, _)| segment.busy));
        self.tiles.write(&columns, (from, to), self.done.len(), blocks)?;
        self.done.clear();
        Ok(())
    }
}
