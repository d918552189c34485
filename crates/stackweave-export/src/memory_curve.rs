//! The number of live bytes over time, as a curve for viewers.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_heap::{Scale, Weight};
use stackweave_profile::memory::{LiveChanges, LiveDevices, LiveRange, MemoryHeader};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Region;

use crate::activity::{EventContent, ThreadEvent};

/// The maximum number of points: with more changes, each interval of time keeps its highest and its last value.
const MAX_POINTS: u64 = 50_000;

/// The live memory of a process, with a curve for each device. Events must be added in the order of time.
#[derive(Debug)]
pub(crate) struct MemoryCurves {
    live: LiveDevices<()>,
    changes: LiveChanges<()>,
    scale: Scale,
    curves: BTreeMap<i64, Curve>,
    /// The length of the intervals; 0 if every change has its own point.
    pub(crate) bucket_ns: u64,
}

#[derive(Debug, Default)]
struct Curve {
    /// The sum of the weights of live memory.
    sum: Weight,
    /// The interval whose points are not returned yet.
    bucket: u64,
    highest: Option<MemoryPoint>,
    last: Option<MemoryPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPoint {
    /// The device that the memory is on.
    pub(crate) device: i64,
    pub(crate) time: u64,
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
}

impl MemoryPoint {
    /// Returns the name of the track, for `bytes` or `blocks`.
    pub(crate) fn track(&self, of: &str) -> String {
        match self.device {
            EventKind::OWN_DEVICE => format!("allocated {of}"),
            device => format!("allocated {of} on device {device}"),
        }
    }
}

/// Points to draw, in the order of time.
pub(crate) type Points = [Option<MemoryPoint>; 2];

impl MemoryCurves {
    pub(crate) fn of(process: &ProcessRecording) -> Self {
        let duration = process.time_range().map_or(0, |range| range.end - range.start);
        Self::new(process.event_count(), duration, MemoryHeader::scale_of(process.start()))
    }

    /// Creates curves for a number of changes in a time.
    fn new(changes: u64, duration_ns: u64, scale: Scale) -> Self {
        let bucket_ns = if changes > MAX_POINTS { (duration_ns / (MAX_POINTS / 2)).max(1) } else { 0 };
        let (live, changes, curves) = Default::default();
        Self { live, changes, scale, curves, bucket_ns }
    }

    /// Adds an event, if it is about memory.
    pub(crate) fn add(&mut self, event: &ThreadEvent<'_>) -> Points {
        let changes = &mut self.changes;
        match &event.content {
            EventContent::Allocate { memory, .. } => self.live.allocate(memory, (), changes),
            EventContent::Free { memory, .. } => self.live.free(event.thread, memory, changes),
            EventContent::Keep { address } => self.live.keep(event.thread, *address, changes),
            _ => return [None, None],
        }
        self.change(event.time)
    }

    fn change(&mut self, time: u64) -> Points {
        let counted = |range: &&LiveRange<()>| !matches!(range.region, Region::Segment(_));
        let weight = |range: &LiveRange<()>| self.scale.weight_of_part(range.whole, range.size);
        let mut changed = None;
        for range in self.changes.gone.iter().filter(counted) {
            self.curves.entry(range.region.device()).or_default().subtract(weight(range));
            changed = Some(range.region.device());
        }
        for range in self.changes.come.iter().filter(counted) {
            self.curves.entry(range.region.device()).or_default().add(weight(range));
            changed = Some(range.region.device());
        }
        self.changes.clear();
        let Some(device) = changed else { return [None, None] };
        let curve = self.curves.entry(device).or_default();
        let [bytes, blocks] = [curve.sum.bytes, curve.sum.blocks].map(|sum| self.scale.whole(sum));
        curve.changed(MemoryPoint { device, time, bytes, blocks }, self.bucket_ns)
    }

    /// Returns the remaining points.
    pub(crate) fn rest(&mut self) -> Vec<MemoryPoint> {
        self.curves.values_mut().flat_map(Curve::rest).flatten().collect()
    }
}

impl Curve {
    fn add(&mut self, weight: Weight) {
        self.sum.bytes = self.sum.bytes.saturating_add(weight.bytes);
        self.sum.blocks = self.sum.blocks.saturating_add(weight.blocks);
    }

    fn subtract(&mut self, weight: Weight) {
        self.sum.bytes = self.sum.bytes.saturating_sub(weight.bytes);
        self.sum.blocks = self.sum.blocks.saturating_sub(weight.blocks);
    }

    fn changed(&mut self, point: MemoryPoint, bucket_ns: u64) -> Points {
        if bucket_ns == 0 {
            return [Some(point), None];
        }
        let bucket = point.time / bucket_ns;
        let points = if bucket == self.bucket { [None, None] } else { self.rest() };
        self.bucket = bucket;
        if self.highest.is_none_or(|highest| highest.bytes < point.bytes) {
            self.highest = Some(point);
        }
        self.last = Some(point);
        points
    }

    fn rest(&mut self) -> Points {
        let (highest, last) = (self.highest.take(), self.last.take());
        if highest == last { [last, None] } else { [highest, last] }
    }
}

#[cfg(test)]
mod tests {
    use stackweave_heap::{CallSite, Ledger, LedgerOptions};
    use stackweave_recording::events::MemoryEvent;
    use stackweave_testkit::random::Random;

    use super::*;
    use crate::activity::Details;

