//! The shared parts of pictures: escaped and shortened text, labels, colours.

mod colour;
mod escape;
mod name;
mod text;

pub(crate) use colour::{KINDS, kind_letter, shade, write_shades};
pub(crate) use escape::Escaped;
pub(crate) use name::{FunctionLabel, one_line};
pub(crate) use text::{CHARACTER, fit, text_width};

use crate::source::Source;

/// The fonts of pictures. They are monospaced, so the width of a text is known.
pub(crate) const FONT: &str = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace";

/// Returns what a picture shows, in one line.
pub(crate) fn subject(source: &Source<'_>) -> String {
    let title = source.title();
    if title.is_empty() { "a recording".to_owned() } else { one_line(&title) }
}

/// Returns the share of `part` in `whole`; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(crate) fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a share as a percentage.
pub(crate) fn percentage(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Formats a number with separators between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with a noun.
pub(crate) fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// Formats the total: `1.20 s of wall time`, `17.9 MiB live at the peak`.
pub(crate) fn amount(measure: stackweave_profile::Measure, total: i64) -> String {
    let (total, counted) = (cost(measure, total), measure.describe());
    match counted.strip_prefix("bytes ") {
        Some(bytes) => format!("{total} {bytes}"),
        None => format!("{total} of {counted}"),
    }
}

/// Formats a cost with its unit.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(crate) fn cost(measure: stackweave_profile::Measure, cost: i64) -> String {
    measure.text(cost as f64)
}
