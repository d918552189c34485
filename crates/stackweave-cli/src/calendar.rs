//! Dates and times as text.

use chrono::DateTime;

/// Formats nanoseconds since 1970 as a date and a time of the day, in UTC.
pub(crate) fn utc(wall_ns: i64) -> String {
    match DateTime::from_timestamp(wall_ns.div_euclid(1_000_000_000), 0) {
        Some(moment) if wall_ns >= 0 => moment.to_string(),
        _ => "before 1970".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_become_calendar_dates() {
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, text) in cases {
            assert_eq!(utc(seconds * 1_000_000_000), text);
        }
        assert_eq!(utc(-1), "before 1970");
    }
}
