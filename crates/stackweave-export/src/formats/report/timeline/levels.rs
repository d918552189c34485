//! The durations of spans by level.
//!
//! A window of about 2,000 pixels is drawn with the spans that are at least about a pixel long, and with segments of
//! shorter ones. Each level is 8 times as long as the one before: so at most 8 spans of the lowest level and 2 segments
//! are on a pixel of a row, and the segments of all levels together are fewer than the spans wherever spans are dense.

/// The shortest span of each level, in nanoseconds: 1 us, 8 us, ..., 134 s.
const MIN_DURATIONS: [u64; 11] = {
    let mut least = [0; 11];
    let mut level = 1;
    while level < least.len() {
        least[level] = 1_000 << (3 * (level - 1));
        level += 1;
    }
    least
};

/// The width of a narrow window.
const PIXELS: u64 = 128;

/// The levels of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    count: usize,
}

impl Levels {
    /// Returns the levels that are needed to show `duration_ns` or parts of it.
    pub(super) fn of(duration_ns: u64) -> Self {
        let count = MIN_DURATIONS.partition_point(|least| *least <= duration_ns / PIXELS);
        Self { count: count.max(1) }
    }

    pub(super) const fn count(self) -> usize {
        self.count
    }

    /// Returns the minimum duration of each level.
    pub(super) fn min_durations(self) -> &'static [u64] {
        &MIN_DURATIONS[..self.count]
    }

    /// Returns the level of a span.
    pub(super) fn level(self, duration: u64) -> usize {
        self.min_durations().partition_point(|least| *least <= duration) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_belongs_to_the_highest_level_that_it_is_long_enough_for() {
        let levels = Levels::of(3_600_000_000_000);
        assert_eq!(levels.min_durations()[..4], [0, 1_000, 8_000, 64_000]);
        assert_eq!([0, 999, 1_000, 7_999, 8_000].map(|duration| levels.level(duration)), [0, 0, 1, 1, 2]);
        assert_eq!(levels.level(u64::MAX), levels.count() - 1);
        assert_eq!(levels.min_durations().last(), Some(&16_777_216_000));
    }

    #[test]
    fn a_short_recording_has_few_levels() {
        assert_eq!(Levels::of(0).min_durations(), [0]);
        assert_eq!(Levels::of(128_000).min_durations(), [0, 1_000]);
        assert_eq!(Levels::of(u64::MAX).min_durations().len(), MIN_DURATIONS.len());
    }
}
