//! The recording of one process.

use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::slice;
use std::sync::Arc;

use super::error::ReadError;
use super::index::{Place, Section};
use super::missing::Missing;
use super::scanner::{Block, parse, read_stored};
use super::source::Source;
use super::time_axis::TimeAxis;
use super::time_order::{TimeOrder, TimedEvent};
use crate::clock::Timeline;
use crate::file::{BlockError, BlockHeader, BlockKind, Dictionary, End, EventBuffer, Lost, Start};
use crate::origin::Origin;

/// What one process has recorded. Its events stay in the file until they are visited. Cheap to clone.
#[derive(Clone)]
pub struct ProcessRecording {
    source: Arc<dyn Source>,
    path: Arc<Path>,
    section: Arc<Section>,
}

impl ProcessRecording {
    pub(crate) fn new(source: Arc<dyn Source>, path: Arc<Path>, section: Section) -> Self {
        Self { source, path, section: Arc::new(section) }
    }

    /// What is known of it, to go on with. It is copied if somebody else has this recording too.
    pub(crate) fn into_section(self) -> Section {
        Arc::try_unwrap(self.section).unwrap_or_else(|shared| Section::clone(&shared))
    }

    /// Whether both are the same recording, opened once.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.section, &other.section)
    }

    /// Whose it is.
    pub fn start(&self) -> &Start {
        &self.section.start
    }

    /// Returns whether this user has made it on this machine: it says so, and the user owns the file that it is in. Who can
    /// write a file for another user to read can make it say anything.
    pub fn is_made_by(&self, origin: &Origin) -> bool {
        self.source.owner() == Some(origin.uid) && origin.has_made(self.start())
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<&End> {
        self.section.end.as_ref()
    }

    /// What the numbers in its events mean.
    pub fn dictionary(&self) -> &Dictionary {
        &self.section.dictionary
    }

    /// What its ticks are in nanoseconds.
    pub fn timeline(&self) -> &Timeline {
        &self.section.timeline
    }

    /// What it does not hold. Blocks of events that are damaged inside are found when they are visited.
    pub fn missing(&self) -> &Missing {
        &self.section.missing
    }

    /// Where events are missing because the recorder could not keep them: on which threads, and when.
    pub fn losses(&self) -> &[Lost] {
        &self.section.losses
    }

    /// Returns at which ticks events of a thread are missing, the last ones first.
    pub fn loss_ticks(&self, thread: u32) -> Vec<u64> {
        let of_thread = self.losses().iter().filter(|lost| lost.thread == thread);
        let mut ticks: Vec<u64> = of_thread.map(Lost::ticks).collect();
        ticks.sort_unstable_by_key(|ticks| core::cmp::Reverse(*ticks));
        ticks
    }

    /// The last ticks of a thread's events, as their blocks say.
    pub fn last_ticks(&self, thread: u32) -> Option<u64> {
        let own = self.section.places.iter().filter(|place| place.thread == thread);
        own.map(|place| place.last_ticks).max()
    }

    /// The file that it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes it has in the file.
    pub fn bytes(&self) -> u64 {
        self.section.range.end - self.section.range.start
    }

    /// How many events it holds, as their blocks say.
    pub fn event_count(&self) -> u64 {
        self.section.places.iter().map(|place| u64::from(place.count)).sum()
    }

    /// How many events of a thread it holds, as their blocks say.
    pub fn events_of(&self, thread: u32) -> u64 {
        let own = self.section.places.iter().filter(|place| place.thread == thread);
        own.map(|place| u64::from(place.count)).sum()
    }

    /// From its first event up to one nanosecond behind its last, in nanoseconds since its base.
    pub fn time_range(&self) -> Option<Range<u64>> {
        let (first, last) = self.ticks()?;
        let timeline = self.timeline();
        Some(timeline.nanoseconds(first)..timeline.nanoseconds(last).saturating_add(1))
    }

    /// Shows every block of events, in the order of the file: each thread's events are in order, those of several
    /// threads are not. One block is in memory at a time.
    ///
    /// With a `range` (nanoseconds since the base), only blocks that reach into it; they may hold events outside of it.
    /// `progress` is told how many of [`ProcessRecording::bytes`] are done. The result says which blocks had to be
    /// left out because they are damaged.
    pub fn visit(
        &self,
        range: Option<Range<u64>>,
        progress: &mut dyn FnMut(u64),
        event_block: &mut dyn FnMut(&EventBuffer) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        let mut missing = Missing::default();
        let mut reader = BlockReader::default();
        let mut events = EventBuffer::default();
        for place in self.places_in(range) {
            if self.read(place, &mut reader, &mut events)?.is_err() {
                missing.damaged.add(place.range());
            } else if event_block(&events).is_break() {
                return Ok(missing);
            }
            progress(place.range().end - self.section.range.start);
        }
        progress(self.bytes());
        Ok(missing)
    }

    /// Shows every event of all threads, the earliest first; events of one thread stay in their order whatever their
    /// times are. At most one block of each thread is in memory at a time.
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

    /// The same, to be asked for one event after another. It keeps what it needs of the recording.
    ///
    /// With `threads`, only the events of these.
    pub fn in_time_order(&self, range: Option<Range<u64>>, threads: Option<&[u32]>) -> TimeOrder {
        let limit = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let range = range.map(|range| limit(range.start)..limit(range.end));
        TimeOrder::new(slice::from_ref(self), TimeAxis::SinceBase, range, threads)
    }

    /// The first and the last ticks of its events.
    pub(crate) fn ticks(&self) -> Option<(u64, u64)> {
        let places = self.section.places.iter().map(|place| (place.first_ticks, place.last_ticks));
        places.reduce(|all, next| (all.0.min(next.0), all.1.max(next.1)))
    }

    pub(crate) fn source(&self) -> &dyn Source {
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
        place: &Place,
        reader: &mut BlockReader,
        events: &mut EventBuffer,
    ) -> Result<Result<(), BlockError>, ReadError> {
        let read = reader.read(&*self.source, place, self.dictionary(), events);
        read.map_err(|error| self.read_error(error))
    }

    /// The blocks that reach into a range.
    fn places_in(&self, range: Option<Range<u64>>) -> impl Iterator<Item = &Place> {
        let ns = |ticks| self.timeline().nanoseconds(ticks);
        self.section.places.iter().filter(move |place| {
            let reaches_into =
                |range: &Range<u64>| ns(place.first_ticks) < range.end && ns(place.last_ticks) >= range.start;
            range.as_ref().is_none_or(reaches_into)
        })
    }
}

impl fmt::Debug for ProcessRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessRecording")
            .field("path", &self.path)
            .field("start", self.start())
            .field("blocks", &self.section.places.len())
            .field("missing", self.missing())
            .finish_non_exhaustive()
    }
}

impl Place {
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
        source: &dyn Source,
        place: &Place,
        dictionary: &Dictionary,
        events: &mut EventBuffer,
    ) -> io::Result<Result<(), BlockError>> {
        let mut bytes = [0; BlockHeader::LEN];
        let len = source.read_at(place.at, &mut bytes)?;
        // The file may have changed since it was opened.
        let header = match parse(&bytes[..len]) {
            Ok(header) if header.kind == BlockKind::Events && header.stored_len == place.stored_len => header,
            Ok(_) => return Ok(Err(BlockError::Cut)),
            Err(error) => return Ok(Err(error)),
        };
        read_stored(source, &Block { at: place.at, header }, &mut self.stored)?;
        let payload = header.payload(&self.stored, &mut self.full);
        Ok(payload.and_then(|payload| events.decode(payload, dictionary)))
    }
}
