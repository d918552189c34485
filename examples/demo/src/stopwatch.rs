//! Two things timed by turns, so that a busy machine slows both alike.

use std::time::Instant;

/// Nanoseconds per call of each side, as medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Medians {
    /// Of the first closure.
    pub first_ns: f64,
    /// Of the second closure.
    pub second_ns: f64,
}

/// Calls `first` and `second` `calls` times each, by turns, for `rounds` rounds.
pub fn interleaved_medians(rounds: u32, calls: u32, mut first: impl FnMut(), mut second: impl FnMut()) -> Medians {
    let (mut first_ns, mut second_ns) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        first_ns.push(ns_per_call(calls, &mut first));
        second_ns.push(ns_per_call(calls, &mut second));
    }
    Medians { first_ns: median(first_ns), second_ns: median(second_ns) }
}

fn ns_per_call(calls: u32, call: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_whatever_the_order() {
        assert!((median(vec![9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn both_sides_are_called_equally_often() {
        let (mut first, mut second) = (0, 0);
        interleaved_medians(3, 4, || first += 1, || second += 1);
        assert_eq!((first, second), (12, 12));
    }
}
