//! The lines below a table: what 100 % is, and what the table hides.

use std::io::{self, Write};

use stackweave_profile::Measure;

use crate::selection::Selected;
use crate::text::{ALL, write_hidden};

/// Writes what 100 % means if it is the sum over several threads, and how much its view hides.
pub(crate) fn write_table_notes(out: &mut dyn Write, selected: &Selected) -> io::Result<()> {
    let Selected { profile, threads, .. } = selected;
    if let Some(sentence) = whole(profile.total(), profile.measure(), *threads) {
        writeln!(out, "{sentence}")?;
    }
    write_hidden(out, profile.hidden_sentence(ALL))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn whole(total: i64, measure: Measure, threads: usize) -> Option<String> {
    let is_sum = measure == Measure::WallTime && threads > 1 && total > 0;
    is_sum.then(|| format!("(100% is {}: the time of {threads} threads, added up)", measure.text(total as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_over_threads_is_stated() {
        let note = |measure, threads| whole(12_300_000_000, measure, threads);
        assert_eq!(note(Measure::WallTime, 5).unwrap(), "(100% is 12.3 s: the time of 5 threads, added up)");
        assert_eq!((note(Measure::WallTime, 1), note(Measure::PeakBytes, 5)), (None, None));
    }
}
