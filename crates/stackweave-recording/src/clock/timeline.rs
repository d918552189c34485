//! Conversion of a recording's ticks to nanoseconds.
//!
//! The arithmetic uses integers only, so equal ticks are equal nanoseconds in every query, and later ticks are never earlier
//! nanoseconds. Pure, and safe for arbitrary points: those that do not increase are ignored.

use super::ClockPoint;

const SECOND: u64 = 1_000_000_000;

/// A line through the points of a recording: straight between two of them. Before the first and after the last it continues with
/// the slope of the neighbouring segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockTimeline {
    /// Strictly increasing in ticks, never falling in nanoseconds. At least one.
    points: Vec<Anchor>,
    /// The slope of the line if it has only one point.
    alone: Slope,
    /// `CLOCK_MONOTONIC` at 0 ticks.
    base_monotonic: u64,
    base_wall: i64,
    residual: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    ticks: u64,
    monotonic: u64,
}

/// Nanoseconds per ticks; `ticks` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slope {
    nanoseconds: u64,
    ticks: u64,
}

impl Slope {
    fn between(a: Anchor, b: Anchor) -> Self {
        Self { nanoseconds: b.monotonic - a.monotonic, ticks: b.ticks - a.ticks }
    }

    fn floor(self, ticks: u64) -> u64 {
        if let Some(product) = ticks.checked_mul(self.nanoseconds) {
            return product / self.ticks;
        }
        let product = u128::from(ticks) * u128::from(self.nanoseconds);
        u64::try_from(product / u128::from(self.ticks)).unwrap_or(u64::MAX)
    }

    fn ceil(self, ticks: u64) -> u64 {
        let product = u128::from(ticks) * u128::from(self.nanoseconds);
        u64::try_from(product.div_ceil(u128::from(self.ticks))).unwrap_or(u64::MAX)
    }
}

impl ClockTimeline {
    /// Returns the line through these points. If there are fewer than two, `ticks_per_second` gives its slope (0: a tick
    /// is a nanosecond); if there is none, `started_wall_ns` is the wall clock at 0 ticks.
    pub fn new(points: &[ClockPoint], ticks_per_second: u64, started_wall_ns: i64) -> Self {
        let mut anchors: Vec<Anchor> = Vec::with_capacity(points.len().max(1));
        for point in points {
            let forward = anchors.last().is_none_or(|a| a.ticks < point.ticks && a.monotonic <= point.monotonic_ns);
            if forward {
                anchors.push(Anchor { ticks: point.ticks, monotonic: point.monotonic_ns });
            }
        }
        if anchors.is_empty() {
            anchors.push(Anchor { ticks: 0, monotonic: 0 });
        }
        let alone = Slope { nanoseconds: SECOND, ticks: if ticks_per_second == 0 { SECOND } else { ticks_per_second } };
        let residual = anchors.windows(3).map(|three| off_line(three[0], three[1], three[2])).max().unwrap_or(0);
        let mut line = Self { points: anchors, alone, base_monotonic: 0, base_wall: started_wall_ns, residual };
        line.base_monotonic = line.at(0);
        if let Some(first) = points.first() {
            let since_base = i64::try_from(first.monotonic_ns - line.base_monotonic).unwrap_or(i64::MAX);
            line.base_wall = first.wall_ns.saturating_sub(since_base);
        }
        line
    }

    /// Returns the nanoseconds from the recording's base to `ticks`.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        self.at(ticks) - self.base_monotonic
    }

    /// Returns the ticks up to which further points do not change the line; 0 if they may change all of it.
    pub fn settled_ticks(&self) -> u64 {
        if self.points.len() < 2 { 0 } else { self.points.last().map_or(0, |point| point.ticks) }
    }

    /// Returns `CLOCK_MONOTONIC` at a time after the base: comparable between all processes of one boot of the machine.
    pub const fn monotonic_ns(&self, nanoseconds: u64) -> u64 {
        self.base_monotonic.saturating_add(nanoseconds)
    }

    /// Returns the wall clock at a time after the base, as it was set when the recording began: setting it later does not
    /// distort a recording.
    pub const fn wall_ns(&self, nanoseconds: u64) -> i64 {
        self.base_wall.saturating_add_unsigned(nanoseconds)
    }

    /// Returns the largest distance of a point from the straight line through its neighbours: the error bound of times
    /// between points.
    pub const fn residual_ns(&self) -> u64 {
        self.residual
    }

    /// Returns `CLOCK_MONOTONIC` at `ticks`.
    fn at(&self, ticks: u64) -> u64 {
        let behind = self.points.partition_point(|point| point.ticks <= ticks);
        let Some(before) = behind.checked_sub(1) else {
            let first = self.points[0];
            return first.monotonic.saturating_sub(self.slope(0).ceil(first.ticks - ticks));
        };
        let anchor = self.points[before];
        anchor.monotonic.saturating_add(self.slope(before).floor(ticks - anchor.ticks))
    }

    /// Returns the slope of the line after this point.
    fn slope(&self, point: usize) -> Slope {
        match self.points.len() {
            1 => self.alone,
            count => {
                let left = point.min(count - 2);
                Slope::between(self.points[left], self.points[left + 1])
            }
        }
    }
}

