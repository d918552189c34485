//! The tables that the program prints.

use std::fmt::Write;

use super::{Case, Entry, Outcome};

/// Formats every figure of one case.
pub(crate) fn details(case: &Case) -> String {
    let mut text = format!("{}, {}\n", case.bench, case.name);
    let _ = writeln!(text, "  {:<16} {:>9} {:>7} {:>10}  ratio to ours", "", case.unit, "frames", "per frame");
    for (index, entry) in case.entries.iter().enumerate() {
        let _ = write!(text, "  {:<16} ", entry.peer);
        match &entry.outcome {
            Outcome::Absent(why) => text.push_str(why),
            Outcome::Measured { cost, frames } => {
                let per_frame = frames.filter(|&frames| frames > 0).map(|frames| figure(cost / to_f64(frames)));
                let frames = frames.map(|frames| frames.to_string());
                let _ = write!(text, "{:>9} {:>7} {:>10}", figure(*cost), or_dash(frames), or_dash(per_frame));
                if index > 0 {
                    let _ = write!(text, "  {}", or_dash(case.ratio(&entry.outcome).map(times)));
                }
            }
        }
        text.push('\n');
    }
    text
}

/// Formats all cases, with one line for each case and one column for each peer. A cell is the peer's cost divided by
/// ours. It is empty if the peer has no entry in the case.
pub(crate) fn ratios(cases: &[Case]) -> String {
    if cases.is_empty() {
        return "nothing was measured\n".to_owned();
    }
    let mut peers = Vec::new();
    for entry in cases.iter().flat_map(Case::peers) {
        if !peers.contains(&entry.peer) {
            peers.push(entry.peer);
        }
    }
    let mut lines = vec![vec!["case".to_owned(), "ours".to_owned()]];
    lines[0].extend(peers.iter().map(|&peer| peer.to_owned()));
    for case in cases {
        let ours = case.ours().map(|cost| format!("{} {}", figure(cost), case.unit));
        let mut line = vec![format!("{}, {}", case.bench, case.name), ours.unwrap_or_else(|| our_absence(case))];
        line.extend(peers.iter().map(|peer| {
            let entry = case.peers().iter().find(|entry| entry.peer == *peer);
            entry.map(|entry| cell(case, entry)).unwrap_or_default()
        }));
        lines.push(line);
    }
    format!("Each peer's cost divided by ours (above 1: ours is cheaper)\n{}", aligned(&lines))
}

fn our_absence(case: &Case) -> String {
    match case.entries.first().map(|entry| &entry.outcome) {
        Some(Outcome::Absent(why)) => why.clone(),
        _ => "-".to_owned(),
    }
}

fn cell(case: &Case, entry: &Entry) -> String {
    match &entry.outcome {
        Outcome::Absent(why) => why.split(':').next().unwrap_or_default().to_owned(),
        measured @ Outcome::Measured { .. } => or_dash(case.ratio(measured).map(times)),
    }
}

/// Aligns the first column to the left and the others to the right. Each column is as wide as its widest cell.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths = (0..columns).map(width).collect::<Vec<_>>();
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let _ = if column == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Formats a value with three significant digits, or with all digits of a large integer.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn times(ratio: f64) -> String {
    format!("{}x", figure(ratio))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "a count of frames is far below 2^52")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::case;
    use super::*;

    #[test]
    fn details_show_cost_frames_and_ratio() {
        let case = case(&[("ours", Some(50.0)), ("slow", Some(1234.0)), ("gone", None)]);
        let text = details(&case);
        let words = |line: usize| text.lines().nth(line).map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(text.lines().next(), Some("native/same-stack, nofp 10"));
        assert_eq!(words(2), Some(vec!["ours", "50.0", "10", "5.00"]));
        assert_eq!(words(3), Some(vec!["slow", "1234", "10", "123", "24.7x"]));
        assert_eq!(words(4), Some(vec!["gone", "not", "installed"]));
    }

    #[test]
    fn ratios_line_up_under_their_peers() {
        let text = ratios(&[case(&[("ours", Some(50.0)), ("slow", Some(200.0)), ("gone", None)])]);
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines[1], "case                           ours   slow           gone");
        assert_eq!(lines[2], "native/same-stack, nofp 10  50.0 ns  4.00x  not installed");
    }

    #[test]
    fn a_peer_of_one_case_leaves_the_others_empty() {
        let first = case(&[("ours", Some(50.0)), ("a", Some(200.0))]);
        let text = ratios(&[first, case(&[("ours", Some(50.0)), ("b", Some(100.0)), ("a", Some(50.0))])]);
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines[1], "case                           ours      a      b");
        assert_eq!(lines[2], "native/same-stack, nofp 10  50.0 ns  4.00x");
        assert_eq!(lines[3], "native/same-stack, nofp 10  50.0 ns  1.00x  2.00x");
    }

    #[test]
    fn without_ours_there_are_no_ratios() {
        let text = ratios(&[case(&[("ours", None), ("slow", Some(200.0))])]);
        assert!(text.ends_with("not installed     -\n"), "{text}");
        assert_eq!(ratios(&[]), "nothing was measured\n");
    }

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(
            [0.5, 9.99, 10.0, 99.94, 100.2, 12345.6].map(figure),
            ["0.50", "9.99", "10.0", "99.9", "100", "12346"]
        );
    }
}
