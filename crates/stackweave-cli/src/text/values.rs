//! Formats differences, counts and shares.

use stackweave_profile::Measure;

/// Formats a cost in its unit with its sign, even a plus.
pub(crate) fn signed_value(measure: Measure, difference: f64) -> String {
    let text = measure.text(difference);
    if difference > 0.0 { format!("+{text}") } else { text }
}

/// Formats a number with separators between thousands.
pub(crate) fn count(value: f64) -> String {
    Measure::Samples.text(value)
}

/// Formats a share from 0 to 1 as a percentage.
pub(crate) fn percentage(share: f64) -> String {
    let text = format!("{:.1}%", share * 100.0);
    if text == "-0.0%" { "0.0%".to_owned() } else { text }
}

/// Returns the share of `part` in `whole`; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(crate) fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_shares_are_formatted_for_display() {
        assert_eq!(signed_value(Measure::Samples, 5.0), "+5");
        assert_eq!((percentage(share(1, 3)), percentage(share(1, 0))), ("33.3%".to_owned(), "0.0%".to_owned()));
        assert_eq!((percentage(-1e-9), percentage(-0.002)), ("0.0%".to_owned(), "-0.2%".to_owned()));
    }
}