/// Returns the distance of `b` from the straight line through `a` and `c`, in nanoseconds. All increase.
fn off_line(a: Anchor, b: Anchor, c: Anchor) -> u64 {
    let straight = a.monotonic + Slope::between(a, c).floor(b.ticks - a.ticks);
    straight.abs_diff(b.monotonic)
}

/// Returns the same for three unchecked points; 0 if they do not increase.
pub fn residual_ns(a: &ClockPoint, b: &ClockPoint, c: &ClockPoint) -> u64 {
    ClockTimeline::new(&[*a, *b, *c], 0, 0).residual
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ticks: u64, monotonic_ns: u64) -> ClockPoint {
        ClockPoint { ticks, monotonic_ns, wall_ns: 0, width_ns: 0 }
    }

    #[test]
    fn a_straight_line_is_exact() {
        // 3 ticks a nanosecond for 100 days: rounding errors must not accumulate.
        let days = 100 * 86_400 * SECOND;
        let line = ClockTimeline::new(&[point(0, 5_000), point(3 * days, 5_000 + days)], 1, 0);
        for ns in [0, 1, 2, 999, SECOND, 86_400 * SECOND + 7, days - 1, days, days + 1, 2 * days] {
            assert_eq!(line.nanoseconds(3 * ns), ns);
            assert_eq!(line.nanoseconds(3 * ns + 2), ns);
            assert_eq!(line.monotonic_ns(ns), 5_000 + ns);
        }
        assert_eq!(line.residual_ns(), 0);
    }

    #[test]
    fn points_are_on_the_line_and_it_never_decreases() {
        let points = [point(10, 1_000), point(25, 1_003), point(31, 1_003), point(1_000, 9_999), point(1_001, 10_001)];
        let line = ClockTimeline::new(&points, 0, 0);
        for known in &points {
            assert_eq!(line.monotonic_ns(line.nanoseconds(known.ticks)), known.monotonic_ns);
        }
        let all: Vec<u64> = (0..2_000).map(|ticks| line.nanoseconds(ticks)).collect();
        assert!(all.is_sorted());
        assert_eq!(all[0], 0);
    }

    #[test]
    fn the_base_precedes_the_first_point() {
        let first = ClockPoint { ticks: 20, monotonic_ns: 500, wall_ns: 7_000, width_ns: 1 };
        let line = ClockTimeline::new(&[first, point(40, 510)], 0, 0);
        assert_eq!((line.nanoseconds(0), line.nanoseconds(20), line.nanoseconds(60)), (0, 10, 30));
        assert_eq!((line.monotonic_ns(0), line.wall_ns(0), line.wall_ns(10)), (490, 6_990, 7_000));
    }

    #[test]
    fn fewer_than_two_points_use_the_given_rate() {
        let none = ClockTimeline::new(&[], 2 * SECOND, 77);
        assert_eq!((none.nanoseconds(2_000), none.wall_ns(5), none.monotonic_ns(5)), (1_000, 82, 5));
        let one = ClockTimeline::new(&[point(0, 400)], 4 * SECOND, 77);
        assert_eq!((one.nanoseconds(2_000), one.monotonic_ns(500)), (500, 900));
        assert_eq!(ClockTimeline::new(&[], 0, 0).nanoseconds(123), 123);
    }

    #[test]
    fn the_residual_is_the_largest_distance_of_a_point_from_its_neighbours_line() {
        let bent = ClockTimeline::new(&[point(0, 0), point(100, 107), point(200, 200), point(300, 298)], 0, 0);
        assert_eq!(bent.residual_ns(), 7);
        assert_eq!(residual_ns(&point(0, 0), &point(100, 93), &point(200, 200)), 7);
        assert_eq!(residual_ns(&point(0, 0), &point(0, 93), &point(200, 200)), 0);
    }

    #[test]
    fn arbitrary_points_are_safe() {
        let wild = [point(50, 50), point(40, 60), point(50, 70), point(u64::MAX, 60), point(u64::MAX, 0), point(0, 0)];
        let line = ClockTimeline::new(&wild, u64::MAX, i64::MIN);
        let ticks = [0, 1, 49, 50, 51, 1 << 40, u64::MAX - 1, u64::MAX];
        assert!(ticks.map(|ticks| line.nanoseconds(ticks)).is_sorted());
        let steep = ClockTimeline::new(&[point(1 << 60, 0), point((1 << 60) + 1, u64::MAX)], 0, 0);
        assert!(ticks.map(|ticks| steep.nanoseconds(ticks)).is_sorted());
        let early = ClockPoint { ticks: 0, monotonic_ns: u64::MAX, wall_ns: i64::MIN, width_ns: 0 };
        assert_eq!(ClockTimeline::new(&[early], 0, 0).wall_ns(u64::MAX), i64::MAX);
    }
}
