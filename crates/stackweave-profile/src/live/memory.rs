//! Memory of a process that records, while its events come in.
//!
//! Blocks are taken on one thread and given back on another, so events have to come in the order of time. The recorder writes
//! threads one after the other: what happened in the last moments waits until nothing earlier can come. If something comes
//! later than that all the same, the figures are a little off, and are made anew when the recording has ended.

use stackweave_core::EventKind;
use stackweave_heap::Totals;
use stackweave_recording::events::{Decoder, Event};
use stackweave_recording::read::FollowOrder;
use stackweave_recording::{Missing, ProcessRecording, ReadError};

use crate::aggregate::{Counted, GroupCosts, Measure, Profile, RecordedNames};
use crate::live::names::NativeNames;
use crate::memory::{
    MemoryHeader, MemoryQuery, MemoryUsage, Replay, default_device, has_no_history, only_of_device, read_usage,
    usage_so_far,
};

/// A point of the curve is the highest of so many nanoseconds.
const CURVE_STEP: u64 = 250_000_000;
const MOST_POINTS: usize = 1 << 20;
/// Events are taken in for so long a time at once, in nanoseconds.
const PIECE: u64 = 100_000_000;
/// Of so many stacks the native frames are worth a name: those that have most.
const NAMED_STACKS: usize = 100;

/// What the memory of a process is used for, as far as its events are known.
#[derive(Debug)]
pub struct LiveMemory {
    order: FollowOrder,
    replay: Replay,
    has_kinds: bool,
    /// Up to here events were taken in, in nanoseconds.
    done_ns: u64,
    /// Of the process's own memory; of the first device's where there is nothing else.
    curve: Curve,
}

#[derive(Debug)]
struct Curve {
    device: i64,
    points: Vec<u64>,
}

/// How much memory a process has used so far.
#[derive(Debug)]
pub struct MemoryNow {
    usage: MemoryUsage,
    /// Whose memory is told of: the process's own, unless there is only that of devices.
    device: i64,
}

impl LiveMemory {
    /// That of a process of which nothing was read.
    pub fn new(process: &ProcessRecording) -> Self {
        let (order, replay) = (FollowOrder::default(), Replay::new(process, None));
        let curve = Curve { device: i64::MAX, points: Vec::new() };
        Self { order, replay, has_kinds: false, done_ns: 0, curve }
    }

    /// Whether a memory recorder is at work in the process; and whether it is the only one there.
    pub fn is_recorded(process: &ProcessRecording) -> (bool, bool) {
        let header = MemoryHeader::of(process.start());
        (header.is_some(), header.is_some_and(|header| !header.beside_calls))
    }

    /// Takes in the events that are new, those later than `until` (in ticks) not yet. Between two parts it is asked whether it
    /// goes on.
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
        self.replay.learn_kinds(process);
        let last = process.latest_ticks().unwrap_or(0);
        let end = if until >= last { u64::MAX } else { process.timeline().nanoseconds(until) };
        let last_ns = process.timeline().nanoseconds(last);
        while self.done_ns < end {
            let next = self.done_ns.saturating_add(PIECE);
            self.done_ns = if next > last_ns { end } else { next.min(end) };
            self.take_in(process)?;
            if !goes_on() {
                break;
            }
        }
        // What comes next may be earlier than the end of time.
        self.done_ns = self.done_ns.min(last_ns);
        Ok(())
    }

    fn take_in(&mut self, process: &ProcessRecording) -> Result<(), ReadError> {
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

    /// How many events were gone through, of whatever kind.
    pub fn events_done(&self) -> u64 {
        self.order.events_done()
    }

    /// How many blocks of events came too late to be counted in their order.
    pub fn late(&self) -> u64 {
        self.order.late()
    }

    /// The highest that was live in each quarter of a second since the process began to record: of its own memory, or of the first
    /// device's where there is nothing else.
    pub fn curve(&self) -> &[u64] {
        &self.curve.points
    }

    /// What could not be read.
    pub fn missing(&self) -> &Missing {
        self.order.missing()
    }

    /// How much memory was used. Where a recorder keeps sums only, those that it has written last.
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

impl Curve {
    /// Adds an event of a device that had so many bytes before it, and has so many now. Where the first of a smaller device are
    /// allocated, the curve is of that.
    fn add(&mut self, (device, is_allocated): (i64, bool), time_ns: u64, [before, live]: [u64; 2]) {
        if device < self.device && is_allocated {
            *self = Self { device, points: Vec::new() };
        }
        if device != self.device {
            return;
        }
        let place = usize::try_from(time_ns / CURVE_STEP).unwrap_or(MOST_POINTS).min(MOST_POINTS);
        if self.points.len() <= place {
            self.points.resize(place, before);
            self.points.push(live);
        }
        self.points[place] = self.points[place].max(live);
    }
}

impl MemoryNow {
    fn of(mut usage: MemoryUsage) -> Self {
        let device = default_device(std::slice::from_ref(&usage));
        if device != EventKind::OWN_DEVICE {
            usage.remarks.push(only_of_device(device));
        }
        Self { usage, device }
    }

    /// Sums of the process's own memory, or of the first device's where there is nothing else.
    pub fn totals(&self) -> Totals {
        self.usage.device(self.device).map(|own| own.totals).unwrap_or_default()
    }

    /// What has to be known about the figures, a sentence each.
    pub fn remarks(&self) -> &[String] {
        &self.usage.remarks
    }

    /// How many bytes one sampled allocation stands for. All figures are estimates then.
    pub fn sample_every(&self) -> Option<u64> {
        self.usage.sample_every()
    }

    /// Who has taken it, by a measure of memory.
    pub fn profile(&self, process: &ProcessRecording, measure: Measure, known: &NativeNames) -> Profile {
        let rows = self.usage.device(self.device).map_or(&[][..], |own| &own.rows);
        let costs = GroupCosts::of_rows(rows);
        let counted = Counted { measure, device: EventKind::OWN_DEVICE };
        let frames = costs.frames(counted, process.dictionary());
        let mut names = RecordedNames::resolve(process, &frames, None);
        known.put_into(&mut names, &frames);
        costs.profile(counted, process, &names, false)
    }

    /// The frames of the stacks that have most, by their numbers in the recording: those that are seen first.
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
    fn the_curve_is_of_the_first_device_that_is_used() {
        let mut curve = Curve { device: i64::MAX, points: Vec::new() };
        let mut see = |device, is_taken, step, bytes| {
            curve.add((device, is_taken), step * CURVE_STEP, bytes);
            curve.points.clone()
        };
        assert_eq!(see(-1, false, 0, [0, 0]), [0; 0], "nothing of it was taken");
        assert_eq!(see(1, true, 1, [0, 5]), [0, 5]);
        assert_eq!(see(2, true, 1, [0, 100]), [0, 5]);
        assert_eq!(see(0, true, 2, [0, 7]), [0, 0, 7]);
        assert_eq!(see(0, false, 4, [7, 3]), [0, 0, 7, 7, 3]);
        assert_eq!(see(1, true, 9, [5, 10]), [0, 0, 7, 7, 3]);
    }
}
