//! The spans of a thread, each in the level of its duration.

use std::collections::HashMap;
use std::io;

use super::levels::Levels;
use super::tiles::{ROWS, Tiles};
use crate::activity::Details;
use crate::formats::report::blocks::{Blocks, Columns};

/// Something that a thread did. Frames are places in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimelineSpan {
    pub(super) began: u64,
    pub(super) duration: u64,
    /// How many spans are around it.
    pub(super) depth: u32,
    pub(super) frame: u32,
    pub(super) flags: u8,
}

impl TimelineSpan {
    /// Nobody saw its end.
    pub(super) const HAS_NO_END: u8 = 1;
    pub(super) const HAS_FAILED: u8 = 2;
    /// It was open before anything was heard of it, and is no call.
    pub(super) const WAS_OPEN: u8 = 4;

    pub(super) const fn ended(&self) -> u64 {
        self.began.saturating_add(self.duration)
    }
}

/// A tile is full too when the details of its spans have so many bytes.
const MOST_TEXT: usize = 1 << 20;

/// The spans of one thread, by level.
#[derive(Debug)]
pub(super) struct SpanTiles {
    levels: Levels,
    all: Vec<OpenTile>,
}

/// Spans that are not written yet, in the order of their ends.
#[derive(Debug, Default)]
struct OpenTile {
    tiles: Tiles,
    /// With the place of its details behind all of them, 0 if it has none.
    spans: Vec<(TimelineSpan, u32)>,
    details: Texts,
}

/// JSON texts, each once.
#[derive(Debug, Default)]
struct Texts {
    all: Vec<u8>,
    places: HashMap<String, u32>,
}

impl SpanTiles {
    pub(super) fn new(levels: Levels) -> Self {
        Self { levels, all: (0..levels.count()).map(|_| OpenTile::default()).collect() }
    }

    /// A span is over: its level.
    pub(super) fn add(&mut self, span: TimelineSpan, details: &Details, blocks: &mut Blocks<'_>) -> io::Result<usize> {
        let level = self.levels.level(span.duration);
        let open = &mut self.all[level];
        open.spans.push((span, open.details.place(details)));
        if open.spans.len() == ROWS || open.details.all.len() > MOST_TEXT {
            open.write(blocks)?;
        }
        Ok(level)
    }

    /// What the head tells of each level, when nothing is added any more.
    pub(super) fn finish(self, blocks: &mut Blocks<'_>) -> io::Result<Vec<Vec<u64>>> {
        let finished = self.all.into_iter().map(|mut open| {
            open.write(blocks)?;
            Ok(open.tiles.told())
        });
        finished.collect()
    }
}

impl OpenTile {
    fn write(&mut self, blocks: &mut Blocks<'_>) -> io::Result<()> {
        self.spans.sort_by_key(|(span, _)| (span.began, span.depth));
        let Some((first, _)) = self.spans.first() else { return Ok(()) };
        let from = first.began;
        let to = self.spans.iter().map(|(span, _)| span.ended()).max().unwrap_or(from);
        let rows = self.spans.len();
        let columns = columns(&self.spans, from, &self.details);
        self.tiles.write(&columns, (from, to), rows, blocks)?;
        self.spans.clear();
        self.details = Texts::default();
        Ok(())
    }
}

fn columns(spans: &[(TimelineSpan, u32)], from: u64, details: &Texts) -> Columns {
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

impl Texts {
    fn place(&mut self, details: &Details) -> u32 {
        let Some(text) = details.as_str() else { return 0 };
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        if !self.all.is_empty() {
            self.all.push(b',');
        }
        self.all.extend_from_slice(text.as_bytes());
        let place = u32::try_from(self.places.len() + 1).unwrap_or(u32::MAX);
        self.places.insert(text.to_owned(), place);
        place
    }
}
