//! Replays the events of a process with ledgers, in the order of time.
//!
//! Hot file: an event costs its decoding, the look-up of its thread's tag, and the ledger's work. Memory grows with the
//! live blocks and their call sites, not with the events.

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Figures, Ledger, LedgerOptions, Totals};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Decoder, Event, EventLayout, MemoryEvent, Region};
use stackweave_recording::file::RawEvent;

use super::figures::{add, since};
use super::header::MemoryHeader;
use crate::word_hash::WordMap;

/// The ledgers of a process and its devices.
#[derive(Debug)]
pub struct Replay {
    decoder: Decoder,
    options: LedgerOptions,
    devices: Vec<ReplayedDevice>,
    /// The tags of threads.
    tags: WordMap<u32, u32>,
    /// A mark in the allocator of each call site: 0, or [`BEFORE`] until the range begins.
    mark: u32,
}

#[derive(Debug)]
struct ReplayedDevice {
    number: i64,
    ledger: Ledger,
    /// The counts when the range began.
    start: Totals,
    start_sizes: Vec<(u64, Figures)>,
    /// The time at which the range began, and the live bytes then.
    range_start: Option<(u64, u64)>,
}

/// Marks call sites of blocks from before the range. The numbers of allocators are those of kinds, and small.
const BEFORE: u32 = 1 << 31;

/// The counts of a device's ledger.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) device: i64,
    pub(crate) totals: Totals,
    /// Whether the peak of the range is at its start.
    pub(crate) is_peak_at_start: bool,
    pub(crate) sites: Vec<CallSiteFigures>,
    pub(crate) sizes: Vec<(u64, Figures)>,
}

/// The figures of a call site. Its allocator is the number of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSiteFigures {
    pub(crate) site: CallSite,
    pub(crate) figures: Figures,
    /// Blocks that were allocated in the range, and are live at its end.
    pub(crate) leaked_blocks: u64,
    pub(crate) leaked_bytes: u64,
}

impl Replay {
    /// Creates the replay of a process. `temporary` replaces the recorder's limit of temporary blocks.
    pub fn new(process: &ProcessRecording, temporary: Option<u32>) -> Self {
        let options = MemoryHeader::of(process.start()).unwrap_or_default().ledger(temporary);
        let mut replay = Self {
            decoder: Decoder::of(process.dictionary()),
            options,
            devices: Vec::new(),
            tags: WordMap::default(),
            mark: 0,
        };
        replay.device(EventKind::OWN_DEVICE);
        replay
    }

    /// Marks all events before [`Replay::begin_range`] as earlier than the range.
    pub fn wait_for_range(&mut self) {
        self.mark = BEFORE;
    }

    /// Begins the range: the live memory is its first peak.
    pub fn begin_range(&mut self, ticks: u64) {
        self.mark = 0;
        for device in &mut self.devices {
            device.start = device.ledger.totals();
            device.start_sizes = device.ledger.sizes().collect();
            device.range_start = Some((ticks, device.ledger.live_bytes()));
            device.ledger.restart_peak(ticks);
        }
    }

    /// Returns whether the range has not begun.
    pub fn is_waiting(&self) -> bool {
        self.mark != 0
    }

