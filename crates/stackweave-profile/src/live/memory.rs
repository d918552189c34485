//! The memory of a process that is still recording.
//!
//! Blocks are allocated on one thread and freed on another, so events must be processed in the order of time. The
//! recorder writes threads one after another: recent events wait until nothing earlier can follow. If an event is even
//! later, the figures are slightly wrong, and are recomputed when the recording has ended.

use stackweave_core::EventKind;
use stackweave_heap::Totals;
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::read::FollowOrder;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::{DeviceMeasure, FrameNamer, GroupCosts, Measure, Profile, ProfileBuilder, View};
use crate::live::native_names::NativeNames;
use crate::memory::{
    MemoryHeader, MemoryQuery, MemoryUsage, Replay, default_device, has_no_history, only_of_device, read_usage,
    usage_so_far,
};

/// The time of a point of the curve, which is the highest value in it.
const CURVE_STEP: u64 = 250_000_000;
const MAX_POINTS: usize = 1 << 20;
/// Events of this much time are processed at once, in nanoseconds.
const BATCH_NS: u64 = 100_000_000;
/// Native frames of this many stacks are named: those with the most memory.
const NAMED_STACKS: usize = 100;

/// The memory of a process according to the events so far.
#[derive(Debug)]
pub struct LiveMemory {
    order: FollowOrder,
    replay: Replay,
    has_kinds: bool,
    /// The time up to which events were processed, in nanoseconds.
    done_ns: u64,
    /// The curve of the heap; of the first device if only devices were recorded.
    curve: LiveCurve,
}

#[derive(Debug)]
struct LiveCurve {
    device: i64,
    points: Vec<u64>,
}

/// The memory usage of a process so far.
#[derive(Debug)]
pub struct MemoryNow {
    usage: MemoryUsage,
    /// The device of the figures: the heap, unless only devices were recorded.
    device: i64,
}

impl LiveMemory {
    /// Creates the figures before anything was read.
    pub fn new(process: &ProcessRecording) -> Self {
        let (order, replay) = (FollowOrder::default(), Replay::new(process, None));
        let curve = LiveCurve { device: i64::MAX, points: Vec::new() };
        Self { order, replay, has_kinds: false, done_ns: 0, curve }
    }

    /// Returns whether the process records memory, and whether it records nothing else.
    pub fn is_recorded(process: &ProcessRecording) -> (bool, bool) {
        let header = MemoryHeader::of(process.start());
        (header.is_some(), header.is_some_and(|header| !header.beside_calls))
    }

    /// Adds new events, except those later than `until` (in ticks). Calls `goes_on` between two parts, and stops if it
    /// returns false.
    pub fn update(
        &mut self,
        process: &ProcessRecording,
        until: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        self.has_kinds = Decoder::of(process.dictionary()).has_memory();
        if !self.has_kinds {
            return Ok(());
        }
        self.replay.update_kinds(process);
        let last = process.latest_ticks().unwrap_or(0);
        let end = if until >= last { u64::MAX } else { process.timeline().nanoseconds(until) };
        let last_ns = process.timeline().nanoseconds(last);
        while self.done_ns < end {
            let next = self.done_ns.saturating_add(BATCH_NS);
            self.done_ns = if next > last_ns { end } else { next.min(end) };
            self.add_events(process)?;
            if !goes_on() {
                break;
            }
        }
        // Later events may be earlier than the end of time.
        self.done_ns = self.done_ns.min(last_ns);
        Ok(())
    }

    fn add_events(&mut self, process: &ProcessRecording) -> Result<(), ReadError> {
        let Self { order, replay, done_ns, curve, .. } = self;
        order.visit_until(process, *done_ns, &mut |thread, event| {
            let Some(change) = replay.decode(event) else { return };
            let device = match change {
                Event::Allocate(memory) | Event::Free(memory) => memory.region.device(),
                Event::Keep { .. } => EventKind::OWN_DEVICE,
                _ => return replay.add(event.ticks, thread, &change),
            };
            let before = replay.live_bytes(device);
            replay.add(event.ticks, thread, &change);
            let live = replay.live_bytes(device);
            let is_allocated = matches!(change, Event::Allocate(_));
            let time_ns = process.timeline().nanoseconds(event.ticks);
            curve.add((device, is_allocated), time_ns, [before, live]);
        })
    }

    /// Returns the number of events that were read, of any kind.
    pub fn events_done(&self) -> u64 {
        self.order.events_done()
    }

    /// Returns how many blocks of events came too late to be counted in order.
    pub fn late(&self) -> u64 {
        self.order.late()
    }

