//! Functions that reduce samples to one figure.

/// Returns the middle sample, or the mean of the two in the middle; `None` without samples.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Returns the width of the interval that holds the middle half of the samples; `None` without samples.
pub(crate) fn spread(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let quarter = sorted.len() / 4;
    Some(sorted.get(sorted.len().checked_sub(quarter + 1)?)? - sorted.get(quarter)?)
}

/// Returns the median of the differences between each round's sample and that round's baseline.
pub(crate) fn median_excess(samples: &[f64], baseline: &[f64]) -> Option<f64> {
    let excess = samples.iter().zip(baseline).map(|(sample, base)| sample - base).collect::<Vec<_>>();
    median(&excess)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: Option<f64>, expected: f64) {
        assert!(actual.is_some_and(|actual| (actual - expected).abs() < 1e-12), "{actual:?} is not {expected}");
    }

    #[test]
    fn median_is_the_middle_of_the_sorted_samples() {
        close(median(&[9.0, 1.0, 5.0]), 5.0);
        close(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        close(median(&[7.0]), 7.0);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_wild_sample_does_not_move_the_median() {
        close(median(&[10.0, 11.0, 12.0, 13.0, 1e9]), 12.0);
    }

    #[test]
    fn spread_leaves_the_outer_quarters_out() {
        close(spread(&[1.0, 10.0, 12.0, 11.0, 90.0]), 2.0);
        close(spread(&[3.0, 4.0]), 1.0);
        close(spread(&[7.0]), 0.0);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn excess_is_taken_round_by_round() {
        // The second round ran at half speed: both its samples doubled.
        close(median_excess(&[30.0, 60.0, 31.0], &[10.0, 20.0, 10.0]), 21.0);
        assert_eq!(median_excess(&[], &[1.0]), None);
    }
}
