//! When the clocks of a recording are read together.

use std::time::{Duration, Instant};

use crate::clock::{Clock, ClockPoint, residual_ns};

/// How long after a point the next one is due: soon at first, so that a short recording has good ones.
const AGES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(1)];

/// The points so far, as far as they are needed.
#[derive(Debug)]
pub(super) struct Points {
    clock: Clock,
    taken: usize,
    last: [ClockPoint; 2],
    last_at: Instant,
    residual_ns: u64,
}

impl Points {
    /// With a first point, just taken.
    pub(super) fn new(clock: Clock, first: ClockPoint) -> Self {
        Self { clock, taken: 1, last: [first; 2], last_at: Instant::now(), residual_ns: 0 }
    }

    /// A new point for events that are about to be written, if one is due. The second one always is: two make a line.
    pub(super) fn if_due(&mut self) -> Option<ClockPoint> {
        let age = AGES[(self.taken - 1).min(AGES.len() - 1)];
        (self.last_at.elapsed() >= age).then(|| self.take())
    }

    /// A new point.
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

    /// How far a point lies off its neighbours, at most.
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
    fn events_get_a_second_point_and_then_only_when_it_is_due() {
        let (clock, first) = Clock::start();
        let mut points = Points::new(clock, first);
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
        assert_eq!(points.if_due(), None, "from then on each second");
    }

    #[test]
    fn the_residual_is_that_of_all_points() {
        let (clock, first) = Clock::start();
        let mut points = Points::new(clock, first);
        let all: Vec<ClockPoint> = [first].into_iter().chain((0..20).map(|_| points.take())).collect();
        assert_eq!(points.residual_ns(), crate::clock::Timeline::new(&all, 0, 0).residual_ns());
    }
}
