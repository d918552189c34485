//! The cost of a contender, as a child process reports it.

/// The cost of one contender. Times are CPU time of all threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// The time to create a symbolizer and resolve the first address.
    pub(super) first_ms: f64,
    /// The time for all further addresses, which are new.
    pub(super) next_ms: f64,
    /// The time for the same addresses again.
    pub(super) again_ms: Option<f64>,
    /// The growth of the peak resident size until then.
    pub(super) peak_mb: f64,
}

impl Figures {
    pub(super) fn to_line(self) -> String {
        let again = self.again_ms.map_or_else(|| "-".to_owned(), |again| again.to_string());
        format!("figures {} {} {again} {}", self.first_ms, self.next_ms, self.peak_mb)
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("figures ")?.split(' ');
        let mut number = || words.next().map(str::parse::<f64>);
        let (first_ms, next_ms) = (number()?.ok()?, number()?.ok()?);
        let again_ms = number()?.ok();
        Some(Self { first_ms, next_ms, again_ms, peak_mb: number()?.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_were_not_measured_stay_absent() {
        let figures = Figures { first_ms: 0.5, next_ms: 2.0, again_ms: None, peak_mb: 3.0 };
        assert_eq!(Figures::parse(&figures.to_line()), Some(figures));
        let figures = Figures { again_ms: Some(0.125), ..figures };
        assert_eq!(Figures::parse(&figures.to_line()), Some(figures));
        assert_eq!(Figures::parse("figures 1 2"), None);
    }
}
