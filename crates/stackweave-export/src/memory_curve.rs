//! How many bytes are allocated, as a curve that a viewer can draw.

use std::collections::HashMap;

/// More points than this and those that lie near each other become two: the highest and the last.
const MOST_POINTS: u64 = 50_000;

/// The blocks of one process, and the curve of their bytes. To be told of events in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct MemoryCurve {
    blocks: HashMap<u64, u64>,
    bytes: u64,
    /// What one pair of points stands for; 0 if every change has its own.
    pub(crate) bucket_ns: u64,
    /// The bucket that is not told yet.
    bucket: u64,
    highest: Option<MemoryPoint>,
    last: Option<MemoryPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPoint {
    pub(crate) time: u64,
    pub(crate) bytes: u64,
    pub(crate) blocks: usize,
}

/// Points to draw now, in the order of their times.
pub(crate) type Points = [Option<MemoryPoint>; 2];

impl MemoryCurve {
    /// A curve of at most so many changes, over so much time.
    pub(crate) fn new(changes: u64, duration_ns: u64) -> Self {
        let bucket_ns = if changes > MOST_POINTS { (duration_ns / (MOST_POINTS / 2)).max(1) } else { 0 };
        Self { bucket_ns, ..Self::default() }
    }

    pub(crate) fn allocate(&mut self, time: u64, address: u64, size: u64) -> Points {
        let replaced = self.blocks.insert(address, size).unwrap_or(0);
        self.bytes = self.bytes.saturating_sub(replaced).saturating_add(size);
        self.changed(time)
    }

    pub(crate) fn free(&mut self, time: u64, address: u64) -> Points {
        match self.blocks.remove(&address) {
            Some(size) => {
                self.bytes = self.bytes.saturating_sub(size);
                self.changed(time)
            }
            None => [None, None],
        }
    }

    fn changed(&mut self, time: u64) -> Points {
        let point = MemoryPoint { time, bytes: self.bytes, blocks: self.blocks.len() };
        if self.bucket_ns == 0 {
            return [Some(point), None];
        }
        let bucket = time / self.bucket_ns;
        let told = if bucket == self.bucket { [None, None] } else { self.rest() };
        self.bucket = bucket;
        if self.highest.is_none_or(|highest| highest.bytes < point.bytes) {
            self.highest = Some(point);
        }
        self.last = Some(point);
        told
    }

    /// The points that are not told yet.
    pub(crate) fn rest(&mut self) -> Points {
        let (highest, last) = (self.highest.take(), self.last.take());
        if highest == last { [last, None] } else { [highest, last] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_are_all_there() {
        let mut curve = MemoryCurve::new(10, 1_000);
        let points = [
            curve.allocate(1, 0x10, 5),
            curve.allocate(2, 0x20, 7),
            curve.allocate(3, 0x10, 1),
            curve.free(4, 0x20),
            curve.free(5, 0x20),
        ];
        let drawn = points.map(|[point, _]| point.map(|point| (point.time, point.bytes, point.blocks)));
        assert_eq!(drawn, [Some((1, 5, 1)), Some((2, 12, 2)), Some((3, 8, 2)), Some((4, 1, 1)), None]);
        assert_eq!(curve.rest(), [None, None]);
    }

    #[test]
    fn many_changes_keep_their_peaks_and_their_end() {
        let mut curve = MemoryCurve::new(1_000_000, 1_000_000);
        let mut points = Vec::new();
        for step in 0..500_000_u64 {
            points.extend(curve.allocate(2 * step, step, if step == 77_777 { 1_000 } else { 1 }).into_iter().flatten());
            points.extend(curve.free(2 * step + 1, step).into_iter().flatten());
        }
        points.extend(curve.rest().into_iter().flatten());
        assert!(points.len() as u64 <= MOST_POINTS + 2, "{}", points.len());
        assert!(points.is_sorted_by_key(|point| point.time));
        assert_eq!(points.iter().map(|point| point.bytes).max(), Some(1_000));
        assert_eq!(points.last(), Some(&MemoryPoint { time: 999_999, bytes: 0, blocks: 0 }));
    }
}
