//! The lines below a table that say what its shares are of, and what it does not show.

use std::io::{self, Write};

use stackweave_profile::{Hidden, Measure, Profile, View};

use crate::selection::Selected;

/// What costs less of the whole is not worth a line.
const LEAST: f64 = 0.01;

/// Writes what 100 % is, where that is the time of several threads together, and what `view` hides.
pub(crate) fn write_below(out: &mut dyn Write, selected: &Selected, view: &View) -> io::Result<()> {
    let Selected { profile, threads, .. } = selected;
    if let Some(sentence) = whole(profile.total(), profile.measure(), *threads) {
        writeln!(out, "{sentence}")?;
    }
    write(out, profile, view)
}

#[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
fn whole(total: i64, measure: Measure, threads: usize) -> Option<String> {
    let is_sum = measure == Measure::WallTime && threads > 1 && total > 0;
    is_sum.then(|| format!("(100% is {}: the time of {threads} threads, added up)", measure.text(total as f64)))
}

/// Writes how much is inside libraries and the interpreter, and the option that shows it; nothing if that is next to nothing.
fn write(out: &mut dyn Write, profile: &Profile, view: &View) -> io::Result<()> {
    match sentence(profile.hidden(view), profile.total(), profile.measure()) {
        Some(sentence) => writeln!(out, "{sentence}"),
        None => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people, with a few digits")]
fn sentence(hidden: Hidden, total: i64, measure: Measure) -> Option<String> {
    let share = hidden.own as f64 / total as f64;
    if hidden.functions == 0 || !share.is_finite() || share < LEAST {
        return None;
    }
    let functions = Measure::Calls.text(hidden.functions as f64);
    let (s, are) = if hidden.functions == 1 { ("", "is") } else { ("s", "are") };
    let (percent, own) = (share * 100.0, measure.text(hidden.own as f64));
    Some(format!(
        "({functions} function{s} inside libraries and the interpreter {are} hidden: {percent:.1}% ({own}) of self, counted for \
         their callers; --all shows them)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_are_of_is_said_where_threads_are_added_up() {
        let said = |measure, threads| whole(12_300_000_000, measure, threads);
        assert_eq!(said(Measure::WallTime, 5).unwrap(), "(100% is 12.3 s: the time of 5 threads, added up)");
        assert_eq!((said(Measure::WallTime, 1), said(Measure::PeakBytes, 5)), (None, None));
    }

    #[test]
    fn what_is_hidden_is_said_with_its_share() {
        let said = |functions, own| sentence(Hidden { functions, own }, 2_000_000_000, Measure::WallTime);
        assert_eq!(
            said(1234, 1_242_000_000).unwrap(),
            "(1,234 functions inside libraries and the interpreter are hidden: 62.1% (1.24 s) of self, counted for their \
             callers; --all shows them)"
        );
        assert!(
            said(1, 1_000_000_000).unwrap().starts_with("(1 function inside libraries and the interpreter is hidden: ")
        );
        assert_eq!((said(0, 0), said(3, 19_000_000)), (None, None));
        assert_eq!(sentence(Hidden { functions: 3, own: 0 }, 0, Measure::WallTime), None);
    }
}
