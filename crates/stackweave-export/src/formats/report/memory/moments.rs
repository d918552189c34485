//! The moments at which a report has the live memory.

/// The maximum number of moments, without requested ones: each is a step of a slider, and needs rows. Their indexes fit
/// into a byte.
const MAX_MOMENTS: u64 = 200;

/// The moments of a device, and how many of them have passed while events are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    /// In the order of time. An event at the time of a moment is before the moment, except for the peak.
    times: Vec<u64>,
    /// The index of the moment of the peak.
    peak: Option<usize>,
    /// The indexes of requested moments.
    requested: Vec<usize>,
    passed: usize,
}

impl Moments {
    /// Returns moments at equal steps between two times, at the peak, and at requested times. These must be few.
    pub(super) fn new(from: u64, to: u64, peak: Option<u64>, requested: &[u64]) -> Self {
        let (duration, steps) = (to.saturating_sub(from), MAX_MOMENTS - u64::from(peak.is_some()));
        let step = |number: u64| {
            from + u64::try_from(u128::from(duration) * u128::from(number) / u128::from(steps)).unwrap_or(0)
        };
        let mut times: Vec<u64> = (1..=steps).map(step).collect();
        times.extend(requested.iter().filter(|time| (from..=to).contains(time) && Some(**time) != peak));
        times.sort_unstable();
        times.dedup();
        let peak_index = peak.map(|peak| times.partition_point(|time| *time < peak));
        if let Some((index, peak)) = peak_index.zip(peak) {
            times.insert(index, peak);
        }
        let is_requested = |(_, time): &(usize, &u64)| requested.contains(time);
        let requested = times.iter().enumerate().filter(is_requested).map(|(index, _)| index).collect();
        Self { times, peak: peak_index, requested, passed: 0 }
    }

    pub(super) fn times(&self) -> &[u64] {
        &self.times
    }

    /// Returns how many have passed, which is the index of the first moment after the current event.
    pub(super) const fn passed(&self) -> usize {
        self.passed
    }

    /// Passes all moments before this time, which is that of the next event.
    pub(super) fn pass_before(&mut self, time: u64) {
        while self.times.get(self.passed).is_some_and(|moment| *moment < time) {
            self.passed += 1;
        }
    }

    /// Passes the peak.
    pub(super) fn pass_peak(&mut self) {
        if let Some(peak) = self.peak {
            self.passed = self.passed.max(peak + 1);
        }
    }

    /// Returns whether the peak has not passed.
    pub(super) fn waits_for_peak(&self) -> bool {
        self.peak.is_some_and(|peak| self.passed <= peak)
    }

    /// Passes all moments after the last event.
    pub(super) const fn pass_all(&mut self) {
        self.passed = self.times.len();
    }

    /// Starts again, for the events of the next process.
    pub(super) const fn restart(&mut self) {
        self.passed = 0;
    }

    /// Drops every other moment, except for the last, the peak and requested ones. Returns the new index of each moment
    /// and of the end; `None` if no moment was dropped.
    pub(super) fn halve(&mut self) -> Option<Vec<usize>> {
        let last = self.times.len().checked_sub(1)?;
        let is_kept =
            |index: usize| index % 2 == last % 2 || Some(index) == self.peak || self.requested.contains(&index);
        let mut indexes = Vec::with_capacity(last + 2);
        let mut kept = 0;
        for index in 0..=last {
            indexes.push(kept);
            kept += usize::from(is_kept(index));
        }
        indexes.push(kept);
        if kept > last {
            return None;
        }
        self.times = (0..=last).filter(|index| is_kept(*index)).map(|index| self.times[index]).collect();
        self.peak = self.peak.map(|peak| indexes[peak]);
        self.requested.iter_mut().for_each(|index| *index = indexes[*index]);
        self.passed = indexes[self.passed];
        Some(indexes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_equal_steps_and_the_peak() {
        let moments = Moments::new(1_000, 200_000, Some(5_500), &[]);
        assert_eq!((moments.times.len(), moments.times[0], moments.times[198]), (200, 2_000, 199_000));
        assert_eq!((moments.times[4], moments.peak), (5_500, Some(4)));
        assert_eq!(moments.times.last(), Some(&200_000));
        assert_eq!(Moments::new(7, 7, None, &[]).times, [7]);
    }

    #[test]
    fn an_event_at_the_time_of_a_moment_is_before_it() {
        let mut moments = Moments::new(0, 200, None, &[]);
        moments.pass_before(1);
        assert_eq!(moments.passed(), 0);
        moments.pass_before(2);
        assert_eq!(moments.passed(), 1);
        moments.pass_all();
        assert_eq!(moments.passed(), 200);
    }

    #[test]
    fn half_of_the_moments_keep_the_last_and_the_peak() {
        let mut moments = Moments::new(0, 199, Some(51), &[]);
        moments.pass_before(100);
        let indexes = moments.halve().unwrap_or_default();
        assert!(moments.times.contains(&51) && moments.times.last() == Some(&199));
        assert_eq!((moments.times.len(), indexes.len(), indexes[200]), (101, 201, 101));
        assert_eq!(moments.peak.map(|peak| moments.times[peak]), Some(51));
        assert!(moments.times[moments.passed] >= 100 && moments.times[moments.passed - 1] < 100);
        while moments.halve().is_some() {}
        assert_eq!(moments.times, [51, 199]);
    }

    #[test]
    fn requested_moments_are_kept() {
        let mut moments = Moments::new(0, 1_990, Some(515), &[44, 515, 50, 2_000]);
        assert_eq!((moments.times.len(), moments.peak.map(|peak| moments.times[peak])), (201, Some(515)));
        moments.pass_before(44);
        assert_eq!(moments.times[moments.passed()], 44);
        while moments.halve().is_some() {}
        assert_eq!(moments.times, [44, 50, 515, 1_990]);
    }
}
