//! Tiles: rows that are written as soon as there are enough of them. Only their descriptions stay in memory.

use std::io;

use super::levels::Levels;
use crate::formats::report::blocks::{Columns, PageBlocks};

/// The maximum number of rows in a tile: few enough to be decoded quickly, many enough to be compressed well.
const MAX_ROWS: usize = 16_384;
/// The tiles of more threads have fewer rows, as each thread has open ones.
const FULL_THREADS: usize = 16;
const MIN_ROWS: usize = 1_024;

/// Returns the number of rows in a tile of a report with so many threads.
pub(super) fn rows(threads: usize) -> usize {
    (MAX_ROWS * FULL_THREADS / threads.max(FULL_THREADS)).max(MIN_ROWS)
}

/// The levels of a recording, and the number of rows in its tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileSizes {
    pub(super) levels: Levels,
    pub(super) rows: usize,
}

/// The tiles of one level of a thread.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    written: Vec<Tile>,
}

#[derive(Clone, Copy, Debug)]
struct Tile {
    block: u32,
    from: u64,
    to: u64,
    rows: usize,
}

impl Tiles {
    /// Writes a tile of rows, which begin at `from` or later and end at `to` or earlier.
    pub(super) fn write(
        &mut self,
        columns: &Columns,
        (from, to): (u64, u64),
        rows: usize,
        blocks: &mut PageBlocks<'_>,
    ) -> io::Result<()> {
        let block = blocks.many_columns(columns)?;
        self.written.push(Tile { block, from, to, rows });
        Ok(())
    }

    /// Returns the head entries: block, earliest start, latest end and rows of each tile in turn.
    pub(super) fn into_entries(mut self) -> Vec<u64> {
        self.written.sort_by_key(|tile| (tile.from, tile.block));
        self.written.iter().flat_map(|tile| [tile.block.into(), tile.from, tile.to, tile.rows as u64]).collect()
    }
}
