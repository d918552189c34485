//! The last whole snapshot of a recording.

use std::ops::ControlFlow;

use stackweave_core::{EventKind, Role};
use stackweave_recording::events;
use stackweave_recording::file::{Dictionary, RawEvent, number_of};
use stackweave_recording::{ProcessRecording, ReadError};
use stackweave_store::ledger::{Figures, Place, Totals};

use super::kinds::PRESENT;
use super::labels::frame_name;
use super::replay::PlaceFigures;

/// The thread that a recorder's own events are of.
pub(super) const RECORDERS_THREAD: &str = "stackweave";

/// What the process and each device had used at the end of a recording, or when it was last written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    number: u64,
    /// Allocators and tags of places are numbers of frames.
    rows: Vec<(i64, Place, Figures)>,
    sizes: Vec<(i64, u64, Figures)>,
    totals: Vec<(i64, Totals)>,
    /// The frame that stands for the allocator of what was there when the recording began.
    present: Option<u32>,
}

impl Snapshot {
    /// Those that were used, the process first.
    pub(crate) fn devices(&self) -> Vec<i64> {
        let mut devices: Vec<i64> = self.totals.iter().map(|(device, _)| *device).collect();
        devices.sort_unstable();
        devices
    }

    pub(crate) fn totals(&self, device: i64) -> Totals {
        self.totals.iter().find(|(of, _)| *of == device).map(|(_, totals)| *totals).unwrap_or_default()
    }

    pub(crate) fn rows(&self, device: i64) -> impl Iterator<Item = PlaceFigures> {
        let row = |(_, place, figures): &(i64, Place, Figures)| {
            let (place, figures) = (*place, *figures);
            let is_leaked = self.present != Some(place.allocator);
            let (leaked_blocks, leaked_bytes) =
                if is_leaked { (figures.live_blocks, figures.live_bytes) } else { (0, 0) };
            PlaceFigures { place, figures, leaked_blocks, leaked_bytes }
        };
        self.rows.iter().filter(move |(of, ..)| *of == device).map(row)
    }

    pub(crate) fn sizes(&self, device: i64) -> impl Iterator<Item = (u64, Figures)> {
        self.sizes.iter().filter(move |(of, ..)| *of == device).map(|(_, most, figures)| (*most, *figures))
    }

    fn present_allocator(&self, dictionary: &Dictionary) -> Option<u32> {
        let mut allocators: Vec<u32> = self.rows.iter().map(|(_, place, _)| place.allocator).collect();
        allocators.sort_unstable();
        allocators.dedup();
        allocators.into_iter().find(|frame| frame_name(dictionary, *frame) == Some(PRESENT))
    }

    fn has(&self, device: i64) -> bool {
        self.totals.iter().any(|(of, _)| *of == device)
    }

    /// Whether each device has its total: those of its rows, and those of the snapshot before.
    fn is_whole(&self, before: Option<&Self>) -> bool {
        let earlier = before.into_iter().flat_map(|before| before.totals.iter().map(|(device, _)| *device));
        !self.totals.is_empty() && self.rows.iter().map(|row| row.0).chain(earlier).all(|device| self.has(device))
    }
}

/// Reads the last whole snapshot of a process, if there is one. Where the recorder's own thread has them, only its events are
/// read.
pub(crate) fn read_snapshot(process: &ProcessRecording) -> Result<Option<Snapshot>, ReadError> {
    let kinds = UsageKinds::of(process.dictionary());
    if !kinds.has_totals {
        return Ok(None);
    }
    let own = recorders_threads(process);
    let found = match read_threads(process, &kinds, Some(&own))? {
        Some(found) => Some(found),
        None => read_threads(process, &kinds, None)?,
    };
    Ok(found.map(|found| Snapshot { present: found.present_allocator(process.dictionary()), ..found }))
}

/// The threads that a recorder writes its own events to.
pub(super) fn recorders_threads(process: &ProcessRecording) -> Vec<u32> {
    let threads = process.dictionary().threads().filter(|thread| thread.name == RECORDERS_THREAD);
    threads.map(|thread| thread.number).collect()
}

fn read_threads(
    process: &ProcessRecording,
    kinds: &UsageKinds,
    threads: Option<&[u32]>,
) -> Result<Option<Snapshot>, ReadError> {
    let mut order = process.in_time_order(None, threads);
    let mut reading = Reading::default();
    while let Some(timed) = order.next_event()? {
        if reading.event(kinds, &timed.event).is_break() {
            break;
        }
    }
    Ok(reading.finish())
}

