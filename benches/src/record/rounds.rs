//! Interleaved rounds of all contenders.

use std::io;

use crate::report::{Case, Entry, Outcome};
use crate::statistics::median;

/// Returns the part of `total` for each of `count`.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn share(total: f64, count: usize) -> f64 {
    total / count as f64
}

/// A contender with its name.
pub(super) type Entrant<T> = (&'static str, Box<T>);

/// Returns each contender's samples, one for each round.
pub(super) fn samples<T: ?Sized>(
    entrants: &[Entrant<T>],
    rounds: usize,
    mut sample: impl FnMut(usize, &Entrant<T>) -> io::Result<f64>,
) -> io::Result<Vec<Vec<f64>>> {
    let mut samples = vec![Vec::with_capacity(rounds); entrants.len()];
    for round in 0..rounds {
        for (samples, entrant) in samples.iter_mut().zip(entrants) {
            samples.push(sample(round, entrant)?);
        }
    }
    Ok(samples)
}

/// Returns a case with the median of each contender.
pub(super) fn case<T: ?Sized>(
    bench: &'static str,
    name: String,
    frames: Option<usize>,
    entrants: &[Entrant<T>],
    samples: &[Vec<f64>],
) -> Case {
    let entry = |((peer, _), samples): (&Entrant<T>, &Vec<f64>)| Entry {
        peer,
        outcome: median(samples)
            .map_or_else(|| Outcome::Absent("not sampled".to_owned()), |cost| Outcome::Measured { cost, frames }),
    };
    Case { bench, name, unit: "ns", entries: entrants.iter().zip(samples).map(entry).collect() }
}
