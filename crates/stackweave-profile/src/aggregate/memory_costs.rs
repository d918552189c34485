//! What memory was taken, by stack and by span, for the measures of memory.

use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::Event;
use stackweave_store::ledger::Totals;

use crate::aggregate::collector::GroupCosts;
use crate::aggregate::measure::Measure;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::stack_costs::{Place, StackCost};
use crate::memory::{MemoryEvent, MemoryHeader, MemoryKinds, PlaceFigures, Replay, Snapshot, Taken, UsageRow};

/// Where the costs of memory come from.
#[derive(Debug)]
pub(crate) enum MemoryCosts {
    /// Nobody asks for them.
    None,
    /// Allocations are counted as they stream by, in any order.
    Counted(MemoryKinds),
    /// They are told to a ledger, in the order of time.
    Replayed(Box<Replay>),
    /// They were counted while the program ran.
    Kept(Box<Snapshot>),
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
            Some(Measure::AllocatedBytes | Measure::Allocations) if !is_sampled => Self::counted(process),
            None if header.is_none() => Self::counted(process),
            _ => {
                let mut replay = Replay::new(process, None);
                if range.start > 0 {
                    replay.wait_for_range();
                }
                Self::Replayed(Box::new(replay))
            }
        }
    }

    fn counted(process: &ProcessRecording) -> Self {
        Self::Counted(MemoryKinds::of(process.dictionary()))
    }

    /// Whether events have to come in the order of time.
    pub(crate) fn needs_order(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// Whether this event is of memory, and what it says, if that is counted here.
    pub(crate) fn see(&self, event: &Event<'_>) -> Option<MemoryEvent> {
        match self {
            Self::Counted(kinds) => kinds.see(event),
            Self::Replayed(replay) => replay.see(event),
            Self::None | Self::Kept(_) => None,
        }
    }

    /// Tells the ledger of an event, if there is one. `span` is where the thread is in the tree of spans.
    pub(crate) fn tell(&mut self, (ticks, thread): (u64, u32), event: MemoryEvent, span: u32, is_inside: bool) {
        let Self::Replayed(replay) = self else { return };
        if is_inside && replay.is_waiting() {
            replay.begin_range(ticks);
        }
        let at = |taken: Taken| match taken.stack {
            0 => Taken { stack: SPAN | span, ..taken },
            _ => taken,
        };
        let event = match event {
            MemoryEvent::Allocate(taken) => MemoryEvent::Allocate(at(taken)),
            MemoryEvent::Map(taken) => MemoryEvent::Map(at(taken)),
            other => other,
        };
        replay.tell(ticks, thread, event);
    }

    /// What the places of a device have taken, and the totals.
    pub(crate) fn finish(self, options: &AggregateOptions, last_ticks: u64) -> (Vec<PlaceFigures>, Totals) {
        let device = options.memory_device();
        match self {
            Self::None | Self::Counted(_) => (Vec::new(), Totals::default()),
            Self::Replayed(mut replay) => {
                if replay.is_waiting() {
                    replay.begin_range(last_ticks);
                }
                let found = replay.finish().into_iter().find(|replayed| replayed.device == device);
                found.map_or_else(Default::default, |replayed| (replayed.places, replayed.totals))
            }
            Self::Kept(snapshot) => {
                let place = |(place, figures): (_, stackweave_store::ledger::Figures)| PlaceFigures {
                    place,
                    figures,
                    leaked_blocks: figures.live_blocks,
                    leaked_bytes: figures.live_bytes,
                };
                (snapshot.rows(device).map(place).collect(), snapshot.totals(device))
            }
        }
    }
}

impl AggregateOptions {
    /// The device whose memory is counted.
    pub(crate) fn memory_device(&self) -> i64 {
        self.device.unwrap_or(EventKind::OWN_DEVICE)
    }
}

impl GroupCosts {
    /// What these places have used, together.
    pub(crate) fn of_rows(rows: &[UsageRow]) -> Self {
        let mut costs = Self::new(None, 0..u64::MAX);
        for row in rows {
            let place = stackweave_store::ledger::Place { stack: row.stack, ..Default::default() };
            let UsageRow { figures, leaked_blocks, leaked_bytes, .. } = *row;
            costs.add_figures(&PlaceFigures { place, figures, leaked_blocks, leaked_bytes });
        }
        costs
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
