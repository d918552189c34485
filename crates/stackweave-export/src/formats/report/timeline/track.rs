//! The timeline of one thread.

use serde_json::{Value, json};

use super::dense::DenseTiles;
use super::instants::Instants;
use super::spans::{SpanTiles, TimelineSpan};
use super::tiles::TileSizes;
use crate::activity::Details;
use crate::error::ExportError;
use crate::formats::report::blocks::PageBlocks;

/// The timeline of a thread. Spans are added in the order of their ends.
#[derive(Debug)]
pub(super) struct Track {
    spans: SpanTiles,
    dense: DenseTiles,
    pub(super) instants: Instants,
    began: u64,
    ended: u64,
    depth: u32,
    count: u64,
}

impl Track {
    pub(super) fn new(sizes: TileSizes) -> Self {
        Self {
            spans: SpanTiles::new(sizes),
            dense: DenseTiles::new(sizes),
            instants: Instants::default(),
            began: u64::MAX,
            ended: 0,
            depth: 0,
            count: 0,
        }
    }

    pub(super) fn add(
        &mut self,
        span: TimelineSpan,
        details: &Details,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<(), ExportError> {
        self.extend_to(span.began);
        self.extend_to(span.ended());
        self.depth = self.depth.max(span.depth + 1);
        self.count += 1;
        let level = self.spans.add(span, details, blocks)?;
        Ok(self.dense.add(&span, level, blocks)?)
    }

    /// Records that the thread was active at this time.
    pub(super) fn extend_to(&mut self, time: u64) {
        self.began = self.began.min(time);
        self.ended = self.ended.max(time);
    }

    pub(super) const fn has_spans(&self) -> bool {
        self.count > 0
    }

    /// Returns the head entry; `None` if there is nothing to show.
    pub(super) fn finish(self, thread: usize, blocks: &mut PageBlocks<'_>) -> Result<Option<Value>, ExportError> {
        if !self.has_spans() && self.instants.is_empty() {
            return Ok(None);
        }
        Ok(Some(json!({
            "thread": thread,
            "beganNs": self.began,
            "endedNs": self.ended,
            "depth": self.depth,
            "spans": self.count,
            "levels": self.spans.finish(blocks)?,
            "dense": self.dense.finish(blocks)?,
            "instants": self.instants.write(blocks)?,
        })))
    }
}
