//! The spans of a thread, by the level of their duration.

use std::collections::HashMap;
use std::io;

use super::tiles::{TileSizes, Tiles};
use crate::activity::Details;
use crate::formats::report::blocks::{Columns, PageBlocks};

/// A span on the timeline. Its frame is an index in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimelineSpan {
    pub(super) began: u64,
    pub(super) duration: u64,
    /// The number of spans around it.
    pub(super) depth: u32,
    pub(super) frame: u32,
    pub(super) flags: u8,
}

impl TimelineSpan {
    /// Its end was not recorded.
    pub(super) const HAS_NO_END: u8 = 1;
    pub(super) const HAS_FAILED: u8 = 2;
    /// It was open before the recording began, and is not a call.
    pub(super) const WAS_OPEN: u8 = 4;

    pub(super) const fn ended(&self) -> u64 {
        self.began.saturating_add(self.duration)
    }
}

/// A tile is also full when the details of its spans have this size.
const MAX_TEXT: usize = 1 << 20;

/// The spans of one thread, by level.
#[derive(Debug)]
pub(super) struct SpanTiles {
    sizes: TileSizes,
    all: Vec<OpenTile>,
}

/// Spans that are not written yet, in the order of their ends.
#[derive(Debug, Default)]
struct OpenTile {
    tiles: Tiles,
    /// With the position of its details among all details, 0 if it has none.
    spans: Vec<(TimelineSpan, u32)>,
    details: DetailTexts,
}

/// JSON texts without duplicates.
#[derive(Debug, Default)]
struct DetailTexts {
    all: Vec<u8>,
    indexes: HashMap<String, u32>,
}

impl SpanTiles {
    pub(super) fn new(sizes: TileSizes) -> Self {
        Self { sizes, all: (0..sizes.levels.count()).map(|_| OpenTile::default()).collect() }
    }

    /// Adds an ended span, and returns its level.
    pub(super) fn add(
        &mut self,
        span: TimelineSpan,
        details: &Details,
        blocks: &mut PageBlocks<'_>,
    ) -> io::Result<usize> {
        let level = self.sizes.levels.level(span.duration);
        let open = &mut self.all[level];
        open.spans.push((span, open.details.index(details)));
        if open.spans.len() == self.sizes.rows || open.details.all.len() > MAX_TEXT {
            open.write(blocks)?;
        }
        Ok(level)
    }

    /// Returns the head entries of each level, after the last span was added.
    pub(super) fn finish(self, blocks: &mut PageBlocks<'_>) -> io::Result<Vec<Vec<u64>>> {
        let finished = self.all.into_iter().map(|mut open| {
            open.write(blocks)?;
            Ok(open.tiles.into_entries())
        });
        finished.collect()
    }
}

impl OpenTile {
    fn write(&mut self, blocks: &mut PageBlocks<'_>) -> io::Result<()> {
        self.spans.sort_by_key(|(span, _)| (span.began, span.depth));
        let Some((first, _)) = self.spans.first() else { return Ok(()) };
        let from = first.began;
        let to = self.spans.iter().map(|(span, _)| span.ended()).max().unwrap_or(from);
        let rows = self.spans.len();
        let columns = columns(&self.spans, from, &self.details);
        self.tiles.write(&columns, (from, to), rows, blocks)?;
        self.spans.clear();
        self.details = DetailTexts::default();
        Ok(())
    }
}

fn columns(spans: &[(TimelineSpan, u32)], from: u64, details: &DetailTexts) -> Columns {
    let mut columns = Columns::default();
    columns.differences(spans.iter().map(|(span, _)| span.began), from);
    columns.plain(spans.iter().map(|(span, _)| span.duration));
    columns.plain(spans.iter().map(|(span, _)| span.depth.into()));
    columns.plain(spans.iter().map(|(span, _)| span.frame.into()));
    columns.plain(spans.iter().map(|(span, _)| span.flags.into()));
    columns.plain(spans.iter().map(|(_, detail)| (*detail).into()));
    let mut array = b"[".to_vec();
    array.extend_from_slice(&details.all);
    array.push(b']');
    columns.text(&array);
    columns
}

impl DetailTexts {
    fn index(&mut self, details: &Details) -> u32 {
        let Some(text) = details.as_str() else { return 0 };
        if let Some(index) = self.indexes.get(text) {
            return *index;
        }
        if !self.all.is_empty() {
            self.all.push(b',');
        }
        self.all.extend_from_slice(text.as_bytes());
        let index = u32::try_from(self.indexes.len() + 1).unwrap_or(u32::MAX);
        self.indexes.insert(text.to_owned(), index);
        index
    }
}