#[derive(Debug, Default)]
struct Reading {
    whole: Option<Snapshot>,
    open: Option<Snapshot>,
}

impl Reading {
    fn event(&mut self, kinds: &UsageKinds, event: &RawEvent<'_>) -> ControlFlow<()> {
        let Some((kind, row)) = &kinds.kinds[usize::from(event.kind)] else { return ControlFlow::Continue(()) };
        let word = |at: Option<usize>| at.and_then(|at| event.words.get(at)).copied().unwrap_or(0);
        let number = word(row.snapshot);
        if self.open.as_ref().is_none_or(|open| open.number != number) {
            self.close();
            self.open = Some(Snapshot { number, ..Snapshot::default() });
        }
        let Some(open) = &mut self.open else { return ControlFlow::Continue(()) };
        let device = word(row.device).cast_signed();
        let figures = row.figures(event);
        match kind {
            UsageKind::Place => {
                let small = |at| number_of(word(at));
                let place = Place {
                    stack: small(row.stack),
                    thread: small(row.thread),
                    allocator: small(row.allocator),
                    tag: small(row.tag),
                };
                open.rows.push((device, place, figures));
            }
            UsageKind::Size => open.sizes.push((device, word(row.most), figures)),
            UsageKind::Total => {
                let totals = Totals {
                    figures,
                    peak_ticks: event.ticks.saturating_sub(word(row.peak_ago)),
                    frees: word(row.frees),
                    unknown_frees: word(row.unknown_frees),
                    replaced: word(row.replaced),
                };
                open.totals.retain(|(of, _)| *of != device);
                open.totals.push((device, totals));
            }
        }
        ControlFlow::Continue(())
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take().filter(|open| open.is_whole(self.whole.as_ref())) {
            self.whole = Some(open);
        }
    }

    fn finish(mut self) -> Option<Snapshot> {
        self.close();
        self.whole
    }
}

/// What an event of a snapshot is about.
#[derive(Clone, Copy, Debug)]
enum UsageKind {
    Place,
    Size,
    Total,
}

#[derive(Debug)]
struct UsageKinds {
    kinds: Vec<Option<(UsageKind, Columns)>>,
    has_totals: bool,
}

/// Where the values of a kind are.
#[derive(Debug)]
struct Columns {
    stack: Option<usize>,
    thread: Option<usize>,
    allocator: Option<usize>,
    tag: Option<usize>,
    snapshot: Option<usize>,
    device: Option<usize>,
    most: Option<usize>,
    peak_ago: Option<usize>,
    frees: Option<usize>,
    unknown_frees: Option<usize>,
    replaced: Option<usize>,
    figures: [Option<usize>; 8],
}

impl UsageKinds {
    fn of(dictionary: &Dictionary) -> Self {
        let mut kinds: Vec<Option<(UsageKind, Columns)>> = (0..256).map(|_| None).collect();
        let mut has_totals = false;
        for (number, kind) in dictionary.kinds().filter(|(_, kind)| kind.role == Role::Usage) {
            let known = [
                (events::MEMORY_USAGE, UsageKind::Place),
                (events::MEMORY_SIZES, UsageKind::Size),
                (events::MEMORY_TOTAL, UsageKind::Total),
            ];
            let Some((_, of)) = known.into_iter().find(|(known, _)| known.name == kind.name) else { continue };
            has_totals |= matches!(of, UsageKind::Total);
            kinds[usize::from(number)] = Some((of, Columns::of(kind)));
        }
        Self { kinds, has_totals }
    }
}

impl Columns {
    fn of(kind: &EventKind) -> Self {
        let at = |name: &str| kind.fields.iter().position(|field| field.name == name);
        Self {
            stack: at("stack"),
            thread: at("thread"),
            allocator: at("allocator"),
            tag: at("tag"),
            snapshot: at("snapshot"),
            device: at("device"),
            most: at("most"),
            peak_ago: at("peak_ago"),
            frees: at("frees"),
            unknown_frees: at("unknown_frees"),
            replaced: at("replaced"),
            figures: [
                at("allocations"),
                at("bytes"),
                at("live_blocks"),
                at("live_bytes"),
                at("peak_blocks"),
                at("peak_bytes"),
                at("temporary"),
                at("temporary_bytes"),
            ],
        }
    }

    fn figures(&self, event: &RawEvent<'_>) -> Figures {
        let values = self.figures.map(|at| at.and_then(|at| event.words.get(at)).copied().unwrap_or(0));
        let [allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes] = values;
        Figures { allocations, bytes, live_blocks, live_bytes, peak_blocks, peak_bytes, temporary, temporary_bytes }
    }
}