    /// Returns the highest live memory in each quarter of a second since the process began to record: of the heap, or
    /// of the first device if only devices were recorded.
    pub fn curve(&self) -> &[u64] {
        &self.curve.points
    }

    /// Returns what could not be read.
    pub fn missing(&self) -> &Missing {
        self.order.missing()
    }

    /// Returns the memory usage. If a recorder keeps totals only, the last ones that it has written.
    pub fn now(&self, process: &ProcessRecording) -> Result<MemoryNow, ReadError> {
        let has_all = process.end().is_some() && self.events_done() == process.event_count();
        let is_off = has_all && self.order.late() > 0;
        let usage = if is_off || !self.has_kinds || has_no_history(process) {
            read_usage(process, &MemoryQuery::default(), &mut |_| {})?
        } else {
            usage_so_far(process, &self.replay)
        };
        Ok(MemoryNow::of(usage))
    }
}

impl LiveCurve {
    /// Adds an event of a device, with its live bytes before and after it. If bytes of a device with a smaller number
    /// appear, the curve is of that device.
    fn add(&mut self, (device, is_allocated): (i64, bool), time_ns: u64, [before, live]: [u64; 2]) {
        if device < self.device && is_allocated {
            *self = Self { device, points: Vec::new() };
        }
        if device != self.device {
            return;
        }
        let index = usize::try_from(time_ns / CURVE_STEP).unwrap_or(MAX_POINTS).min(MAX_POINTS);
        if self.points.len() <= index {
            self.points.resize(index, before);
            self.points.push(live);
        }
        self.points[index] = self.points[index].max(live);
    }
}

impl MemoryNow {
    fn of(mut usage: MemoryUsage) -> Self {
        let device = default_device(std::iter::once(&usage));
        if device != EventKind::OWN_DEVICE {
            usage.remarks.push(only_of_device(device));
        }
        Self { usage, device }
    }

    /// Returns the totals of the heap, or of the first device if only devices were recorded.
    pub fn totals(&self) -> Totals {
        self.usage.device(self.device).map(|own| own.totals).unwrap_or_default()
    }

    /// Returns remarks about the figures, one sentence each.
    pub fn remarks(&self) -> &[String] {
        &self.usage.remarks
    }

    /// Returns how many bytes one sampled allocation stands for. All figures are then estimates.
    pub fn sample_every(&self) -> Option<u64> {
        self.usage.sample_every()
    }

    /// Returns the call tree of allocations, by a measure of memory.
    pub fn profile(&self, process: &ProcessRecording, measure: Measure, known: &NativeNames) -> Profile {
        let rows = self.usage.device(self.device).map_or(&[][..], |own| &own.rows);
        let costs = GroupCosts::of_rows(rows, measure);
        let counted = DeviceMeasure { measure, device: EventKind::OWN_DEVICE };
        let mut builder = ProfileBuilder::new(View::all());
        builder.add_named(FrameNamer::with_known(process, known), false);
        builder.profile(&[(0, &costs)], counted)
    }

    /// Returns the frames of the stacks with the most memory, by their numbers in the recording: those that are seen
    /// first.
    pub fn heaviest_frames(&self, process: &ProcessRecording) -> Vec<u32> {
        let rows = self.usage.device(self.device).map_or(&[][..], |own| &own.rows);
        let mut rows: Vec<_> =
            rows.iter().map(|row| (row.figures.live_bytes.max(row.figures.peak_bytes), row)).collect();
        rows.sort_unstable_by_key(|(bytes, row)| (core::cmp::Reverse(*bytes), row.stack));
        rows.iter().take(NAMED_STACKS).flat_map(|(_, row)| process.dictionary().frames_of(row.stack)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_of_the_first_device_with_memory() {
        let mut curve = LiveCurve { device: i64::MAX, points: Vec::new() };
        let mut see = |device, is_taken, step, bytes| {
            curve.add((device, is_taken), step * CURVE_STEP, bytes);
            curve.points.clone()
        };
        assert_eq!(see(-1, false, 0, [0, 0]), [0; 0], "no memory was allocated");
        assert_eq!(see(1, true, 1, [0, 5]), [0, 5]);
        assert_eq!(see(2, true, 1, [0, 100]), [0, 5]);
        assert_eq!(see(0, true, 2, [0, 7]), [0, 0, 7]);
        assert_eq!(see(0, false, 4, [7, 3]), [0, 0, 7, 7, 3]);
        assert_eq!(see(1, true, 9, [5, 10]), [0, 0, 7, 7, 3]);
    }
}
