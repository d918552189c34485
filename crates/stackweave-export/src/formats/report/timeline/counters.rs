//! The values of a counter, as a curve.

use std::collections::BTreeMap;

/// Up to this many points are kept; of more, the first, lowest, highest and last of each interval.
const MAX_POINTS: usize = 4_000;

/// A curve. Points can be added in any order.
#[derive(Debug)]
pub(super) struct CounterPoints {
    part_ns: u64,
    points: Vec<CounterPoint>,
    /// By the number of the interval, once there are too many points: first, lowest, highest, last.
    parts: BTreeMap<u64, [CounterPoint; 4]>,
}

type CounterPoint = (u64, f64);

impl CounterPoints {
    /// Creates the curve for a recording of this length.
    pub(super) fn new(duration_ns: u64) -> Self {
        let part_ns = duration_ns / (MAX_POINTS as u64 / 4) + 1;
        Self { part_ns, points: Vec::new(), parts: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, time: u64, value: f64) {
        if !value.is_finite() {
            return;
        }
        if !self.parts.is_empty() {
            return self.put((time, value));
        }
        self.points.push((time, value));
        if self.points.len() > MAX_POINTS {
            for point in core::mem::take(&mut self.points) {
                self.put(point);
            }
        }
    }

    fn put(&mut self, point: CounterPoint) {
        let [first, lowest, highest, last] = self.parts.entry(point.0 / self.part_ns).or_insert([point; 4]);
        if point.0 < first.0 {
            *first = point;
        }
        if point.1 < lowest.1 {
            *lowest = point;
        }
        if point.1 > highest.1 {
            *highest = point;
        }
        if point.0 >= last.0 {
            *last = point;
        }
    }

    /// Returns the points in the order of time.
    pub(super) fn into_points(mut self) -> Vec<CounterPoint> {
        self.points.sort_by_key(|point| point.0);
        for mut part in self.parts.into_values() {
            part[1..3].sort_by_key(|point| point.0);
            let before = self.points.len();
            for point in part {
                if !self.points[before..].contains(&point) {
                    self.points.push(point);
                }
            }
        }
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_are_kept_in_the_order_of_time() {
        let mut counter = CounterPoints::new(100);
        for (time, value) in [(5, 1.0), (2, 2.0), (9, f64::NAN), (7, 3.0)] {
            counter.add(time, value);
        }
        assert_eq!(counter.into_points(), [(2, 2.0), (5, 1.0), (7, 3.0)]);
    }

    #[test]
    fn the_highest_and_lowest_of_many_points_are_kept() {
        let mut counter = CounterPoints::new(1_000_000);
        (0..1_000_000).for_each(|time| counter.add(time, if time == 777_777 { 9.0 } else { 1.0 }));
        counter.add(123_456, -9.0);
        let points = counter.into_points();
        assert!((1_000..=MAX_POINTS + 4).contains(&points.len()), "{}", points.len());
        assert!(points.contains(&(777_777, 9.0)) && points.contains(&(123_456, -9.0)));
        assert!(points.is_sorted_by_key(|point| point.0));
    }
}
