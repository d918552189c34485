//! The rows file.

use std::fmt::Write;

use super::Row;

/// A JSON list, one row per line.
pub(crate) fn list(rows: &[Row<'_>]) -> String {
    let lines = rows.iter().map(object).collect::<Vec<_>>();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

fn object(row: &Row<'_>) -> String {
    format!(
        "  {{\"bench\": {}, \"case\": {}, \"peer\": {}, \"ours\": {:.3}, \"theirs\": {:.3}, \"unit\": {}, \"ratio\": {:.3}}}",
        string(row.bench),
        string(row.case),
        string(row.peer),
        row.ours,
        row.theirs,
        string(row.unit),
        row.ratio
    )
}

fn string(text: &str) -> String {
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
    fn rows_carry_exactly_the_agreed_keys() {
        let row = Row { bench: "native/x", case: "c", peer: "p", ours: 2.0, theirs: 5.0, unit: "ns", ratio: 2.5 };
        assert_eq!(
            list(&[row]),
            "[\n  {\"bench\": \"native/x\", \"case\": \"c\", \"peer\": \"p\", \"ours\": 2.000, \"theirs\": 5.000, \
             \"unit\": \"ns\", \"ratio\": 2.500}\n]\n"
        );
    }

    #[test]
    fn no_rows_are_an_empty_list() {
        assert_eq!(list(&[]), "[]\n");
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("a\"b\\c\nd"), r#""a\"b\\c\u000ad""#);
        assert_eq!(string("é"), "\"é\"");
    }
}
