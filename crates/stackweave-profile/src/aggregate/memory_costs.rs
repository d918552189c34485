//! Allocated memory by stack and by span, for the measures of memory.

use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Totals};
use stackweave_recording::events::{Event, MemoryEvent};
use stackweave_recording::{ProcessRecording, ReadError};

use crate::aggregate::collector::{GroupCosts, ProcessCosts};
use crate::aggregate::measure::Measure;
use crate::aggregate::stack_costs::{StackCost, StackCosts, StackKey};
use crate::memory::{CallSiteFigures, MemoryHeader, Replay, Snapshot, UsageRow, first_device};

/// How the costs of memory are computed.
#[derive(Debug)]
pub(crate) enum MemoryCosts {
    /// They are not requested.
    None,
    /// Allocations are counted as they are read, in any order.
    Counted,
    /// Events go through a ledger, in the order of time.
    Replayed(Box<Replay>),
    /// They were counted while the program ran.
    Kept(Box<Snapshot>),
}

/// The memory of a device by measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceCosts {
    pub(crate) device: i64,
    pub(crate) allocated: StackCosts,
    pub(crate) live: StackCosts,
    pub(crate) peak: StackCosts,
    pub(crate) temporary: StackCosts,
}

/// This bit in the number of a stack marks a node of the tree of spans.
const SPAN: u32 = 1 << 31;

impl MemoryCosts {
    /// Returns how the requested measure is counted, unless there is a snapshot.
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

    /// Returns how all measures of memory are counted, unless there is a snapshot. Without a memory recorder, there are
    /// usually no memory events, and a first pass finds out whether there are any.
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

    /// Returns whether events are needed in the order of time.
    pub(crate) fn needs_order(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// Returns whether this event is about memory that is counted here.
    #[inline]
    pub(crate) fn counts(&self, event: &Event<'_>) -> bool {
        matches!(self, Self::Counted | Self::Replayed(_)) && event.changes_heap()
    }

    /// Adds an event to the ledger, if there is one. `span` is the thread's node in the tree of spans.
    pub(crate) fn add(&mut self, (ticks, thread): (u64, u32), event: &Event<'_>, span: u32, is_inside: bool) {
        let Self::Replayed(replay) = self else { return };
        if is_inside && replay.is_waiting() {
            replay.begin_range(ticks);
        }
        match event {
            Event::Allocate(memory) if memory.stack == 0 => {
                replay.add(ticks, thread, &Event::Allocate(MemoryEvent { stack: SPAN | span, ..*memory }));
            }
            event => replay.add(ticks, thread, event),
        }
    }

    /// Calls `site` for each call site of each device, and returns the totals of devices.
    pub(crate) fn finish(
        self,
        process: &ProcessRecording,
        last_ticks: u64,
        site: &mut dyn FnMut(i64, &CallSiteFigures),
    ) -> Result<Vec<(i64, Totals)>, ReadError> {
        match self {
            Self::None | Self::Counted => Ok(Vec::new()),
            Self::Replayed(mut replay) => {
                if replay.is_waiting() {
                    replay.begin_range(last_ticks);
                }
                let devices = replay.counted().into_iter();
                Ok(devices
                    .inspect(|of| of.sites.iter().for_each(|known| site(of.device, known)))
                    .map(|of| (of.device, of.totals))
                    .collect())
            }
            Self::Kept(snapshot) => {
                snapshot.visit_sites(process, site)?;
                Ok(snapshot.totals().to_vec())
            }
        }
    }
}

/// Returns the default device: the heap, unless only devices were recorded.
pub(crate) fn default_device(collected: &[ProcessCosts]) -> i64 {
    first_device(collected.iter().flat_map(|process| process.used.iter().copied()))
}

impl GroupCosts {
    /// Returns the memory of these rows together, in a measure.
    pub(crate) fn of_rows(rows: &[UsageRow], measure: Measure) -> Self {
        let mut costs = Self::new(None, 0..u64::MAX);
        for row in rows {
            costs.add_row(row, &[measure]);
        }
        costs.seal();
        costs
    }

    /// Adds the memory of a row, in some measures.
    pub(crate) fn add_row(&mut self, row: &UsageRow, measures: &[Measure]) {
        let site = CallSite { stack: row.stack, ..CallSite::default() };
        let UsageRow { figures, leaked_blocks, leaked_bytes, .. } = *row;
        let known = CallSiteFigures { site, figures, leaked_blocks, leaked_bytes };
        let costs = self.of_device(EventKind::OWN_DEVICE);
        for measure in measures {
            costs.add_figures(&known, Some(*measure));
        }
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

    pub(crate) fn merge(&mut self) {
        let Self { allocated, live, peak, temporary, .. } = self;
        [allocated, live, peak, temporary].into_iter().for_each(StackCosts::merge);
    }

    /// Adds the figures of a call site: in all measures, or in one.
    pub(crate) fn add_figures(&mut self, known: &CallSiteFigures, only: Option<Measure>) {
        let key = match known.site.stack {
            0 => StackKey::Span(0),
            stack if stack & SPAN != 0 => StackKey::Span(stack & !SPAN),
            stack => StackKey::Stack(stack),
        };
        let figures = &known.figures;
        let only = if only == Some(Measure::Allocations) { Some(Measure::AllocatedBytes) } else { only };
        for (measure, costs, events, bytes) in [
            (Measure::AllocatedBytes, &mut self.allocated, figures.allocations, figures.bytes),
            (Measure::LiveBytes, &mut self.live, known.leaked_blocks, known.leaked_bytes),
            (Measure::PeakBytes, &mut self.peak, figures.peak_blocks, figures.peak_bytes),
            (Measure::TemporaryBytes, &mut self.temporary, figures.temporary, figures.temporary_bytes),
        ] {
            if only.is_none_or(|only| only == measure) {
                costs.add_all(key, StackCost { events, sum: i64::try_from(bytes).unwrap_or(i64::MAX) });
            }
        }
    }
}
