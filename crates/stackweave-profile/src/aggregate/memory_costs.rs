//! What memory was taken, by stack and by span, for the measures of memory.

use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_heap::Totals;
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Event, Memory};

use crate::aggregate::collector::{Collected, GroupCosts};
use crate::aggregate::measure::Measure;
use crate::aggregate::stack_costs::{Place, StackCost, StackCosts};
use crate::memory::{MemoryHeader, PlaceFigures, Replay, Snapshot, UsageRow, first_device};

/// Where the costs of memory come from.
#[derive(Debug)]
pub(crate) enum MemoryCosts {
    /// Nobody asks for them.
    None,
    /// Allocations are counted as they stream by, in any order.
    Counted,
    /// They are told to a ledger, in the order of time.
    Replayed(Box<Replay>),
    /// They were counted while the program ran.
    Kept(Box<Snapshot>),
}

/// What the memory of a device that was taken costs, by measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceCosts {
    pub(crate) device: i64,
    pub(crate) allocated: StackCosts,
    pub(crate) live: StackCosts,
    pub(crate) peak: StackCosts,
    pub(crate) temporary: StackCosts,
}

/// What places have taken of a device.
#[derive(Debug)]
pub(crate) struct DeviceFigures {
    pub(crate) device: i64,
    pub(crate) places: Vec<PlaceFigures>,
    pub(crate) totals: Totals,
}

/// In the number of a place's stack: it is a node of the tree of spans.
const SPAN: u32 = 1 << 31;

impl MemoryCosts {
    /// How what is asked for is counted, unless there is a snapshot.
    pub(crate) fn of(process: &ProcessRecording, measure: Option<Measure>, range: &Range<u64>) -> Self {
        let header = MemoryHeader::of(process.start());
        let is_sampled = header.is_some_and(|header| header.sample_every.is_some());
        match measure {
            Some(measure) if !measure.is_memory() => Self::None,
            Some(Measure::AllocatedBytes | Measure::Allocations) if !is_sampled => Self::Counted,
            None if header.is_none() => Self::Counted,
            _ => Self::replayed(process, range),
        }
    }

    /// How all that there is of memory is counted, unless there is a snapshot.
    /// Where no memory recorder was at work, there is mostly nothing, and whether there is has to be seen first.
    pub(crate) fn of_everything(process: &ProcessRecording, range: &Range<u64>) -> Self {
        match MemoryHeader::of(process.start()) {
            Some(_) => Self::replayed(process, range),
            None => Self::Counted,
        }
    }

    pub(crate) fn replayed(process: &ProcessRecording, range: &Range<u64>) -> Self {
        let mut replay = Replay::new(process, None);
        if range.start > 0 {
            replay.wait_for_range();
        }
        Self::Replayed(Box::new(replay))
    }

    /// Whether events have to come in the order of time.
    pub(crate) fn needs_order(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// Returns whether this event is of memory that is counted here.
    #[inline]
    pub(crate) fn counts(&self, event: &Event<'_>) -> bool {
        matches!(self, Self::Counted | Self::Replayed(_)) && event.changes_heap()
    }

    /// Enters an event into the ledger, if there is one. `span` is where the thread is in the tree of spans.
    pub(crate) fn add(&mut self, (ticks, thread): (u64, u32), event: &Event<'_>, span: u32, is_inside: bool) {
        let Self::Replayed(replay) = self else { return };
        if is_inside && replay.is_waiting() {
            replay.begin_range(ticks);
        }
        match event {
            Event::Allocate(memory) if memory.stack == 0 => {
                replay.add(ticks, thread, &Event::Allocate(Memory { stack: SPAN | span, ..*memory }));
            }
            event => replay.add(ticks, thread, event),
        }
    }

    /// What the places of a device have taken, and the totals; those of all devices if none is said.
    pub(crate) fn finish(self, device: Option<i64>, last_ticks: u64) -> Vec<DeviceFigures> {
        let takes = |of: i64| device.is_none_or(|device| device == of);
        match self {
            Self::None | Self::Counted => Vec::new(),
            Self::Replayed(mut replay) => {
                if replay.is_waiting() {
                    replay.begin_range(last_ticks);
                }
                let all = replay.counted().into_iter().filter(|replayed| takes(replayed.device));
                all.map(|of| DeviceFigures { device: of.device, places: of.places, totals: of.totals }).collect()
            }
            Self::Kept(snapshot) => {
                let of = |device: i64| DeviceFigures {
                    device,
                    places: snapshot.rows(device).collect(),
                    totals: snapshot.totals(device),
                };
                snapshot.devices().into_iter().filter(|device| takes(*device)).map(of).collect()
            }
        }
    }
}

/// Whose memory is counted if it is not said: the processes' own, unless there is only that of devices.
pub(crate) fn default_device(collected: &[Collected]) -> i64 {
    first_device(collected.iter().flat_map(|process| process.used.iter().copied()))
}

impl GroupCosts {
    /// What these places have used of the process's own memory, or of a device's, together.
    pub(crate) fn of_rows(rows: &[UsageRow]) -> Self {
        let mut costs = DeviceCosts { device: EventKind::OWN_DEVICE, ..DeviceCosts::default() };
        for row in rows {
            let place = stackweave_heap::Place { stack: row.stack, ..Default::default() };
            let UsageRow { figures, leaked_blocks, leaked_bytes, .. } = *row;
            costs.add_figures(&PlaceFigures { place, figures, leaked_blocks, leaked_bytes });
        }
        Self { memory: vec![costs], ..Self::new(None, 0..u64::MAX) }
    }
}

impl DeviceCosts {
    pub(crate) fn of(&self, measure: Measure) -> Option<&StackCosts> {
        match measure {
            Measure::WallTime | Measure::Calls | Measure::Samples => None,
            Measure::AllocatedBytes | Measure::Allocations => Some(&self.allocated),
            Measure::LiveBytes => Some(&self.live),
            Measure::PeakBytes => Some(&self.peak),
            Measure::TemporaryBytes => Some(&self.temporary),
        }
    }

    /// Adds what a place has taken.
    pub(crate) fn add_figures(&mut self, known: &PlaceFigures) {
        let place = match known.place.stack {
            0 => Place::Span(0),
            stack if stack & SPAN != 0 => Place::Span(stack & !SPAN),
            stack => Place::Stack(stack),
        };
        let figures = &known.figures;
        for (costs, events, bytes) in [
            (&mut self.allocated, figures.allocations, figures.bytes),
            (&mut self.live, known.leaked_blocks, known.leaked_bytes),
            (&mut self.peak, figures.peak_blocks, figures.peak_bytes),
            (&mut self.temporary, figures.temporary, figures.temporary_bytes),
        ] {
            costs.add_all(place, StackCost { events, sum: i64::try_from(bytes).unwrap_or(i64::MAX) });
        }
    }
}
