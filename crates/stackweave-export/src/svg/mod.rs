//! What the pictures share: text that is safe in XML and fits its place, names, colours.

mod colour;
mod escape;
mod name;
mod text;

pub(crate) use colour::{KINDS, kind_letter, shade, write_shades};
pub(crate) use escape::Escaped;
pub(crate) use name::{Named, one_line};
pub(crate) use text::{CHARACTER, fit, text_width};

use crate::source::Source;

/// The fonts of pictures: all letters are of one width, so that what fits is known when a picture is made.
pub(crate) const FONT: &str = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace";

/// What a picture is of, in one line.
pub(crate) fn subject(source: &Source<'_>) -> String {
    let title = source.title();
    if title.is_empty() { "a recording".to_owned() } else { one_line(&title) }
}

/// `part` of `whole`; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "shares are for people")]
pub(crate) fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share as a percentage.
pub(crate) fn percentage(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A number with its thousands apart.
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

/// So many of something.
pub(crate) fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// What all of it cost, in words: `1.20 s of wall time`, `17.9 MiB alive at the peak`.
pub(crate) fn amount(measure: stackweave_profile::Measure, total: i64) -> String {
    let (total, what) = (cost(measure, total), measure.describe());
    match what.strip_prefix("bytes ") {
        Some(bytes) => format!("{total} {bytes}"),
        None => format!("{total} of {what}"),
    }
}

/// A cost as people read it.
#[expect(clippy::cast_precision_loss, reason = "it is shown with few digits")]
pub(crate) fn cost(measure: stackweave_profile::Measure, cost: i64) -> String {
    measure.text(cost as f64)
}
