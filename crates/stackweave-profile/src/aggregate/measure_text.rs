//! Formats costs for display.

use super::Measure;

const SECOND: f64 = 1e9;
const KIBI: f64 = 1024.0;

impl Measure {
    /// Returns a cost in its unit, with three or four digits: `1.234 s`, `56.7 KiB`, `1,234`.
    pub fn text(self, cost: f64) -> String {
        match self {
            Self::WallTime => time(cost),
            Self::AllocatedBytes | Self::LiveBytes | Self::PeakBytes | Self::TemporaryBytes => bytes(cost),
            Self::Calls | Self::Samples | Self::Allocations => count(cost),
        }
    }
}

fn time(ns: f64) -> String {
    let (unit, name) = match ns.abs() {
        below if below < 1e3 => return format!("{ns:.0} ns"),
        below if below < 1e6 => (1e3, "us"),
        below if below < SECOND => (1e6, "ms"),
        _ => (SECOND, "s"),
    };
    format!("{} {name}", digits(ns / unit))
}

fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    // A value that would round to 1024 is 1.00 of the next unit.
    while value.abs() >= KIBI - 0.5 && unit + 1 < units.len() {
        value /= KIBI;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{} {}", digits(value), units[unit]) }
}

fn digits(value: f64) -> String {
    match value.abs() {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Formats a number with separators between thousands.
#[expect(clippy::cast_possible_truncation, reason = "such large numbers need no exact digits")]
fn count(value: f64) -> String {
    if value.abs() < 1000.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let number = value.round() as i64;
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.char_indices() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units_and_few_digits() {
        let times = [0.0, 999.0, 1000.0, 15_249.0, 999_400.0, 12_345_678.0, 1.5e9, 3.6e12, -2500.0];
        let texts = ["0 ns", "999 ns", "1.00 us", "15.2 us", "999 us", "12.3 ms", "1.50 s", "3600 s", "-2.50 us"];
        assert_eq!(times.map(|ns| Measure::WallTime.text(ns)), texts);
        let sizes = [0.0, 1023.0, 1024.0, 10_235.0, 102_395.0, 1_048_575.0, 1_500_000.0, -2048.0];
        let texts = ["0 B", "1023 B", "1.00 KiB", "10.0 KiB", "100 KiB", "1.00 MiB", "1.43 MiB", "-2.00 KiB"];
        assert_eq!(sizes.map(|size| Measure::LiveBytes.text(size)), texts);
        let counts = [0.0, 999.0, 1000.0, 1_234_567.0, -1000.0, 1.5].map(|number| Measure::Samples.text(number));
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567", "-1,000", "1.5"]);
    }
}
