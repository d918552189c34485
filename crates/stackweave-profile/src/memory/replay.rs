//! The events of a process entered into ledgers again, in the order of time.
//!
//! Hot file: an event costs a look at its kind, one at its thread's tag and what the ledger takes. What is kept grows with the
//! blocks that are live and with the places that took them, not with the events.

use stackweave_core::EventKind;
use stackweave_heap::{Figures, Ledger, LedgerOptions, Place, Totals};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Decoder, Event, Layout, Memory, Region};
use stackweave_recording::file::RawEvent;

use super::figures::{add, since};
use super::header::MemoryHeader;
use crate::word_hash::WordMap;

/// Ledgers of a process and its devices.
#[derive(Debug)]
pub struct Replay {
    decoder: Decoder,
    options: LedgerOptions,
    devices: Vec<Device>,
    /// The tag of each thread that has one.
    tags: WordMap<u32, u32>,
    /// In the allocator of each place: 0, or [`BEFORE`] until the range begins.
    mark: u32,
}

#[derive(Debug)]
struct Device {
    number: i64,
    ledger: Ledger,
    /// What it had counted when the range began.
    start: Totals,
    start_sizes: Vec<(u64, Figures)>,
    /// When the range began, and how much was live then.
    range_start: Option<(u64, u64)>,
}

/// Marks places of blocks that were taken before the range. The numbers of allocators are those of kinds, and small.
const BEFORE: u32 = 1 << 31;

/// What the ledger of a device has counted.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) device: i64,
    pub(crate) totals: Totals,
    /// Whether nothing in the range was higher than its beginning.
    pub(crate) is_peak_at_start: bool,
    pub(crate) places: Vec<PlaceFigures>,
    pub(crate) sizes: Vec<(u64, Figures)>,
}

/// The figures of a place. Its allocator is the number of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceFigures {
    pub(crate) place: Place,
    pub(crate) figures: Figures,
    /// Blocks that were taken inside the range, and not before the recording, and are live at its end.
    pub(crate) leaked_blocks: u64,
    pub(crate) leaked_bytes: u64,
}

impl Replay {
    /// A replay of this process from its beginning. With `temporary`, blocks are temporary by this number of allocations.
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

    /// All that is added before [`Replay::begin_range`] lies before what is asked for.
    pub fn wait_for_range(&mut self) {
        self.mark = BEFORE;
    }

    /// What is asked for begins: what is live now is the first peak.
    pub fn begin_range(&mut self, ticks: u64) {
        self.mark = 0;
        for device in &mut self.devices {
            device.start = device.ledger.totals();
            device.start_sizes = device.ledger.sizes().collect();
            device.range_start = Some((ticks, device.ledger.live_bytes()));
            device.ledger.restart_peak(ticks);
        }
    }

    /// Whether the range has not begun.
    pub fn is_waiting(&self) -> bool {
        self.mark != 0
    }

    /// Returns what an event means, if it changes what is live.
    pub fn decode<'a>(&self, event: &RawEvent<'a>) -> Option<Event<'a>> {
        Some(self.decoder.decode(event)).filter(Event::changes_heap)
    }

    /// Enters an event. What does not change what is live changes nothing here.
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

    fn allocate(&mut self, ticks: u64, thread: u32, memory: &Memory) {
        let Memory { region, address, size, .. } = *memory;
        let place = self.place(thread, memory);
        let ledger = self.device(region.device());
        let place = ledger.place(place);
        match region {
            Region::Block(_) => ledger.allocate(ticks, thread, address, size, place),
            Region::Mapping => ledger.map(ticks, thread, address, size, place),
            Region::Segment(_) => {}
        }
    }

    fn free(&mut self, ticks: u64, thread: u32, memory: &Memory) {
        let Memory { region, address, size, .. } = *memory;
        match region {
            // Freeing nothing is no free.
            Region::Block(_) if address == 0 => {}
            Region::Block(device) => self.device(device).free(ticks, thread, address),
            Region::Mapping => self.device(EventKind::OWN_DEVICE).unmap(ticks, thread, address, size),
            Region::Segment(_) => {}
        }
    }

    /// The bytes of a device that are live now.
    pub fn live_bytes(&self, device: i64) -> u64 {
        let found = self.devices.iter().find(|known| known.number == device);
        found.map_or(0, |device| device.ledger.live_bytes())
    }

    fn place(&self, thread: u32, memory: &Memory) -> Place {
        let tag = if self.tags.is_empty() { 0 } else { self.tags.get(&thread).copied().unwrap_or(0) };
        Place { stack: memory.stack, thread, allocator: self.mark | u32::from(memory.kind), tag }
    }

    fn device(&mut self, number: i64) -> &mut Ledger {
        let found = self.devices.iter().position(|device| device.number == number);
        let at = found.unwrap_or_else(|| {
            let ledger = Ledger::new(self.options);
            let (start, start_sizes) = Default::default();
            self.devices.push(Device { number, ledger, start, start_sizes, range_start: None });
            self.devices.len() - 1
        });
        &mut self.devices[at].ledger
    }

    /// Knows the kinds that a process which still records has by now.
    pub fn learn_kinds(&mut self, process: &ProcessRecording) {
        self.decoder = Decoder::of(process.dictionary());
    }

    /// What was counted so far, for the process first, then for each device that had events.
    pub(crate) fn counted(&self) -> Vec<Replayed> {
        self.devices.iter().map(|device| device.counted(&self.decoder)).collect()
    }
}

impl Device {
    fn counted(&self, decoder: &Decoder) -> Replayed {
        let (mut totals, places) = (self.ledger.totals(), places(&self.ledger, decoder));
        let begun = self.range_start.filter(|_| totals.figures.peak_bytes > 0);
        let is_peak_at_start = begun.is_some_and(|begun| begun == (totals.peak_ticks, totals.figures.peak_bytes));
        if self.range_start.is_some() {
            totals.figures = Figures::default();
            for known in &places {
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
        Replayed { device: self.number, totals, is_peak_at_start, places, sizes }
    }
}

/// The places of a ledger, those of blocks from before the range joined with those inside.
fn places(ledger: &Ledger, decoder: &Decoder) -> Vec<PlaceFigures> {
    let layout = |kind: u32| u8::try_from(kind).ok().and_then(|kind| decoder.layout(kind));
    let mut by_place: WordMap<Place, usize> = WordMap::default();
    let mut joined: Vec<PlaceFigures> = Vec::new();
    for (place, mut figures) in ledger.places() {
        let is_before = place.allocator & BEFORE != 0;
        if is_before {
            // A block from before that was given back early was no temporary block of this range.
            figures = since(&figures, &figures);
        }
        let place = Place { allocator: place.allocator & !BEFORE, ..place };
        let at = *by_place.entry(place).or_insert_with(|| {
            joined.push(PlaceFigures { place, figures: Figures::default(), leaked_blocks: 0, leaked_bytes: 0 });
            joined.len() - 1
        });
        let known = &mut joined[at];
        add(&mut known.figures, &figures);
        if !is_before && !layout(place.allocator).is_some_and(Layout::is_present) {
            known.leaked_blocks = known.leaked_blocks.saturating_add(figures.live_blocks);
            known.leaked_bytes = known.leaked_bytes.saturating_add(figures.live_bytes);
        }
    }
    joined.retain(|known| known.figures != Figures::default());
    joined.sort_unstable_by_key(|known| known.place);
    joined
}
