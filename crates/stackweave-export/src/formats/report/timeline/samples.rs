//! Spans that are estimated from samples of a thread's stack.

use super::spans::TimelineSpan;

/// A sample lasts until the next one, but at most this many times the usual interval: after that the thread was not
/// sampled.
const MAX_INTERVALS: u64 = 5;

/// The intervals between samples of a thread.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    last: Option<u64>,
    /// The number of intervals of each size: four sizes for each power of two.
    counts: Vec<u64>,
}

impl Intervals {
    pub(super) fn add(&mut self, time: u64) {
        let interval = self.last.replace(time).map(|last| time.saturating_sub(last));
        if let Some(size) = interval.filter(|interval| *interval > 0).map(size) {
            if self.counts.len() <= size {
                self.counts.resize(size + 1, 0);
            }
            self.counts[size] += 1;
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns an upper bound of the median, at most a quarter greater than it.
    pub(super) fn median(&self) -> u64 {
        let half = self.counts.iter().sum::<u64>() / 2;
        let mut before = 0;
        let found = self.counts.iter().position(|count| {
            before += count;
            before > half
        });
        let longest = |size: usize| u64::try_from((size as u128 % 4 + 5) << (size / 4) >> 2).unwrap_or(u64::MAX);
        found.map_or(1, longest)
    }
}

/// Returns the index for an interval: the position of its first bit, and the next two bits.
fn size(interval: u64) -> usize {
    let power = interval.ilog2() as usize;
    let next_bits = (u128::from(interval) << 2 >> power) as usize & 3;
    power * 4 + next_bits
}

/// The stack of a thread between samples: a frame that stays on it is one span.
#[derive(Debug)]
pub(super) struct SampledStack {
    usual: u64,
    /// The open frames with their starts, outermost first.
    open: Vec<(u32, u64)>,
    last: Option<u64>,
}

impl SampledStack {
    pub(super) const fn new(median: u64) -> Self {
        Self { usual: median, open: Vec::new(), last: None }
    }

    /// Adds a sample of these frames, outermost first, and returns the spans that have ended in `over`.
    pub(super) fn sample(&mut self, time: u64, frames: &[u32], over: &mut Vec<TimelineSpan>) {
        if let Some(last) =
            self.last.filter(|last| time.saturating_sub(*last) > self.usual.saturating_mul(MAX_INTERVALS))
        {
            self.close(0, last.saturating_add(self.usual.saturating_mul(MAX_INTERVALS)), over);
        }
        let same = self.open.iter().zip(frames).take_while(|((open, _), frame)| open == *frame).count();
        self.close(same, time, over);
        self.open.extend(frames[same..].iter().map(|frame| (*frame, time)));
        self.last = Some(time);
    }

    /// Ends the last sample after the usual interval.
    pub(super) fn finish(&mut self, over: &mut Vec<TimelineSpan>) {
        let end = self.last.unwrap_or(0).saturating_add(self.usual);
        self.close(0, end, over);
    }

    fn close(&mut self, depth: usize, time: u64, over: &mut Vec<TimelineSpan>) {
        for (index, (frame, began)) in self.open.drain(depth..).enumerate().rev() {
            let depth = u32::try_from(depth + index).unwrap_or(u32::MAX);
            over.push(TimelineSpan { began, duration: time.saturating_sub(began), depth, frame, flags: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_close_to_the_usual_interval() {
        for usual in [1, 7, 1_000, 10_000_000, u64::MAX / 4] {
            let mut intervals = Intervals::default();
            for time in [0, usual, usual * 2, usual * 3, usual * 3 + 1, u64::MAX] {
                intervals.add(time);
            }
            let median = intervals.median();
            assert!((usual..=usual + usual / 4 + 1).contains(&median), "{median} of {usual}");
        }
        assert_eq!(Intervals::default().median(), 1);
    }

    fn spans(samples: &[(u64, &[u32])], median: u64) -> Vec<(u64, u64, u32, u32)> {
        let (mut stack, mut over) = (SampledStack::new(median), Vec::new());
        for (time, frames) in samples {
            stack.sample(*time, frames, &mut over);
        }
        stack.finish(&mut over);
        over.iter().map(|span| (span.began, span.duration, span.depth, span.frame)).collect()
    }

    #[test]
    fn a_frame_that_stays_on_the_stack_is_one_span() {
        let found = spans(&[(10, &[1, 2]), (20, &[1, 2, 3]), (30, &[1, 4]), (40, &[1, 4])], 10);
        assert_eq!(found, [(20, 10, 2, 3), (10, 20, 1, 2), (30, 20, 1, 4), (10, 40, 0, 1)]);
    }

    #[test]
    fn a_thread_that_is_not_sampled_has_a_gap() {
        let found = spans(&[(10, &[1]), (20, &[1]), (1_000, &[1])], 10);
        assert_eq!(found, [(10, 60, 0, 1), (1_000, 10, 0, 1)]);
    }
}
