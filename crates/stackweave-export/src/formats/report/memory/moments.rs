//! The moments at which a report tells what is live.

/// So many moments at most: each is a step of a slider, and costs rows. Their places fit into a byte.
const MOST: u64 = 200;

/// The moments of a device, and how many of them have passed while events are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    /// The latest last. What happens at the time of a moment is before it, but for the peak.
    times: Vec<u64>,
    /// Which of them is that of the peak.
    peak: Option<usize>,
    /// Which of them were asked for.
    asked: Vec<usize>,
    passed: usize,
}

impl Moments {
    /// Equal steps from one time to another, the time of the peak, and others that are asked for: some at most.
    pub(super) fn new(from: u64, to: u64, peak: Option<u64>, asked: &[u64]) -> Self {
        let (duration, steps) = (to.saturating_sub(from), MOST - u64::from(peak.is_some()));
        let step = |number: u64| {
            from + u64::try_from(u128::from(duration) * u128::from(number) / u128::from(steps)).unwrap_or(0)
        };
        let mut times: Vec<u64> = (1..=steps).map(step).collect();
        times.extend(asked.iter().filter(|time| (from..=to).contains(time) && Some(**time) != peak));
        times.sort_unstable();
        times.dedup();
        let place = peak.map(|peak| times.partition_point(|time| *time < peak));
        if let Some((place, peak)) = place.zip(peak) {
            times.insert(place, peak);
        }
        let of_asked = times.iter().enumerate().filter(|(_, time)| asked.contains(time)).map(|(place, _)| place);
        let asked = of_asked.collect();
        Self { times, peak: place, asked, passed: 0 }
    }

    pub(super) fn times(&self) -> &[u64] {
        &self.times
    }

    /// How many have passed: the place of the first at which something that is taken now is there.
    pub(super) const fn passed(&self) -> usize {
        self.passed
    }

    /// An event of this time comes next: all moments before it have passed.
    pub(super) fn pass_before(&mut self, time: u64) {
        while self.times.get(self.passed).is_some_and(|moment| *moment < time) {
            self.passed += 1;
        }
    }

    /// The peak is now.
    pub(super) fn pass_peak(&mut self) {
        if let Some(peak) = self.peak {
            self.passed = self.passed.max(peak + 1);
        }
    }

    /// Whether the peak is still to come.
    pub(super) fn waits_for_peak(&self) -> bool {
        self.peak.is_some_and(|peak| self.passed <= peak)
    }

    /// Nothing happens any more.
    pub(super) const fn pass_all(&mut self) {
        self.passed = self.times.len();
    }

    /// The events of another process are read.
    pub(super) const fn restart(&mut self) {
        self.passed = 0;
    }

    /// Drops every other moment, but for the last, the peak and those that were asked for: for each place, and the one behind all, that which it has
    /// now. `None` if there is nothing to drop.
    pub(super) fn halve(&mut self) -> Option<Vec<usize>> {
        let last = self.times.len().checked_sub(1)?;
        let is_kept = |place: usize| place % 2 == last % 2 || Some(place) == self.peak || self.asked.contains(&place);
        let mut places = Vec::with_capacity(last + 2);
        let mut kept = 0;
        for place in 0..=last {
            places.push(kept);
            kept += usize::from(is_kept(place));
        }
        places.push(kept);
        if kept > last {
            return None;
        }
        self.times = (0..=last).filter(|place| is_kept(*place)).map(|place| self.times[place]).collect();
        self.peak = self.peak.map(|peak| places[peak]);
        self.asked.iter_mut().for_each(|place| *place = places[*place]);
        self.passed = places[self.passed];
        Some(places)
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
    fn what_happens_at_a_moment_is_before_it() {
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
        let places = moments.halve().unwrap_or_default();
        assert!(moments.times.contains(&51) && moments.times.last() == Some(&199));
        assert_eq!((moments.times.len(), places.len(), places[200]), (101, 201, 101));
        assert_eq!(moments.peak.map(|peak| moments.times[peak]), Some(51));
        assert!(moments.times[moments.passed] >= 100 && moments.times[moments.passed - 1] < 100);
        while moments.halve().is_some() {}
        assert_eq!(moments.times, [51, 199]);
    }

    #[test]
    fn moments_that_are_asked_for_are_kept() {
        let mut moments = Moments::new(0, 1_990, Some(515), &[44, 515, 50, 2_000]);
        assert_eq!((moments.times.len(), moments.peak.map(|peak| moments.times[peak])), (201, Some(515)));
        moments.pass_before(44);
        assert_eq!(moments.times[moments.passed()], 44);
        while moments.halve().is_some() {}
        assert_eq!(moments.times, [44, 50, 515, 1_990]);
    }
}
