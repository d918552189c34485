//! Hand-made recordings of memory: events, and a snapshot of a ledger's figures.
#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "names and types describe the events"
)]

use stackweave_core::{EventKind, RawFrame};
use stackweave_heap::{CallSite, Ledger, LedgerOptions};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{self, Allocator};
use stackweave_recording::file::ProcessStart;

use crate::{Tape, span, stack_word};

/// A memory event of a process.
#[derive(Clone, Debug)]
pub enum MemoryStep {
    Allocate { address: u64, size: u64, stack: Vec<RawFrame>, by: Allocator },
    Free { address: u64 },
    Unmap { address: u64, size: u64 },
    Keep { address: u64 },
    Tag { name: Option<&'static str> },
    HostAllocate { device: i64, address: u64, size: u64, stack: Vec<RawFrame> },
    HostFree { device: i64, address: u64 },
    Segment { device: i64, address: u64, size: u64 },
}

/// The number of the thread that records the recorder's own events.
pub const RECORDER: u32 = 99;

/// A recording of memory, with a ledger that computes the figures of its snapshots.
pub struct MemoryTape {
    pub tape: Tape,
    options: LedgerOptions,
    writes_events: bool,
    /// The ledger of each device, the process's own first. Frames in its call sites are indices of `labels`.
    ledgers: Vec<(i64, Ledger)>,
    labels: Vec<RawFrame>,
    tags: Vec<(u32, u32)>,
    last: u64,
}

pub fn header(options: &[(&str, &str)]) -> ProcessStart {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ProcessStart { pid: 7, options, ..ProcessStart::default() }
}

impl MemoryTape {
    pub fn new() -> Self {
        Self::with(&header(&[("recorder", "memory"), ("memory.mode", "history")]), LedgerOptions::default())
    }

    pub fn with(start: &ProcessStart, options: LedgerOptions) -> Self {
        let mut tape = Tape::started(start);
        tape.thread(RECORDER, 7, "stackweave");
        let ledgers = vec![(EventKind::OWN_DEVICE, Ledger::new(options))];
        let writes_events = !start.options.contains(&("memory.mode".to_owned(), "aggregate".to_owned()));
        let (labels, tags) = (vec![span("none")], Vec::new());
        Self { tape, options, writes_events, ledgers, labels, tags, last: 0 }
    }

    /// Records a memory event of a thread, and updates the ledger.
    pub fn step(&mut self, thread: u32, ticks: u64, step: &MemoryStep) {
        self.last = self.last.max(ticks);
        let (kind, words) = match step {
            MemoryStep::Allocate { address, size, stack, by } => (by.kind(), vec![*address, *size, stack_word(stack)]),
            MemoryStep::Free { address } => (events::FREE, vec![*address]),
            MemoryStep::Unmap { address, size } => (events::MUNMAP, vec![*address, *size]),
            MemoryStep::Keep { address } => (events::KEPT, vec![*address]),
            MemoryStep::Tag { name } => (events::MEMORY_TAG, vec![name.map_or(0, |name| span(name).to_bits())]),
            MemoryStep::HostAllocate { device, address, size, stack } => {
                let words = vec![*address, *size, stack_word(stack), device.cast_unsigned(), 3, 4];
                (events::HOST_ALLOCATE, words)
            }
            MemoryStep::HostFree { device, address } => {
                (events::HOST_FREE, vec![*address, 0, 0, device.cast_unsigned(), 3, 0])
            }
            MemoryStep::Segment { device, address, size } => {
                (events::SEGMENT, vec![*address, *size, 0, device.cast_unsigned(), 3, 4])
            }
        };
        if self.writes_events {
            self.tape.event((thread, ticks), &kind, &words);
        }
        self.update_ledger(thread, ticks, step);
    }

