//! What a thread seems to have done, by samples of its stack.

use super::spans::TimelineSpan;

/// A sample holds until the next one, but no longer than so many times the usual interval: the thread was not watched then.
const LONGEST: u64 = 5;

/// The times from each sample of a thread to the next.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    last: Option<u64>,
    /// How many there are of each size: four sizes from one power of two to the next.
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

    /// The interval that half of them are not longer than, up to a quarter.
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

/// The place of the first bit, and the two bits behind it.
fn size(interval: u64) -> usize {
    let power = interval.ilog2() as usize;
    let next_bits = (u128::from(interval) << 2 >> power) as usize & 3;
    power * 4 + next_bits
}

/// The stack of a thread, from sample to sample: what is on it in several that follow each other is one span.
#[derive(Debug)]
pub(super) struct SampledStack {
    usual: u64,
    /// Frames and since when they are there, outermost first.
    open: Vec<(u32, u64)>,
    last: Option<u64>,
}

impl SampledStack {
    pub(super) const fn new(median: u64) -> Self {
        Self { usual: median, open: Vec::new(), last: None }
    }

    /// A sample of these frames, outermost first: adds the spans that are over.
    pub(super) fn sample(&mut self, time: u64, frames: &[u32], over: &mut Vec<TimelineSpan>) {
        if let Some(last) = self.last.filter(|last| time.saturating_sub(*last) > self.usual.saturating_mul(LONGEST)) {
            self.close(0, last.saturating_add(self.usual.saturating_mul(LONGEST)), over);
        }
        let same = self.open.iter().zip(frames).take_while(|((open, _), frame)| open == *frame).count();
        self.close(same, time, over);
        self.open.extend(frames[same..].iter().map(|frame| (*frame, time)));
        self.last = Some(time);
    }

    /// There are no more: the last one holds as long as is usual.
    pub(super) fn finish(&mut self, over: &mut Vec<TimelineSpan>) {
        let end = self.last.unwrap_or(0).saturating_add(self.usual);
        self.close(0, end, over);
    }

    fn close(&mut self, depth: usize, time: u64, over: &mut Vec<TimelineSpan>) {
        for (place, (frame, began)) in self.open.drain(depth..).enumerate().rev() {
            let depth = u32::try_from(depth + place).unwrap_or(u32::MAX);
            over.push(TimelineSpan { began, duration: time.saturating_sub(began), depth, frame, flags: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_about_the_usual_interval() {
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
    fn what_stays_on_the_stack_is_one_span() {
        let found = spans(&[(10, &[1, 2]), (20, &[1, 2, 3]), (30, &[1, 4]), (40, &[1, 4])], 10);
        assert_eq!(found, [(20, 10, 2, 3), (10, 20, 1, 2), (30, 20, 1, 4), (10, 40, 0, 1)]);
    }

    #[test]
    fn nothing_is_known_of_a_thread_that_is_not_watched() {
        let found = spans(&[(10, &[1]), (20, &[1]), (1_000, &[1])], 10);
        assert_eq!(found, [(10, 60, 0, 1), (1_000, 10, 0, 1)]);
    }
}
