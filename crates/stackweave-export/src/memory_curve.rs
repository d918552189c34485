//! The number of live bytes over time, as a curve for viewers.

use std::collections::BTreeMap;

use stackweave_core::EventKind;
use stackweave_heap::{CallSite, Ledger, LedgerOptions};
use stackweave_profile::memory::MemoryHeader;
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Region;

use crate::activity::{EventContent, ThreadEvent};

/// The maximum number of points: with more changes, each interval of time keeps its highest and its last value.
const MAX_POINTS: u64 = 50_000;

/// The live memory of a process, with a curve for each device. Events must be added in the order of time.
#[derive(Debug)]
pub(crate) struct MemoryCurves {
    options: LedgerOptions,
    curves: BTreeMap<i64, Curve>,
    /// The length of the intervals; 0 if every change has its own point.
    pub(crate) bucket_ns: u64,
}

#[derive(Debug)]
struct Curve {
    ledger: Ledger,
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
        let sample_every = MemoryHeader::of(process.start()).and_then(|header| header.sample_every);
        Self::new(process.event_count(), duration, sample_every)
    }

    /// Creates curves for a number of changes in a time.
    fn new(changes: u64, duration_ns: u64, sample_every: Option<u64>) -> Self {
        let bucket_ns = if changes > MAX_POINTS { (duration_ns / (MAX_POINTS / 2)).max(1) } else { 0 };
        Self { options: LedgerOptions { temporary: 0, sample_every }, curves: BTreeMap::new(), bucket_ns }
    }

    /// Adds an event, if it is about memory.
    pub(crate) fn add(&mut self, event: &ThreadEvent<'_>) -> Points {
        let device = match &event.content {
            EventContent::Allocate { memory, .. } | EventContent::Free { memory, .. } => match memory.region {
                Region::Segment(_) => return [None, None],
                region => region.device(),
            },
            EventContent::Keep { .. } => EventKind::OWN_DEVICE,
            _ => return [None, None],
        };
        let curve = self.curves.entry(device).or_insert_with(|| Curve::new(self.options));
        let before = curve.live();
        curve.apply(event);
        let now @ (bytes, blocks) = curve.live();
        if now == before {
            return [None, None];
        }
        curve.changed(MemoryPoint { device, time: event.time, bytes, blocks }, self.bucket_ns)
    }

    /// Returns the remaining points.
    pub(crate) fn rest(&mut self) -> Vec<MemoryPoint> {
        self.curves.values_mut().flat_map(Curve::rest).flatten().collect()
    }
}

impl Curve {
    fn new(options: LedgerOptions) -> Self {
        Self { ledger: Ledger::new(options), bucket: 0, highest: None, last: None }
    }

    /// Returns the live bytes and blocks.
    fn live(&self) -> (u64, u64) {
        (self.ledger.live_bytes(), self.ledger.live_blocks())
    }

    fn apply(&mut self, event: &ThreadEvent<'_>) {
        let (ledger, time, thread) = (&mut self.ledger, event.time, event.thread);
        match &event.content {
            EventContent::Allocate { memory, .. } => {
                let site = ledger.site(CallSite::default());
                let allocate = if memory.region.is_range() { Ledger::map } else { Ledger::allocate };
                allocate(ledger, time, thread, memory.address, memory.size, site);
            }
            EventContent::Free { memory, .. } if memory.region.is_range() => {
                ledger.unmap(time, thread, memory.address, memory.size);
            }
            EventContent::Free { memory, .. } => ledger.free(time, thread, memory.address),
            EventContent::Keep { address } => ledger.keep(thread, *address),
            _ => {}
        }
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
    use stackweave_recording::events::MemoryEvent;

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

    fn drawn(points: impl IntoIterator<Item = Points>) -> Vec<Option<(u64, u64, u64)>> {
        points.into_iter().map(|[point, _]| point.map(|point| (point.time, point.bytes, point.blocks))).collect()
    }

    #[test]
    fn few_changes_all_have_points() {
        let mut curve = MemoryCurves::new(10, 1_000, None);
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
        let mut curve = MemoryCurves::new(10, 1_000, None);
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
        let mut curve = MemoryCurves::new(1_000_000, 1_000_000, None);
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
