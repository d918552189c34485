//! Formats figures for the screen.

use std::time::Duration;

use stackweave_profile::{FrameKind, Function, Measure};

/// Formats a number like `1,234`.
pub(super) fn count(number: u64) -> String {
    value(Measure::Allocations, i64::try_from(number).unwrap_or(i64::MAX))
}

/// Formats a number like `12.3k` or `4.56M`.
pub(super) fn short_count(number: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "rounded to three digits for display")]
    let number = number as f64;
    let (unit, name) = match number {
        below if below < 1e4 => return format!("{number:.0}"),
        below if below < 1e6 => (1e3, "k"),
        below if below < 1e9 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    let value = number / unit;
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$}{name}")
}

pub(super) fn bytes(number: u64) -> String {
    value(Measure::LiveBytes, i64::try_from(number).unwrap_or(i64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(super) fn value(measure: Measure, cost: i64) -> String {
    measure.text(cost as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded for display")]
pub(super) fn share(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// Formats a time like `0:07`, `12:34` or `1:02:03`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

pub(super) fn plural(number: usize, noun: &str) -> String {
    let ending = match (number, noun) {
        (1, _) => "",
        (_, noun) if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Returns the location of a function: its file without folders and the line, or its module.
pub(super) fn location(function: &Function) -> String {
    let is_native = function.kind == FrameKind::Native;
    let file = if is_native { function.module_name() } else { function.filename.as_ref() };
    let file = file.map_or("", |file| file.rsplit('/').next().unwrap_or_default());
    match function.first_line.filter(|_| !is_native && !file.is_empty()) {
        Some(line) => format!("{}:{line}", printable(file)),
        None => printable(file),
    }
}

pub(super) use stackweave_core::printable;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened() {
        let counts = [0, 999, 9_999, 12_345, 999_949, 4_560_000, 12_000_000_000].map(short_count);
        assert_eq!(counts, ["0", "999", "9999", "12.3k", "1000k", "4.56M", "12.0G"]);
        assert_eq!([7, 754, 3723].map(|seconds| clock(Duration::from_secs(seconds))), ["0:07", "12:34", "1:02:03"]);
        assert_eq!([1, 2].map(|number| plural(number, "process")), ["1 process", "2 processes"]);
        assert_eq!((share(1, 4), share(5, 4), share(1, 0)), (0.25, 1.0, 0.0));
    }
}