    /// Decodes an event, if it changes live memory.
    pub fn decode<'a>(&self, event: &RawEvent<'a>) -> Option<Event<'a>> {
        Some(self.decoder.decode(event)).filter(Event::changes_heap)
    }

    /// Adds an event. Events that do not change live memory have no effect.
    pub fn add(&mut self, ticks: u64, thread: u32, event: &Event<'_>) {
        match event {
            Event::Allocate(memory) => self.allocate(ticks, thread, memory),
            Event::Free(memory) => self.free(ticks, thread, memory),
            Event::Keep { address } => self.device(EventKind::OWN_DEVICE).keep(thread, *address),
            Event::Tag { frame } => {
                self.tags.insert(thread, *frame);
            }
            _ => {}
        }
    }

    fn allocate(&mut self, ticks: u64, thread: u32, memory: &MemoryEvent) {
        let MemoryEvent { region, address, size, .. } = *memory;
        let site = self.site(thread, memory);
        let ledger = self.device(region.device());
        let site = ledger.site(site);
        match region {
            Region::Block(_) => ledger.allocate(ticks, thread, address, size, site),
            Region::Mapping => ledger.map(ticks, thread, address, size, site),
            Region::Segment(_) => {}
        }
    }

    fn free(&mut self, ticks: u64, thread: u32, memory: &MemoryEvent) {
        let MemoryEvent { region, address, size, .. } = *memory;
        match region {
            Region::Block(device) => self.device(device).free(ticks, thread, address),
            Region::Mapping => self.device(EventKind::OWN_DEVICE).unmap(ticks, thread, address, size),
            Region::Segment(_) => {}
        }
    }

    /// Returns the live bytes of a device.
    pub fn live_bytes(&self, device: i64) -> u64 {
        let found = self.devices.iter().find(|known| known.number == device);
        found.map_or(0, |device| device.ledger.live_bytes())
    }

    fn site(&self, thread: u32, memory: &MemoryEvent) -> CallSite {
        let tag = if self.tags.is_empty() { 0 } else { self.tags.get(&thread).copied().unwrap_or(0) };
        CallSite { stack: memory.stack, thread, allocator: self.mark | u32::from(memory.kind), tag }
    }

    fn device(&mut self, number: i64) -> &mut Ledger {
        let found = self.devices.iter().position(|device| device.number == number);
        let at = found.unwrap_or_else(|| {
            let ledger = Ledger::new(self.options);
            let (start, start_sizes) = Default::default();
            self.devices.push(ReplayedDevice { number, ledger, start, start_sizes, range_start: None });
            self.devices.len() - 1
        });
        &mut self.devices[at].ledger
    }

    /// Reads the kinds that a process has declared so far, while it still records.
    pub fn update_kinds(&mut self, process: &ProcessRecording) {
        self.decoder = Decoder::of(process.dictionary());
    }

    /// Returns the counts so far, for the heap first, then for each device with events.
    pub(crate) fn counted(&self) -> Vec<Replayed> {
        self.devices.iter().map(|device| device.counted(&self.decoder)).collect()
    }
}

impl ReplayedDevice {
    fn counted(&self, decoder: &Decoder) -> Replayed {
        let (mut totals, sites) = (self.ledger.totals(), sites(&self.ledger, decoder));
        let begun = self.range_start.filter(|_| totals.figures.peak_bytes > 0);
        let is_peak_at_start = begun.is_some_and(|begun| begun == (totals.peak_ticks, totals.figures.peak_bytes));
        if self.range_start.is_some() {
            totals.figures = Figures::default();
            for known in &sites {
                add(&mut totals.figures, &known.figures);
            }
        }
        totals.frees = totals.frees.saturating_sub(self.start.frees);
        totals.unknown_frees = totals.unknown_frees.saturating_sub(self.start.unknown_frees);
        totals.replaced = totals.replaced.saturating_sub(self.start.replaced);
        let start_of = |most| self.start_sizes.iter().find(|(class, _)| *class == most);
        // Temporary blocks are not counted by size.
        let size = |(most, figures): (u64, Figures)| {
            let start = start_of(most).map(|(_, start)| *start).unwrap_or_default();
            (most, Figures { temporary: 0, temporary_bytes: 0, ..since(&figures, &start) })
        };
        let sizes = self.ledger.sizes().map(size).collect();
        Replayed { device: self.number, totals, is_peak_at_start, sites, sizes }
    }
}

/// Returns the call sites of a ledger, with those of blocks from before the range merged with those inside it.
fn sites(ledger: &Ledger, decoder: &Decoder) -> Vec<CallSiteFigures> {
    let layout = |kind: u32| u8::try_from(kind).ok().and_then(|kind| decoder.layout(kind));
    let mut by_site: WordMap<CallSite, usize> = WordMap::default();
    let mut joined: Vec<CallSiteFigures> = Vec::new();
    for (site, mut figures) in ledger.sites() {
        let is_before = site.allocator & BEFORE != 0;
        if is_before {
            // A block from before the range that was freed soon is not a temporary block of the range.
            figures = since(&figures, &figures);
        }
        let site = CallSite { allocator: site.allocator & !BEFORE, ..site };
        let at = *by_site.entry(site).or_insert_with(|| {
            joined.push(CallSiteFigures { site, figures: Figures::default(), leaked_blocks: 0, leaked_bytes: 0 });
            joined.len() - 1
        });
        let known = &mut joined[at];
        add(&mut known.figures, &figures);
        if !is_before && !layout(site.allocator).is_some_and(EventLayout::is_present) {
            known.leaked_blocks = known.leaked_blocks.saturating_add(figures.live_blocks);
            known.leaked_bytes = known.leaked_bytes.saturating_add(figures.live_bytes);
        }
    }
    joined.retain(|known| known.figures != Figures::default());
    joined.sort_unstable_by_key(|known| known.site);
    joined
}
