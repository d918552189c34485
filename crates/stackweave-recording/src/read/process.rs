//! The recording of one process.

use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::slice;
use std::sync::Arc;

use super::error::ReadError;
use super::index::{EventsBlock, Section};
use super::missing::Missing;
use super::scanner::{ScannedBlock, parse, read_stored};
use super::source::RecordingSource;
use super::time_axis::TimeAxis;
use super::time_order::{TimeOrder, TimedEvent};
use crate::clock::ClockTimeline;
use crate::file::{BlockError, BlockHeader, BlockKind, Dictionary, EventBuffer, Lost, ProcessStart, SectionEnd};
use crate::origin::RecordingOrigin;

/// The recording of one process. Its events stay in the file until they are visited. Cheap to clone.
#[derive(Clone)]
pub struct ProcessRecording {
    source: Arc<dyn RecordingSource>,
    path: Arc<Path>,
    section: Arc<Section>,
}

impl ProcessRecording {
    pub(crate) fn new(source: Arc<dyn RecordingSource>, path: Arc<Path>, section: Section) -> Self {
        Self { source, path, section: Arc::new(section) }
    }

    /// Returns its section, so that it can grow. The section is copied if there is another clone of this recording.
    pub(crate) fn into_section(self) -> Section {
        Arc::try_unwrap(self.section).unwrap_or_else(|shared| Section::clone(&shared))
    }

    /// Returns whether both are clones of the same opened recording.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.section, &other.section)
    }

    /// Returns the description of the process.
    pub fn start(&self) -> &ProcessStart {
        &self.section.start
    }

    /// Returns whether this user made it on this machine: its Start says so, and the user owns the file. The Start alone is no
    /// proof, because another user can write any content to a file.
    pub fn is_made_by(&self, origin: &RecordingOrigin) -> bool {
        self.source.owner() == Some(origin.uid) && origin.has_made(self.start())
    }

    /// Returns its end, if it has one.
    pub fn end(&self) -> Option<&SectionEnd> {
        self.section.end.as_ref()
    }

    /// Returns the definitions that its events refer to.
    pub fn dictionary(&self) -> &Dictionary {
        &self.section.dictionary
    }

    /// Returns the conversion of its ticks to nanoseconds.
    pub fn timeline(&self) -> &ClockTimeline {
        &self.section.timeline
    }

    /// Returns what is missing. Damage inside blocks of events is detected when they are visited.
    pub fn missing(&self) -> &Missing {
        &self.section.missing
    }

    /// Returns the losses of the recorder, with their threads and times.
    pub fn losses(&self) -> &[Lost] {
        &self.section.losses
    }

    /// Returns the ticks at which events of a thread are missing, the last ones first.
    pub fn loss_ticks(&self, thread: u32) -> Vec<u64> {
        let of_thread = self.losses().iter().filter(|lost| lost.thread == thread);
        let mut ticks: Vec<u64> = of_thread.map(Lost::ticks).collect();
        ticks.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
        ticks
    }

    /// Returns the largest ticks of a thread's events, according to their blocks.
    pub fn last_ticks(&self, thread: u32) -> Option<u64> {
        let own = self.section.event_blocks.iter().filter(|events_block| events_block.thread == thread);
        own.map(|events_block| events_block.last_ticks).max()
    }

    /// Returns the path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its length in the file.
    pub fn bytes(&self) -> u64 {
        self.section.range.end - self.section.range.start
    }

    /// Returns the number of its events, according to their blocks.
    pub fn event_count(&self) -> u64 {
        self.section.event_blocks.iter().map(|events_block| u64::from(events_block.count)).sum()
    }

    /// Returns the number of events of a thread, according to their blocks.
    pub fn events_of(&self, thread: u32) -> u64 {
        let own = self.section.event_blocks.iter().filter(|events_block| events_block.thread == thread);
        own.map(|events_block| u64::from(events_block.count)).sum()
    }

    /// Returns the range from its first event to one nanosecond after its last, in nanoseconds since its base.
    pub fn time_range(&self) -> Option<Range<u64>> {
        let (first, last) = self.ticks()?;
        let timeline = self.timeline();
        Some(timeline.nanoseconds(first)..timeline.nanoseconds(last).saturating_add(1))
    }

    /// Calls `event_block` for every block of events, in the order of the file: the events of each thread are in order, those of
    /// several threads are not. One block is in memory at a time.
    ///
    /// With a `range` (nanoseconds since the base), only blocks that overlap it; they may contain events outside of it. Calls
    /// `progress` with the part of [`ProcessRecording::bytes`] that is done. The result has the blocks that were skipped because
    /// they are damaged.
    pub fn visit(
        &self,
        range: Option<Range<u64>>,
        progress: &mut dyn FnMut(u64),
        event_block: &mut dyn FnMut(&EventBuffer) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        let mut missing = Missing::default();
        let mut reader = BlockReader::default();
        let mut events = EventBuffer::default();
        for events_block in self.event_blocks_in(range) {
            if self.read(events_block, &mut reader, &mut events)?.is_err() {
                missing.damaged.add(events_block.range());
            } else if event_block(&events).is_break() {
                return Ok(missing);
            }
            progress(events_block.range().end - self.section.range.start);
        }
        progress(self.bytes());
        Ok(missing)
    }

    /// Calls `event` for every event of all threads in time order; events of one thread keep their order whatever their times
    /// are. At most one block of each thread is in memory at a time.
    ///
    /// Times are nanoseconds since the base. With a `range`, only events in it.
    pub fn visit_in_time_order(
        &self,
        range: Option<Range<u64>>,
        progress: &mut dyn FnMut(u64),
        event: &mut dyn FnMut(TimedEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        self.in_time_order(range, None).visit(progress, event)
    }

    /// Returns an iterator-like reader of the same events. It keeps the data of the recording that it needs.
    ///
    /// With `threads`, only the events of these.
    pub fn in_time_order(&self, range: Option<Range<u64>>, threads: Option<&[u32]>) -> TimeOrder {
        let limit = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let range = range.map(|range| limit(range.start)..limit(range.end));
        TimeOrder::new(slice::from_ref(self), TimeAxis::SinceBase, range, threads)
    }

    /// Returns the smallest and the largest ticks of its events.
    pub(crate) fn ticks(&self) -> Option<(u64, u64)> {
        let event_blocks =
            self.section.event_blocks.iter().map(|events_block| (events_block.first_ticks, events_block.last_ticks));
        event_blocks.reduce(|all, next| (all.0.min(next.0), all.1.max(next.1)))
    }

    pub(crate) fn source(&self) -> &dyn RecordingSource {
        &*self.source
    }

    pub(crate) fn section(&self) -> &Section {
        &self.section
    }

    pub(crate) fn read_error(&self, error: io::Error) -> ReadError {
        ReadError::new(&self.path, error)
    }

    /// Reads the events of a block.
    pub(crate) fn read(
        &self,
        events_block: &EventsBlock,
        reader: &mut BlockReader,
        events: &mut EventBuffer,
    ) -> Result<Result<(), BlockError>, ReadError> {
        let read = reader.read(&*self.source, events_block, self.dictionary(), events);
        read.map_err(|error| self.read_error(error))
    }

    /// Returns the blocks that overlap a range.
    fn event_blocks_in(&self, range: Option<Range<u64>>) -> impl Iterator<Item = &EventsBlock> {
        let ns = |ticks| self.timeline().nanoseconds(ticks);
        self.section.event_blocks.iter().filter(move |events_block| {
            let overlaps = |range: &Range<u64>| {
                ns(events_block.first_ticks) < range.end && ns(events_block.last_ticks) >= range.start
            };
            range.as_ref().is_none_or(overlaps)
        })
    }
}

