//! The index of a file, built in one pass: its processes, their definitions, and the positions of their events.
//!
//! Of events only the heads of their blocks are read, with the thread and the times. So the index consists of the definitions
//! and an [`EventsBlock`] for each block of events.

use std::io;
use std::ops::Range;

use super::missing::Missing;
use super::scanner::{FilePart, ScannedBlock, Scanner};
use super::source::RecordingSource;
use crate::clock::{ClockPoint, ClockTimeline};
use crate::file::{BlockError, BlockKind, Dictionary, EventsHead, Lost, ProcessStart, SectionEnd};

/// The position of a block of events, and the values in its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventsBlock {
    pub(crate) at: u64,
    pub(crate) stored_len: u32,
    pub(crate) thread: u32,
    pub(crate) count: u32,
    pub(crate) first_ticks: u64,
    pub(crate) last_ticks: u64,
}

/// One process in a file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) start: ProcessStart,
    pub(crate) end: Option<SectionEnd>,
    pub(crate) dictionary: Dictionary,
    pub(crate) timeline: ClockTimeline,
    pub(crate) event_blocks: Vec<EventsBlock>,
    pub(crate) losses: Vec<Lost>,
    pub(crate) missing: Missing,
    /// The range from its Start to the end of its last block.
    pub(crate) range: Range<u64>,
    /// The length of the file when it was read.
    pub(crate) file_end: u64,
    /// The tag in the headers of its blocks, which no other section has.
    pub(crate) tag: u32,
    /// Whether there are clock points, so that the system's clocks are known at some ticks.
    pub(crate) has_clock_points: bool,
}

/// The index of a file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) sections: Vec<Section>,
    /// The missing data outside of the sections.
    pub(crate) missing: Missing,
    /// Whether there are any blocks.
    pub(crate) has_blocks: bool,
    pub(crate) bytes: u64,
}

impl Index {
    pub(crate) fn read(source: &dyn RecordingSource) -> io::Result<Self> {
        let bytes = source.size()?;
        let mut builder = IndexBuilder { index: Self { bytes, ..Self::default() }, ..IndexBuilder::default() };
        let mut scanner = Scanner::new(source, 0..bytes);
        while let Some(part) = scanner.next()? {
            builder.add(&mut scanner, part)?;
        }
        builder.close();
        for section in &mut builder.index.sections {
            section.event_blocks.shrink_to_fit();
        }
        Ok(builder.index)
    }
}

/// An index that is being built.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    pub(super) index: Index,
    pub(super) open: Option<OpenSection>,
    scratch: Vec<u8>,
}

/// The current section. It continues after its End block until the next Start, because its blocks have its tag.
#[derive(Debug)]
pub(super) struct OpenSection {
    pub(super) section: Section,
    pub(super) points: Vec<ClockPoint>,
}

impl IndexBuilder {
    pub(super) fn add(&mut self, scanner: &mut Scanner<'_>, part: FilePart) -> io::Result<()> {
        match part {
            FilePart::Damage(range) => self.missing().damaged.add(range),
            FilePart::Tail(range) => self.missing().cut_bytes += range.end - range.start,
            FilePart::TooNew(range) => self.index.missing.too_new.add(range),
            FilePart::Block(block) => {
                self.index.has_blocks = true;
                return self.add_block(scanner, &block);
            }
        }
        Ok(())
    }

    /// Returns where to report what is missing: in the current process, if there is one.
    fn missing(&mut self) -> &mut Missing {
        self.open.as_mut().map_or(&mut self.index.missing, |open| &mut open.section.missing)
    }

    fn add_block(&mut self, scanner: &mut Scanner<'_>, block: &ScannedBlock) -> io::Result<()> {
        if block.header.kind == BlockKind::Start {
            return self.add_start(scanner, block);
        }
        let Some(open) = self.open.as_mut().filter(|open| open.section.tag == block.header.section) else {
            self.index.missing.orphans.add(block.range());
            return Ok(());
        };
        open.section.range.end = block.end();
        let added = match block.header.kind {
            BlockKind::Events => open.add_events(block, scanner.start_of(block, EventsHead::LEN)?),
            BlockKind::Other(_) => {
                open.section.missing.unknown_blocks += 1;
                Ok(())
            }
            kind => {
                let payload = block.header.payload(scanner.stored(block)?, &mut self.scratch);
                payload.and_then(|payload| open.add_payload(kind, payload))
            }
        };
        if added.is_err() {
            open.section.missing.damaged.add(block.range());
        }
        Ok(())
    }

    fn add_start(&mut self, scanner: &mut Scanner<'_>, block: &ScannedBlock) -> io::Result<()> {
        self.close();
        let payload = block.header.payload(scanner.stored(block)?, &mut self.scratch);
        match payload.and_then(ProcessStart::parse) {
            Ok(start) => self.open = Some(OpenSection::new(start, block, self.index.bytes)),
            Err(_) => self.index.missing.orphans.add(block.range()),
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.settle();
        self.index.sections.push(open.section);
    }
}

impl OpenSection {
    fn new(start: ProcessStart, block: &ScannedBlock, file_end: u64) -> Self {
        let section = Section {
            timeline: ClockTimeline::new(&[], start.ticks_per_second, start.started_wall_ns),
            start,
            end: None,
            dictionary: Dictionary::default(),
            event_blocks: Vec::new(),
            losses: Vec::new(),
            missing: Missing::default(),
            range: block.range(),
            file_end,
            tag: block.header.section,
            has_clock_points: false,
        };
        Self { section, points: Vec::new() }
    }

    /// Updates the derived values, so that the section can be read as far as it goes. It may grow afterwards.
    pub(super) fn settle(&mut self) {
        let Self { section, points } = self;
        let ProcessStart { started_wall_ns, started_monotonic_ns, ticks_per_second, .. } = section.start;
        let started =
            ClockPoint { ticks: 0, monotonic_ns: started_monotonic_ns, wall_ns: started_wall_ns, width_ns: 0 };
        let knows_start = points.is_empty() && started_monotonic_ns != 0;
        let points = if knows_start { core::slice::from_ref(&started) } else { points.as_slice() };
        section.timeline = ClockTimeline::new(points, ticks_per_second, started_wall_ns);
        section.has_clock_points = !points.is_empty();
        section.missing.is_unclosed = section.end.is_none();
    }

    fn add_events(&mut self, block: &ScannedBlock, stored: &[u8]) -> Result<(), BlockError> {
        let head = EventsHead::parse(stored)?;
        self.section.event_blocks.push(EventsBlock {
            at: block.at,
            stored_len: block.header.stored_len,
            thread: head.thread,
            count: head.count,
            first_ticks: head.first_ticks,
            last_ticks: head.last_ticks,
        });
        Ok(())
    }

    fn add_payload(&mut self, kind: BlockKind, payload: &[u8]) -> Result<(), BlockError> {
        match kind {
            BlockKind::Definitions => self.section.dictionary.add(payload)?,
            BlockKind::Clock => self.points.push(ClockPoint::parse(payload)?),
            BlockKind::Lost => {
                let lost = Lost::parse(payload)?;
                self.section.missing.add_lost(lost.reason, lost.count);
                self.section.losses.push(lost);
            }
            BlockKind::End => self.section.end = Some(SectionEnd::parse(payload)?),
            BlockKind::Start | BlockKind::Events | BlockKind::Other(_) => {}
        }
        Ok(())
    }
}
