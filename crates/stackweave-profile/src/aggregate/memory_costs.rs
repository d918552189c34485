//! Allocated memory by stack and by span, for the measures of memory.

use std::ops::Range;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Totals};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Event, MemoryEvent};

use crate::aggregate::collector::{GroupCosts, ProcessCosts};
use crate::aggregate::measure::Measure;
use crate::aggregate::stack_costs::{StackCost, StackCosts, StackKey};
use crate::memory::{
    CallSiteFigures, DeviceSums, MemoryHeader, MemoryTimeline, RecordedSnapshot, Replay, ReplayCurve, Replayed,
    UsageRow, first_device,
};

/// The way in which the costs of memory are computed.
#[derive(Debug)]
pub(crate) enum MemoryCosts {
    /// They are not requested.
    None,
    /// Allocations are counted as they are read, in any order.
    Counted,
    /// Events go through a ledger, in the order of time.
    Replayed(Box<Replay>, ReplayCurve),
    /// They were counted while the program ran.
    Kept(Arc<RecordedSnapshot>),
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

/// The memory of a process by device.
#[derive(Debug, Default)]
pub(crate) struct CountedMemory {
    pub(crate) devices: Vec<DeviceSums>,
    /// The memory over time, if it was replayed.
    pub(crate) timeline: Option<MemoryTimeline>,
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

    pub(crate) fn replayed(process: &ProcessRecording, range: &Range<u64>) -> Self {
        let mut replay = Replay::new(process, None);
        if range.start > 0 {
            replay.wait_for_range();
        }
        Self::Replayed(Box::new(replay), ReplayCurve::of(process, range))
    }

    /// Returns whether events are needed in the order of time.
    pub(crate) fn needs_order(&self) -> bool {
        matches!(self, Self::Replayed(..))
    }

    /// Returns whether this event is about memory that is counted here.
    #[inline]
    pub(crate) fn counts(&self, event: &Event<'_>) -> bool {
        matches!(self, Self::Counted | Self::Replayed(..)) && event.changes_heap()
    }

    /// Adds an event to the ledger, if there is one. `span` is the thread's node in the tree of spans.
    pub(crate) fn add(
        &mut self,
        (ticks, time): (u64, u64),
        thread: u32,
        event: &Event<'_>,
        (span, is_inside): (u32, bool),
    ) {
        let Self::Replayed(replay, curve) = self else { return };
        if is_inside && replay.is_waiting() {
            replay.begin_range(ticks);
        }
        match event {
            Event::Allocate(memory) if memory.stack == 0 => {
                replay.add(ticks, thread, &Event::Allocate(MemoryEvent { stack: SPAN | span, ..*memory }));
            }
            event => replay.add(ticks, thread, event),
        }
        curve.add(time, replay.live_bytes(EventKind::OWN_DEVICE));
    }

    /// Returns the totals of a device, and calls `site` for each of its call sites; of all devices without a selected
    /// one.
    pub(crate) fn finish(
        self,
        device: Option<i64>,
        last_ticks: u64,
        site: &mut dyn FnMut(&mut DeviceSums, &CallSiteFigures),
    ) -> CountedMemory {
        let takes = |of: i64| device.is_none_or(|device| device == of);
        match self {
            Self::None | Self::Counted => CountedMemory::default(),
            Self::Replayed(mut replay, curve) => {
                if replay.is_waiting() {
                    replay.begin_range(last_ticks);
                }
                let live = replay.live_bytes(EventKind::OWN_DEVICE);
                let counted = replay.counted().into_iter().filter(|of| takes(of.device));
                let devices = counted.map(|of| {
                    let Replayed { device, totals, is_peak_at_start, sites, sizes } = of;
                    let mut sums = DeviceSums { device, totals, is_peak_at_start, sizes, ..DeviceSums::default() };
                    for known in &sites {
                        site(&mut sums, known);
                    }
                    sums
                });
                CountedMemory { devices: devices.collect(), timeline: Some(curve.finish(live)) }
            }
            Self::Kept(snapshot) => {
                let sums = |&(device, totals): &(i64, Totals)| {
                    let sizes = snapshot.sizes(device).collect();
                    DeviceSums { device, totals, sizes, ..DeviceSums::default() }
                };
                let of_devices = snapshot.totals().iter().filter(|(device, _)| takes(*device));
                let mut devices: Vec<DeviceSums> = of_devices.map(sums).collect();
                snapshot.visit_sites(&mut |device, known| {
                    if let Some(sums) = devices.iter_mut().find(|sums| sums.device == device) {
                        site(sums, known);
                    }
                });
                CountedMemory { devices, timeline: None }
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

    pub(crate) fn seal(&mut self) {
        let Self { allocated, live, peak, temporary, .. } = self;
        [allocated, live, peak, temporary].into_iter().for_each(StackCosts::seal);
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