impl fmt::Debug for ProcessRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessRecording")
            .field("path", &self.path)
            .field("start", self.start())
            .field("blocks", &self.section.event_blocks.len())
            .field("missing", self.missing())
            .finish_non_exhaustive()
    }
}

impl EventsBlock {
    pub(crate) fn range(&self) -> Range<u64> {
        self.at..self.at + (BlockHeader::LEN as u64) + u64::from(self.stored_len)
    }
}

/// The memory for reading one block.
#[derive(Debug, Default)]
pub(crate) struct BlockReader {
    stored: Vec<u8>,
    full: Vec<u8>,
}

impl BlockReader {
    fn read(
        &mut self,
        source: &dyn RecordingSource,
        events_block: &EventsBlock,
        dictionary: &Dictionary,
        events: &mut EventBuffer,
    ) -> io::Result<Result<(), BlockError>> {
        let mut bytes = [0; BlockHeader::LEN];
        let len = source.read_at(events_block.at, &mut bytes)?;
        // The file may have changed since it was opened.
        let header = match parse(&bytes[..len]) {
            Ok(header) if header.kind == BlockKind::Events && header.stored_len == events_block.stored_len => header,
            Ok(_) => return Ok(Err(BlockError::Cut)),
            Err(error) => return Ok(Err(error)),
        };
        read_stored(source, &ScannedBlock { at: events_block.at, header }, &mut self.stored)?;
        let payload = header.payload(&self.stored, &mut self.full);
        Ok(payload.and_then(|payload| events.decode(payload, dictionary)))
    }
}