    fn update_ledger(&mut self, thread: u32, ticks: u64, step: &MemoryStep) {
        let own = EventKind::OWN_DEVICE;
        match step {
            MemoryStep::Allocate { address, size, stack, by } => {
                let place = self.place(thread, stack, by.as_str());
                let ledger = self.ledger(own);
                let place = ledger.site(place);
                if by.is_mapping() {
                    ledger.map(ticks, thread, *address, *size, place);
                } else {
                    ledger.allocate(ticks, thread, *address, *size, place);
                }
            }
            MemoryStep::Free { address } => self.ledger(own).free(ticks, thread, *address),
            MemoryStep::Unmap { address, size } => self.ledger(own).unmap(ticks, thread, *address, *size),
            MemoryStep::Keep { address } => self.ledger(own).keep(thread, *address),
            MemoryStep::Tag { name } => {
                let tag = name.map_or(0, |name| self.label(name));
                self.tags.retain(|(of, _)| *of != thread);
                self.tags.push((thread, tag));
            }
            MemoryStep::HostAllocate { device, address, size, stack } => {
                let place = self.place(thread, stack, "host-allocate");
                let ledger = self.ledger(*device);
                let place = ledger.site(place);
                ledger.allocate(ticks, thread, *address, *size, place);
            }
            MemoryStep::HostFree { device, address } => self.ledger(*device).free(ticks, thread, *address),
            MemoryStep::Segment { .. } => {}
        }
    }

    fn ledger(&mut self, device: i64) -> &mut Ledger {
        let found = self.ledgers.iter().position(|(number, _)| *number == device);
        let at = found.unwrap_or_else(|| {
            self.ledgers.push((device, Ledger::new(self.options)));
            self.ledgers.len() - 1
        });
        &mut self.ledgers[at].1
    }

    fn place(&mut self, thread: u32, stack: &[RawFrame], allocator: &str) -> CallSite {
        let tag = self.tags.iter().find(|(of, _)| *of == thread).map_or(0, |(_, tag)| *tag);
        let stack = u32::try_from(stack_word(stack)).unwrap();
        CallSite { stack, thread, allocator: self.label(allocator), tag }
    }

    fn label(&mut self, name: &str) -> u32 {
        let frame = span(name);
        let at = self.labels.iter().position(|known| *known == frame).unwrap_or_else(|| {
            self.labels.push(frame);
            self.labels.len() - 1
        });
        u32::try_from(at).unwrap()
    }

    /// Records the counters of the memory curve.
    pub fn curve(&mut self, ticks: u64, heap: f64, rss: f64) {
        for (name, value) in [("memory.heap", heap), ("memory.rss", rss)] {
            self.tape.counter((RECORDER, ticks), span(name), value);
        }
    }

    /// Writes a snapshot; omits its last total if `is_cut`.
    pub fn snapshot(&mut self, number: u64, is_cut: bool) {
        let [usage, sizes, total] = [events::MEMORY_USAGE, events::MEMORY_SIZES, events::MEMORY_TOTAL];
        let (tape, now) = (&mut self.tape, self.last + 1);
        let label = |at: u32| if at == 0 { 0 } else { self.labels[at as usize].to_bits() };
        for (index, (device, ledger)) in self.ledgers.iter().enumerate() {
            let device = device.cast_unsigned();
            for (place, figures) in ledger.sites() {
                let place = [place.stack.into(), label(place.allocator), label(place.tag), number, place.thread.into()];
                let words = [&place[..], &[device], &figures.to_array()].concat();
                tape.event((RECORDER, now), &usage, &words);
            }
            for (most, figures) in ledger.sizes() {
                tape.event((RECORDER, now), &sizes, &[&[number, device, most][..], &figures.to_array()[..6]].concat());
            }
            if is_cut && index + 1 == self.ledgers.len() {
                break;
            }
            let totals = ledger.totals();
            let head = [number, device, now - totals.peak_ticks];
            let tail = [totals.frees, totals.unknown_frees, totals.replaced];
            tape.event((RECORDER, now), &total, &[&head[..], &totals.figures.to_array(), &tail].concat());
        }
        tape.flush(RECORDER);
    }

    pub fn process(self) -> ProcessRecording {
        self.tape.process()
    }
}
