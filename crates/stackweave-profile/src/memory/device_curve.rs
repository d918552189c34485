//! The memory of a device over time: the highest values of each interval.

use std::ops::Range;

/// The memory of a device, or of a pool, at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevicePoint {
    /// The time, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// The bytes of allocated blocks, as requested.
    pub allocated: u64,
    /// The bytes of blocks that the program has freed, and that can't be reused yet.
    pub pending: u64,
    /// The bytes of segments.
    pub reserved: u64,
}

/// The number of intervals.
const PARTS: u64 = 4_000;

/// The selected time, and the length of its intervals.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) range: Range<u64>,
    part: u64,
}

impl Axis {
    pub(super) fn new(range: Range<u64>) -> Self {
        let part = (range.end.saturating_sub(range.start) / PARTS).max(1);
        Self { range, part }
    }
}

/// A curve, which gets every change.
#[derive(Debug, Default)]
pub(super) struct DeviceCurve {
    points: Vec<DevicePoint>,
    peak: DevicePoint,
    reserved_peak: DevicePoint,
    part: Option<Part>,
    now: DevicePoint,
}

/// An interval: its highest moments, in order.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: u64,
    changes: u64,
    allocated: (u64, DevicePoint),
    reserved: (u64, DevicePoint),
}

/// A finished curve, with its peaks.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) points: Vec<DevicePoint>,
    pub(super) peak: DevicePoint,
    pub(super) reserved_peak: DevicePoint,
}

impl DeviceCurve {
    /// Adds a point. The last one before the range is the state at its start.
    pub(super) fn put(&mut self, axis: &Axis, now: DevicePoint) {
        if now.time_ns < axis.range.start {
            self.now = DevicePoint { time_ns: axis.range.start, ..now };
            return;
        }
        let is_first = self.part.is_none() && now.time_ns == axis.range.start && self.now == DevicePoint::default();
        if !is_first {
            self.begin(axis);
        }
        self.add(axis, now);
    }

    fn begin(&mut self, axis: &Axis) {
        if self.part.is_none() {
            let first = DevicePoint { time_ns: axis.range.start, ..self.now };
            (self.peak, self.reserved_peak) = (first, first);
            self.add(axis, first);
        }
    }

    fn add(&mut self, axis: &Axis, now: DevicePoint) {
        let number = now.time_ns / axis.part;
        match &mut self.part {
            Some(part) if part.number == number => part.add(now),
            _ => {
                self.close(Some(number));
                self.part = Some(Part { number, changes: 0, allocated: (0, now), reserved: (0, now) });
            }
        }
        if now.allocated > self.peak.allocated {
            self.peak = now;
        }
        if now.reserved > self.reserved_peak.reserved {
            self.reserved_peak = now;
        }
        self.now = now;
    }

    /// Adds the points of an interval when the next one has begun. The end of an interval gets a point too if there was
    /// a pause after it: a point lasts until the next one.
    fn close(&mut self, next: Option<u64>) {
        let Some(part) = self.part.take() else { return };
        let (first, second) = if part.allocated.0 <= part.reserved.0 {
            (part.allocated, part.reserved)
        } else {
            (part.reserved, part.allocated)
        };
        self.points.push(first.1);
        if second.0 != first.0 {
            self.points.push(second.1);
        }
        if next != Some(part.number + 1) && second.0 != part.changes {
            self.points.push(self.now);
        }
    }

    /// Returns the whole curve, up to the end of the range.
    pub(super) fn finish(mut self, axis: &Axis) -> Drawn {
        self.begin(axis);
        self.close(None);
        let end = DevicePoint { time_ns: axis.range.end.saturating_sub(1), ..self.now };
        if self.points.last().is_some_and(|point| point.time_ns < end.time_ns) {
            self.points.push(end);
        }
        Drawn { points: self.points, peak: self.peak, reserved_peak: self.reserved_peak }
    }
}

impl Part {
    fn add(&mut self, now: DevicePoint) {
        self.changes += 1;
        if now.allocated > self.allocated.1.allocated {
            self.allocated = (self.changes, now);
        }
        if now.reserved > self.reserved.1.reserved {
            self.reserved = (self.changes, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time_ns: u64, allocated: u64, reserved: u64) -> DevicePoint {
        DevicePoint { time_ns, allocated, pending: 0, reserved }
    }

    #[test]
    fn an_interval_keeps_its_highest_moments_and_its_end_before_a_pause() {
        let axis = Axis::new(0..4_000_000);
        let mut curve = DeviceCurve::default();
        for moment in [point(10, 5, 8), point(20, 9, 8), point(30, 3, 16), point(40, 1, 8), point(2_000_500, 2, 8)] {
            curve.put(&axis, moment);
        }
        let drawn = curve.finish(&axis);
        let expected = [point(20, 9, 8), point(30, 3, 16), point(40, 1, 8), point(2_000_500, 2, 8)];
        assert_eq!(drawn.points[..4], expected);
        assert_eq!(drawn.points[4..], [point(3_999_999, 2, 8)]);
        assert_eq!((drawn.peak, drawn.reserved_peak), (expected[0], expected[1]));
    }

    #[test]
    fn the_state_before_the_range_is_the_state_at_its_begin() {
        let axis = Axis::new(100..200);
        let mut curve = DeviceCurve::default();
        curve.put(&axis, point(10, 50, 60));
        curve.put(&axis, point(20, 40, 60));
        curve.put(&axis, point(150, 30, 60));
        let drawn = curve.finish(&axis);
        assert_eq!(drawn.points, [point(100, 40, 60), point(150, 30, 60), point(199, 30, 60)]);
        assert_eq!((drawn.peak, drawn.reserved_peak), (point(100, 40, 60), point(100, 40, 60)));
    }
}
