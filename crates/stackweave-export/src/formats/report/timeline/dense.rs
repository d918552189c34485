//! What is too short to be drawn, as pieces that are long enough.
//!
//! The pieces of a level stand for all spans that are shorter than it, at their depth. They are made of the pieces of the
//! level below and of its spans, which come in the order of time at each depth.

use std::io;

use super::levels::Levels;
use super::spans::TimelineSpan;
use super::tiles::{ROWS, Tiles};
use crate::formats::report::blocks::{Blocks, Columns};

/// A piece is at most so many times as long as the shortest span of its level: a few pixels.
const LONGEST: u64 = 4;

/// Spans of one depth that stand close to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    began: u64,
    ended: u64,
    calls: u64,
    /// The time of its spans, without what lies between them.
    busy: u64,
    /// What took more than half of the time, if anything did, and how much of that is left when each other frame has
    /// taken away its own time.
    frame: u32,
    surplus: u64,
}

impl Piece {
    fn of(span: &TimelineSpan) -> Self {
        let TimelineSpan { began, duration, frame, .. } = *span;
        Self { began, ended: span.ended(), calls: 1, busy: duration, frame, surplus: duration.max(1) }
    }

    /// Takes in what follows, unless there is something to see between them or it would become too long.
    fn takes(&mut self, next: &Self, least: u64) -> bool {
        let extent = next.ended.saturating_sub(self.began);
        if next.began.saturating_sub(self.ended) >= least || extent > least.saturating_mul(LONGEST) {
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

    /// The place of the frame that it is shown as, behind 0 for none: one that took at least a quarter of the time, and
    /// surely the one that took more than half of it.
    fn shown(&self) -> u64 {
        if self.surplus > 0 && self.surplus >= self.busy.max(self.calls) / 4 { u64::from(self.frame) + 1 } else { 0 }
    }
}

/// The pieces of one thread, by level.
#[derive(Debug)]
pub(super) struct DenseTiles {
    all: Vec<DenseLevel>,
}

#[derive(Debug)]
struct DenseLevel {
    least: u64,
    tiles: Tiles,
    /// The piece of each depth that may still grow.
    growing: Vec<Option<Piece>>,
    /// Pieces with their depths, not written yet.
    done: Vec<(Piece, u32)>,
}

impl DenseTiles {
    pub(super) fn new(levels: Levels) -> Self {
        let level = |least: &u64| {
            let (tiles, growing, done) = Default::default();
            DenseLevel { least: *least, tiles, growing, done }
        };
        Self { all: levels.least().iter().map(level).collect() }
    }

    /// A span of this level is over.
    pub(super) fn add(&mut self, span: &TimelineSpan, level: usize, blocks: &mut Blocks<'_>) -> io::Result<()> {
        // What is shorter has ended before: the span is a gap to it.
        for shorter in 1..=level {
            if let Some(piece) = self.all[shorter].growing.get_mut(span.depth as usize).and_then(Option::take) {
                self.close(shorter, (piece, span.depth), blocks)?;
            }
        }
        self.grow(level + 1, (Piece::of(span), span.depth), blocks)
    }

    /// A piece of the level below, or a span of it, goes into the pieces of this level.
    fn grow(&mut self, level: usize, (next, depth): (Piece, u32), blocks: &mut Blocks<'_>) -> io::Result<()> {
        let Some(DenseLevel { least, growing, .. }) = self.all.get_mut(level) else { return Ok(()) };
        if growing.len() <= depth as usize {
            growing.resize(depth as usize + 1, None);
        }
        let piece = &mut growing[depth as usize];
        if piece.as_mut().is_some_and(|piece| piece.takes(&next, *least)) {
            return Ok(());
        }
        match piece.replace(next) {
            Some(before) => self.close(level, (before, depth), blocks),
            None => Ok(()),
        }
    }

    fn close(&mut self, level: usize, piece: (Piece, u32), blocks: &mut Blocks<'_>) -> io::Result<()> {
        self.all[level].done.push(piece);
        self.grow(level + 1, piece, blocks)?;
        if self.all[level].done.len() < ROWS {
            return Ok(());
        }
        self.close_all(level, piece.0.ended, blocks)?;
        self.all[level].write(blocks)
    }

    /// Closes what can't grow any more at this time, so that it stands in a tile beside what happened with it.
    fn close_all(&mut self, level: usize, time: u64, blocks: &mut Blocks<'_>) -> io::Result<()> {
        for depth in 0..self.all[level].growing.len() {
            let DenseLevel { least, growing, done, .. } = &mut self.all[level];
            let old = growing[depth].take_if(|piece| time.saturating_sub(piece.ended) >= *least);
            if let Some(piece) = old.map(|piece| (piece, u32::try_from(depth).unwrap_or(u32::MAX))) {
                done.push(piece);
                self.grow(level + 1, piece, blocks)?;
            }
        }
        Ok(())
    }

    /// What the head tells of each level, when nothing is added any more.
    pub(super) fn finish(mut self, blocks: &mut Blocks<'_>) -> io::Result<Vec<Vec<u64>>> {
        for level in 0..self.all.len() {
            self.close_all(level, u64::MAX, blocks)?;
            self.all[level].write(blocks)?;
        }
        Ok(self.all.into_iter().map(|level| level.tiles.told()).collect())
    }
}

impl DenseLevel {
    fn write(&mut self, blocks: &mut Blocks<'_>) -> io::Result<()> {
        self.done.sort_by_key(|(piece, depth)| (piece.began, *depth));
        let Some((first, _)) = self.done.first() else { return Ok(()) };
        let from = first.began;
        let to = self.done.iter().map(|(piece, _)| piece.ended).max().unwrap_or(from);
        let mut columns = Columns::default();
        columns.differences(self.done.iter().map(|(piece, _)| piece.began), from);
        columns.plain(self.done.iter().map(|(piece, _)| piece.ended - piece.began));
        columns.plain(self.done.iter().map(|(_, depth)| (*depth).into()));
        columns.plain(self.done.iter().map(|(piece, _)| piece.shown()));
        columns.plain(self.done.iter().map(|(piece, _)| piece.calls));
        columns.plain(self.done.iter().map(|(piece, _)| piece.busy));
        self.tiles.write(&columns, (from, to), self.done.len(), blocks)?;
        self.done.clear();
        Ok(())
    }
}
