//! The rows file, and the lines in which other processes report their results.

use std::fmt::Write;

use super::{Outcome, Row};

/// Formats rows as a JSON list, one row per line.
pub(crate) fn list(rows: &[Row<'_>]) -> String {
    let lines = rows.iter().map(object).collect::<Vec<_>>();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

fn object(row: &Row<'_>) -> String {
    format!(
        "  {{\"bench\": {}, \"case\": {}, \"peer\": {}, \"ours\": {:.3}, \"peer_cost\": {:.3}, \"unit\": {}, \"ratio\": {:.3}}}",
        string(row.bench),
        string(row.case),
        string(row.peer),
        row.ours,
        row.peer_cost,
        string(row.unit),
        row.ratio
    )
}

/// Formats one contender's result as a line that [`parse_outcome`] can parse.
pub(crate) fn outcome_line(peer: &str, outcome: &Outcome) -> String {
    let peer = string(peer);
    match outcome {
        Outcome::Measured { cost, frames: Some(frames) } => {
            format!("{{\"peer\": {peer}, \"cost\": {cost:.3}, \"frames\": {frames}}}")
        }
        Outcome::Measured { cost, frames: None } => format!("{{\"peer\": {peer}, \"cost\": {cost:.3}}}"),
        Outcome::Absent(why) => format!("{{\"peer\": {peer}, \"absent\": {}}}", string(why)),
    }
}

/// Parses a line of [`outcome_line`], and returns the contender and its result.
pub(crate) fn parse_outcome(line: &str) -> Option<(String, Outcome)> {
    let number = |key| value(line, key).map(|rest| rest.split([',', '}']).next().unwrap_or_default());
    let outcome = match number("cost") {
        Some(cost) => Outcome::Measured {
            cost: cost.parse().ok()?,
            frames: number("frames").and_then(|frames| frames.parse().ok()),
        },
        None => Outcome::Absent(text(line, "absent")?),
    };
    Some((text(line, "peer")?, outcome))
}

/// Returns the string under `key` in a line that holds one flat object.
pub(crate) fn text(line: &str, key: &str) -> Option<String> {
    let mut characters = value(line, key)?.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => match characters.next()? {
                'u' => {
                    let code = u32::from_str_radix(characters.as_str().get(..4)?, 16).ok()?;
                    text.push(char::from_u32(code)?);
                    characters.nth(3);
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

/// Returns the text after a key, up to the end of the line.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(&format!("\"{key}\": ")).map(|(_, rest)| rest)
}

pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_exactly_the_documented_keys() {
        let row = Row { bench: "native/x", case: "c", peer: "p", ours: 2.0, peer_cost: 5.0, unit: "ns", ratio: 2.5 };
        assert_eq!(
            list(&[row]),
            "[\n  {\"bench\": \"native/x\", \"case\": \"c\", \"peer\": \"p\", \"ours\": 2.000, \"peer_cost\": 5.000, \
             \"unit\": \"ns\", \"ratio\": 2.500}\n]\n"
        );
    }

    #[test]
    fn no_rows_are_an_empty_list() {
        assert_eq!(list(&[]), "[]\n");
    }

    #[test]
    fn outcomes_are_the_same_after_formatting_and_parsing() {
        let outcomes = [
            Outcome::Measured { cost: 98.25, frames: Some(86) },
            Outcome::Measured { cost: -1.5, frames: None },
            Outcome::Absent("short: \"4\" of 86\nframes".to_owned()),
        ];
        for outcome in outcomes {
            let line = outcome_line("a \"peer\"", &outcome);
            assert_eq!(parse_outcome(&line), Some(("a \"peer\"".to_owned(), outcome)));
        }
        assert_eq!(parse_outcome("Traceback (most recent call last):"), None);
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("a\"b\\c\nd"), r#""a\"b\\c\u000ad""#);
        assert_eq!(string("é"), "\"é\"");
    }
}
