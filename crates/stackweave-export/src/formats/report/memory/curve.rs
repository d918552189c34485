//! The memory over time as columns.

use std::ops::Range;

use stackweave_profile::memory::{DevicePoint, MemoryTimeline};

use crate::formats::report::blocks::Columns;

/// Returns columns of times, allocated bytes, and resident bytes + 1. `None` if there are no points.
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

/// Returns columns of times, allocated bytes, bytes of pending frees, and reserved bytes.
pub(super) fn host_columns(points: &[DevicePoint]) -> Columns {
    let mut columns = Columns::default();
    columns.differences(points.iter().map(|point| point.time_ns), 0);
    columns.plain(points.iter().map(|point| point.allocated));
    columns.plain(points.iter().map(|point| point.pending));
    columns.plain(points.iter().map(|point| point.reserved));
    columns
}

/// Returns the sum of the curves of several processes. Each is moved by the start of its process, and counts until the
/// end of its process.
pub(super) fn sum(curves: &[(Range<u64>, &[DevicePoint])]) -> Vec<DevicePoint> {
    let last = curves.iter().map(|(lifetime, _)| lifetime.end).max();
    let mut steps: Vec<(u64, usize, DevicePoint)> = Vec::new();
    for (number, (lifetime, points)) in curves.iter().enumerate() {
        steps.extend(points.iter().map(|point| (point.time_ns.saturating_add(lifetime.start), number, *point)));
        steps.extend((Some(lifetime.end) != last).then_some((lifetime.end, number, DevicePoint::default())));
    }
    steps.sort_by_key(|(time, number, _)| (*time, *number));
    let mut now = vec![DevicePoint::default(); curves.len()];
    let point = |(time_ns, number, point): (u64, usize, DevicePoint)| {
        now[number] = point;
        let sum = |of: fn(&DevicePoint) -> u64| now.iter().map(of).fold(0, u64::saturating_add);
        let (allocated, pending) = (sum(|point| point.allocated), sum(|point| point.pending));
        DevicePoint { time_ns, allocated, pending, reserved: sum(|point| point.reserved) }
    };
    steps.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_added_up_during_their_lifetimes() {
        let point = |time_ns, allocated, reserved| DevicePoint { time_ns, allocated, pending: 1, reserved };
        let (first, second) = ([point(0, 5, 8), point(10, 7, 8)], [point(2, 100, 200)]);
        let points = sum(&[(0..12, &first), (3..20, &second)]);
        let sums: Vec<_> = points.iter().map(|sum| (sum.time_ns, sum.allocated, sum.pending, sum.reserved)).collect();
        assert_eq!(sums, [(0, 5, 1, 8), (5, 105, 2, 208), (10, 107, 2, 208), (12, 100, 1, 200)]);
    }
}
