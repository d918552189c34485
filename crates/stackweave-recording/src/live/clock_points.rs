//! The clock points of a recording.

use std::time::{Duration, Instant};

use crate::clock::{Clock, ClockPoint, residual_ns};

/// The interval from a point to the next. The first intervals are short, so that a short recording has good points.
const AGES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(1)];

/// The last clock points, and when the next one is due.
#[derive(Debug)]
pub(super) struct ClockPoints {
    clock: Clock,
    taken: usize,
    last: [ClockPoint; 2],
    last_at: Instant,
    residual_ns: u64,
}

impl ClockPoints {
    /// Begins with a first point that was just taken.
    pub(super) fn new(clock: Clock, first: ClockPoint) -> Self {
        Self { clock, taken: 1, last: [first; 2], last_at: Instant::now(), residual_ns: 0 }
    }

    /// Returns a new point for events that are about to be written, if one is due. The second one always is: two points make a line.
    pub(super) fn if_due(&mut self) -> Option<ClockPoint> {
        let age = AGES[(self.taken - 1).min(AGES.len() - 1)];
        (self.last_at.elapsed() >= age).then(|| self.take())
    }

    /// Takes a new point.
    pub(super) fn take(&mut self) -> ClockPoint {
        let point = self.clock.point();
        let [before, last] = self.last;
        if self.taken >= 2 {
            self.residual_ns = self.residual_ns.max(residual_ns(&before, &last, &point));
        }
        self.last = [last, point];
        self.last_at = Instant::now();
        self.taken += 1;
        point
    }

    /// Returns the largest distance of a point from the line through its neighbours.
    pub(super) const fn residual_ns(&self) -> u64 {
        self.residual_ns
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.ticks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_get_a_second_point_and_further_ones_when_they_are_due() {
        let (clock, first) = Clock::start();
        let mut points = ClockPoints::new(clock, first);
        let second = points.if_due().unwrap();
        assert!(second.ticks > 0 && points.now() >= second.ticks);
        points.last_at = Instant::now() + Duration::from_secs(1000);
        assert_eq!(points.if_due(), None);
        let ago = |milliseconds| Instant::now().checked_sub(Duration::from_millis(milliseconds)).unwrap();
        points.last_at = ago(20);
        assert!(points.if_due().is_some_and(|third| third.ticks >= second.ticks));
        points.last_at = ago(200);
        assert!(points.if_due().is_some());
        points.last_at = ago(200);
        assert_eq!(points.if_due(), None, "then one each second");
    }

    #[test]
    fn the_residual_covers_all_points() {
        let (clock, first) = Clock::start();
        let mut points = ClockPoints::new(clock, first);
        let all: Vec<ClockPoint> = [first].into_iter().chain((0..20).map(|_| points.take())).collect();
        assert_eq!(points.residual_ns(), crate::clock::ClockTimeline::new(&all, 0, 0).residual_ns());
    }
}
