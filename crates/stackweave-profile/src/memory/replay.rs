//! The events of a process told to ledgers again, in the order of time.
//!
//! Hot file: an event costs a look at its kind, one at its thread's tag and what the ledger takes. What is kept grows with the
//! blocks that are live and with the places that took them, not with the events.

use stackweave_core::EventKind;
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RawEvent;
use stackweave_store::ledger::{Figures, Ledger, LedgerOptions, Place, Totals};

use super::figures::{add, since};
use super::header::MemoryHeader;
use super::kinds::{MemoryEvent, MemoryKinds, Taken};
use crate::word_hash::WordMap;

/// Ledgers of a process and its devices, and what they are told.
#[derive(Debug)]
pub struct Replay {
    kinds: MemoryKinds,
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
            kinds: MemoryKinds::of(process.dictionary()),
            options,
            devices: Vec::new(),
            tags: WordMap::default(),
            mark: 0,
        };
        replay.device(EventKind::OWN_DEVICE);
        replay
    }

    /// All that is told before [`Replay::begin_range`] lies before what is asked for.
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

    /// What an event says about memory.
    pub fn see(&self, event: &RawEvent<'_>) -> Option<MemoryEvent> {
        self.kinds.see(event)
    }

    /// Tells of an event.
    pub fn tell(&mut self, ticks: u64, thread: u32, event: MemoryEvent) {
        match event {
            MemoryEvent::Allocate(taken) => {
                let place = self.place(thread, taken);
                let ledger = self.device(taken.device);
                let place = ledger.place(place);
                ledger.allocate(ticks, thread, taken.address, taken.size, place);
            }
            // Freeing nothing is no free.
            MemoryEvent::Free { address: 0, .. } => {}
            MemoryEvent::Free { device, address } => self.device(device).free(ticks, thread, address),
            MemoryEvent::Map(taken) => {
                let place = self.place(thread, taken);
                let ledger = self.device(taken.device);
                let place = ledger.place(place);
                ledger.map(ticks, thread, taken.address, taken.size, place);
            }
            MemoryEvent::Unmap { address, size } => {
                self.device(EventKind::OWN_DEVICE).unmap(ticks, thread, address, size);
            }
            MemoryEvent::Keep { address } => self.device(EventKind::OWN_DEVICE).keep(thread, address),
            MemoryEvent::Tag { frame } => {
                self.tags.insert(thread, frame);
            }
        }
    }

    /// The bytes of a device that are live now.
    pub fn live_bytes(&self, device: i64) -> u64 {
        let found = self.devices.iter().find(|known| known.number == device);
        found.map_or(0, |device| device.ledger.live_bytes())
    }

    fn place(&self, thread: u32, taken: Taken) -> Place {
        let tag = if self.tags.is_empty() { 0 } else { self.tags.get(&thread).copied().unwrap_or(0) };
        Place { stack: taken.stack, thread, allocator: self.mark | u32::from(taken.kind), tag }
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
        self.kinds = MemoryKinds::of(process.dictionary());
    }

    /// What was counted so far, for the process first, then for each device that had events.
    pub(crate) fn counted(&self) -> Vec<Replayed> {
        self.devices.iter().map(|device| device.counted(&self.kinds)).collect()
    }
}

impl Device {
    fn counted(&self, kinds: &MemoryKinds) -> Replayed {
        let (mut totals, places) = (self.ledger.totals(), places(&self.ledger, kinds));
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
fn places(ledger: &Ledger, kinds: &MemoryKinds) -> Vec<PlaceFigures> {
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
        if !is_before && !kinds.is_present(place.allocator) {
            known.leaked_blocks = known.leaked_blocks.saturating_add(figures.live_blocks);
            known.leaked_bytes = known.leaked_bytes.saturating_add(figures.live_bytes);
        }
    }
    joined.retain(|known| known.figures != Figures::default());
    joined.sort_unstable_by_key(|known| known.place);
    joined
}
