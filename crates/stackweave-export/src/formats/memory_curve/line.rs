//! A quantity over time, in the resolution of a picture.

use std::ops::Range;

/// The number of steps in time.
const STEPS: u64 = 2000;

/// A value that lasts until the next one. The highest and the last value of each step in time are kept.
#[derive(Clone, Debug)]
pub(super) struct CurvePoints {
    range: Range<u64>,
    steps: Vec<Option<LineStep>>,
    pub(super) highest: Option<LinePoint>,
    pub(super) last: Option<LinePoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinePoint {
    pub(super) time: u64,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct LineStep {
    highest: LinePoint,
    last: LinePoint,
}

impl CurvePoints {
    pub(super) fn new(range: Range<u64>) -> Self {
        Self { range, steps: Vec::new(), highest: None, last: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Adds a value. Times must not decrease.
    pub(super) fn push(&mut self, time: u64, bytes: u64) {
        let point = LinePoint { time: time.clamp(self.range.start, self.range.end), bytes };
        let whole = (self.range.end - self.range.start).max(1);
        let index = u128::from(point.time - self.range.start) * u128::from(STEPS) / u128::from(whole);
        let index = usize::try_from(index).unwrap_or(0);
        if self.steps.len() <= index {
            self.steps.resize(index + 1, None);
        }
        let step = self.steps[index].get_or_insert(LineStep { highest: point, last: point });
        if step.highest.bytes < bytes {
            step.highest = point;
        }
        step.last = point;
        if self.highest.is_none_or(|highest| highest.bytes < bytes) {
            self.highest = Some(point);
        }
        self.last = Some(point);
    }

    /// Returns the points to draw, in the order of time.
    pub(super) fn points(&self) -> impl Iterator<Item = LinePoint> {
        self.steps.iter().flatten().flat_map(|step| {
            let is_one = step.highest == step.last;
            [Some(step.highest), (!is_one).then_some(step.last)].into_iter().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_and_last_values_are_kept() {
        let mut line = CurvePoints::new(0..1_000_000);
        for time in 0..1_000_000 {
            line.push(time, if time == 777_777 { 99 } else { time % 7 });
        }
        let points: Vec<LinePoint> = line.points().collect();
        assert!(points.len() <= 4000 && points.is_sorted_by_key(|point| point.time));
        assert!(points.contains(&LinePoint { time: 777_777, bytes: 99 }));
        assert_eq!(points.last().copied(), Some(LinePoint { time: 999_999, bytes: 999_999 % 7 }));
        assert_eq!((line.highest.map(|point| point.time), line.last), (Some(777_777), points.last().copied()));
    }
}
