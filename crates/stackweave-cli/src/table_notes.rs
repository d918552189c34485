//! The lines below a table: what 100 % is, and what the table hides.

use std::io::{self, Write};

use stackweave_profile::{Hidden, Measure, Profile};

use crate::selection::Selected;

/// Hidden frames with a smaller share of the total are not mentioned.
const LEAST: f64 = 0.01;

/// Writes what 100 % means if it is the sum over several threads, and how much its view hides.
pub(crate) fn write_table_notes(out: &mut dyn Write, selected: &Selected) -> io::Result<()> {
    let Selected { profile, threads, .. } = selected;
    if let Some(sentence) = whole(profile.total(), profile.measure(), *threads) {
        writeln!(out, "{sentence}")?;
    }
    write(out, profile)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn whole(total: i64, measure: Measure, threads: usize) -> Option<String> {
    let is_sum = measure == Measure::WallTime && threads > 1 && total > 0;
    is_sum.then(|| format!("(100% is {}: the time of {threads} threads, added up)", measure.text(total as f64)))
}

/// Writes how much is inside libraries and the interpreter, and the option that shows it; nothing for a negligible
/// share.
fn write(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    match sentence(profile.hidden(), profile.total(), profile.measure()) {
        Some(sentence) => writeln!(out, "{sentence}"),
        None => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn sentence(hidden: Hidden, total: i64, measure: Measure) -> Option<String> {
    let share = hidden.self_cost as f64 / total as f64;
    if hidden.functions == 0 || !share.is_finite() || share < LEAST {
        return None;
    }
    let functions = Measure::Calls.text(hidden.functions as f64);
    let (s, are) = if hidden.functions == 1 { ("", "is") } else { ("s", "are") };
    let (percent, self_cost) = (share * 100.0, measure.text(hidden.self_cost as f64));
    let costly = match hidden.costly {
        0 => "",
        _ => ", except those with the highest self time",
    };
    Some(format!(
        "({functions} function{s} inside libraries and the interpreter {are} hidden{costly}: {percent:.1}% ({self_cost}) of self, \
         counted for their callers; --all shows them)"
    ))
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

    #[test]
    fn the_hidden_share_is_stated() {
        let note = |functions, self_cost| {
            sentence(Hidden { functions, self_cost, costly: 0 }, 2_000_000_000, Measure::WallTime)
        };
        assert_eq!(
            note(1234, 1_242_000_000).unwrap(),
            "(1,234 functions inside libraries and the interpreter are hidden: 62.1% (1.24 s) of self, counted for their \
             callers; --all shows them)"
        );
        assert!(
            note(1, 1_000_000_000).unwrap().starts_with("(1 function inside libraries and the interpreter is hidden: ")
        );
        assert_eq!((note(0, 0), note(3, 19_000_000)), (None, None));
        assert_eq!(sentence(Hidden { functions: 3, ..Hidden::default() }, 0, Measure::WallTime), None);
        let costly = Hidden { functions: 30, self_cost: 500_000_000, costly: 2 };
        assert_eq!(
            sentence(costly, 2_000_000_000, Measure::WallTime).unwrap(),
            "(30 functions inside libraries and the interpreter are hidden, except those with the highest self time: 25.0% \
             (500 ms) of self, counted for their callers; --all shows them)"
        );
    }
}
