//! How long the spans of each level are.
//!
//! A window of some 2,000 pixels is drawn with the spans that are at least about a pixel long, and what is shorter as
//! pieces. Levels that are 8 times as long as those before them mean that at most 8 spans of the lowest level that is
//! drawn, and 2 pieces, lie on a pixel of a row, and that all pieces of all levels together are fewer than the spans
//! wherever these lie close to each other.

/// The shortest span of each level, in nanoseconds: 1 us, 8 us, ..., 134 s.
const LEAST: [u64; 11] = {
    let mut least = [0; 11];
    let mut level = 1;
    while level < least.len() {
        least[level] = 1_000 << (3 * (level - 1));
        level += 1;
    }
    least
};

/// A narrow window has so many pixels.
const PIXELS: u64 = 128;

/// The levels of a recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    count: usize,
}

impl Levels {
    /// Those that are of use to see `duration_ns` at once, or parts of it.
    pub(super) fn of(duration_ns: u64) -> Self {
        let count = LEAST.partition_point(|least| *least <= duration_ns / PIXELS);
        Self { count: count.max(1) }
    }

    pub(super) const fn count(self) -> usize {
        self.count
    }

    /// The shortest span of each level.
    pub(super) fn least(self) -> &'static [u64] {
        &LEAST[..self.count]
    }

    /// The level of a span.
    pub(super) fn level(self, duration: u64) -> usize {
        self.least().partition_point(|least| *least <= duration) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_belongs_to_the_last_level_that_it_is_long_enough_for() {
        let levels = Levels::of(3_600_000_000_000);
        assert_eq!(levels.least()[..4], [0, 1_000, 8_000, 64_000]);
        assert_eq!([0, 999, 1_000, 7_999, 8_000].map(|duration| levels.level(duration)), [0, 0, 1, 1, 2]);
        assert_eq!(levels.level(u64::MAX), levels.count() - 1);
        assert_eq!(levels.least().last(), Some(&16_777_216_000));
    }

    #[test]
    fn a_short_recording_has_few_levels() {
        assert_eq!(Levels::of(0).least(), [0]);
        assert_eq!(Levels::of(128_000).least(), [0, 1_000]);
        assert_eq!(Levels::of(u64::MAX).least().len(), LEAST.len());
    }
}
