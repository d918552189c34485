//! How much was taken over time.

use stackweave_profile::memory::{MemoryTimeline, TimelinePoint};

use crate::formats::report::blocks::Columns;

/// A curve is made of the highest and the last points of so many parts of the time.
const PARTS: u64 = 2_000;

/// The curve of a device, while its memory is read.
#[derive(Debug)]
pub(super) struct DeviceCurve {
    part_ns: u64,
    points: Vec<TimelinePoint>,
    /// The part that is being read, and its points.
    open: Option<(u64, Point, Point)>,
}

type Point = (u64, u64);

impl DeviceCurve {
    pub(super) const fn new(duration_ns: u64) -> Self {
        Self { part_ns: duration_ns / PARTS + 1, points: Vec::new(), open: None }
    }

    /// So many bytes are taken from this time on.
    pub(super) fn add(&mut self, time: u64, bytes: u64) {
        let (part, point) = (time / self.part_ns, (time, bytes));
        match &mut self.open {
            Some((open, highest, last)) if *open == part => {
                *last = point;
                *highest = if bytes > highest.1 { point } else { *highest };
            }
            _ => {
                self.close();
                self.open = Some((part, point, point));
            }
        }
    }

    fn close(&mut self) {
        let Some((_, highest, last)) = self.open.take() else { return };
        let points = [Some(highest), Some(last).filter(|last| *last != highest)];
        let told = |(time_ns, bytes)| TimelinePoint { time_ns, heap: Some(bytes), rss: None };
        self.points.extend(points.into_iter().flatten().map(told));
    }

    pub(super) fn finish(mut self) -> MemoryTimeline {
        self.close();
        MemoryTimeline { points: self.points }
    }
}

/// Time, bytes taken, bytes in memory + 1. `None` if there are no points.
pub(super) fn columns(curve: &MemoryTimeline) -> Option<Columns> {
    if curve.points.is_empty() {
        return None;
    }
    let mut columns = Columns::default();
    columns.differences(curve.points.iter().map(|point| point.time_ns), 0);
    columns.plain(curve.points.iter().map(|point| point.heap.unwrap_or(0)));
    columns.plain(curve.points.iter().map(|point| point.rss.map_or(0, |bytes| bytes.saturating_add(1))));
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_and_the_last_of_each_part_are_kept() {
        let mut curve = DeviceCurve::new(20_000);
        for (time, bytes) in [(1, 5), (2, 9), (3, 1), (11, 2), (12, 2)] {
            curve.add(time, bytes);
        }
        let points = curve.finish().points;
        let told: Vec<_> = points.iter().map(|point| (point.time_ns, point.heap.unwrap_or(0))).collect();
        assert_eq!(told, [(2, 9), (3, 1), (11, 2), (12, 2)]);
    }
}