    const OWN: Region = Region::Block(-1);

    fn allocate(curves: &mut MemoryCurves, time: u64, (address, size): (u64, u64), region: Region) -> Points {
        let (memory, allocator, details) =
            (MemoryEvent::new(region, address, size), "malloc".into(), Details::default());
        let content = EventContent::Allocate { memory, tag: 0, allocator, details };
        curves.add(&ThreadEvent { process: 0, thread: 1, time, around: &[], content })
    }

    fn free(curves: &mut MemoryCurves, time: u64, (address, size): (u64, u64), region: Region) -> Points {
        let content = EventContent::Free { memory: MemoryEvent::new(region, address, size), name: "free".into() };
        curves.add(&ThreadEvent { process: 0, thread: 1, time, around: &[], content })
    }

    fn keep(curves: &mut MemoryCurves, time: u64, address: u64) -> Points {
        curves.add(&ThreadEvent { process: 0, thread: 1, time, around: &[], content: EventContent::Keep { address } })
    }

    /// Random events at few addresses, so that memory is replaced, unmapped in parts, and kept after other events.
    #[test]
    fn every_point_has_the_figures_of_the_ledger() {
        for seed in 0..40 {
            let (mut random, sample_every) = (Random::new(seed), (seed % 2 == 1).then_some(700));
            let mut curves = MemoryCurves::new(10, 1_000, Scale::new(sample_every));
            let mut ledger = Ledger::new(LedgerOptions { sample_every, ..LedgerOptions::default() });
            let site = ledger.site(CallSite::default());
            for time in 1..500 {
                let (address, size) = (0x1000 * random.below(12) as u64, 1 + random.below(0x4000) as u64);
                let [point, _] = match random.below(6) {
                    0 | 1 => {
                        ledger.allocate(time, 1, address, size, site);
                        allocate(&mut curves, time, (address, size), OWN)
                    }
                    2 => {
                        ledger.free(time, 1, address);
                        free(&mut curves, time, (address, 0), OWN)
                    }
                    3 => {
                        ledger.map(time, 1, address, size, site);
                        allocate(&mut curves, time, (address, size), Region::Mapping)
                    }
                    4 => {
                        ledger.unmap(time, 1, address, size);
                        free(&mut curves, time, (address, size), Region::Mapping)
                    }
                    _ => {
                        ledger.keep(1, address);
                        keep(&mut curves, time, address)
                    }
                };
                let live = ledger.totals().figures;
                if let Some(MemoryPoint { bytes, blocks, .. }) = point {
                    assert_eq!((bytes, blocks), (live.live_bytes, live.live_blocks), "seed {seed}, event {time}");
                }
            }
        }
    }

    fn drawn(points: impl IntoIterator<Item = Points>) -> Vec<Option<(u64, u64, u64)>> {
        points.into_iter().map(|[point, _]| point.map(|point| (point.time, point.bytes, point.blocks))).collect()
    }

    #[test]
    fn few_changes_all_have_points() {
        let mut curve = MemoryCurves::new(10, 1_000, Scale::default());
        let points = [
            allocate(&mut curve, 1, (0x10, 5), OWN),
            allocate(&mut curve, 2, (0x20, 7), OWN),
            allocate(&mut curve, 3, (0x10, 1), OWN),
            free(&mut curve, 4, (0x20, 0), OWN),
            free(&mut curve, 5, (0x20, 0), OWN),
        ];
        assert_eq!(drawn(points), [Some((1, 5, 1)), Some((2, 12, 2)), Some((3, 8, 2)), Some((4, 1, 1)), None]);
        assert!(curve.rest().is_empty());
    }

    #[test]
    fn mappings_count_and_failed_frees_are_undone() {
        let mut curve = MemoryCurves::new(10, 1_000, Scale::default());
        let points = [
            allocate(&mut curve, 1, (0x1000, 0x3000), Region::Mapping),
            free(&mut curve, 2, (0x2000, 0x1000), Region::Mapping),
            keep(&mut curve, 3, 0x2000),
            allocate(&mut curve, 4, (0x1000, 0x1000), Region::Segment(0)),
            allocate(&mut curve, 5, (0x1000, 8), Region::Block(0)),
        ];
        let expected = [Some((1, 0x3000, 1)), Some((2, 0x2000, 2)), Some((3, 0x3000, 1)), None, Some((5, 8, 1))];
        assert_eq!(drawn(points), expected);
    }

    #[test]
    fn many_changes_keep_the_highest_and_the_last_value() {
        let mut curve = MemoryCurves::new(1_000_000, 1_000_000, Scale::default());
        let mut points = Vec::new();
        for step in 0..500_000_u64 {
            let size = if step == 77_777 { 1_000 } else { 1 };
            points.extend(allocate(&mut curve, 2 * step, (step + 1, size), OWN).into_iter().flatten());
            points.extend(free(&mut curve, 2 * step + 1, (step + 1, 0), OWN).into_iter().flatten());
        }
        points.extend(curve.rest());
        assert!(points.len() as u64 <= MAX_POINTS + 2, "{}", points.len());
        assert!(points.is_sorted_by_key(|point| point.time));
        assert_eq!(points.iter().map(|point| point.bytes).max(), Some(1_000));
        assert_eq!(points.last(), Some(&MemoryPoint { device: -1, time: 999_999, bytes: 0, blocks: 0 }));
    }
}
