//! Calls that a program has timed itself, as a table.

use std::cmp::Reverse;
use std::fmt::Write as _;

use stackweave_profile::{TimedCalls, TimedFunction};

/// A function as `pstats` identifies it: file, line and name.
pub type PstatsKey = (String, i64, String);

/// Returns the table that `PyTorch` prints: the functions with the longest total time first, and a line of sums.
/// `functions` are indexed by the numbers of the calls.
pub fn timed_calls_table(calls: &TimedCalls, functions: &[PstatsKey]) -> String {
    let line = "-".repeat(80);
    let mut text = format!(
        "\n=== Aggregate Timings (raw) ===\n{:>8} {:>8} {:>12} {:>12}  function\n{line}\n",
        "ncalls", "pcalls", "tottime", "cumtime"
    );
    let mut rows: Vec<&(u32, TimedFunction)> = calls.functions().iter().collect();
    rows.sort_by_key(|(_, row)| Reverse(row.cost().total));
    let (mut self_sum, mut total_sum) = (0.0, 0.0);
    for (function, row) in rows {
        let cost = row.cost();
        let (self_time, total) = (milliseconds(cost.self_cost), milliseconds(cost.total));
        self_sum += self_time;
        total_sum += total;
        let (file, line, name) = &functions[*function as usize];
        let file = file.rsplit('/').next().unwrap_or_default();
        let (calls, primitive) = (cost.calls, cost.primitive_calls);
        let _ = writeln!(text, "{calls:>8} {primitive:>8} {self_time:>10.2}ms {total:>10.2}ms  {name} ({file}:{line})");
    }
    let (timings, count) = (calls.call_count(), calls.functions().len());
    let _ = writeln!(text, "{line}\nTotal timings: {timings}, unique functions: {count}");
    let _ = write!(text, "Sum tottime: {self_sum:.2}ms, Sum cumtime: {total_sum:.2}ms");
    text
}

#[expect(clippy::cast_precision_loss, reason = "rounded to two digits")]
fn milliseconds(ns: i64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use stackweave_profile::TimedCall;

    use super::*;

    #[test]
    fn the_function_with_the_longest_time_is_first() {
        let mut calls = TimedCalls::default();
        let call = |function, self_ns, total_ns| TimedCall {
            function,
            caller: None,
            self_ns,
            total_ns,
            is_primitive: true,
            is_primitive_edge: true,
        };
        calls.add(&call(0, 1_000_000, 1_000_000));
        calls.add(&call(1, 2_500_000, 3_500_000));
        let places =
            [("/srv/a/load.py".to_owned(), 3, "load".to_owned()), ("main.py".to_owned(), 1, "main".to_owned())];
        let expected = "
=== Aggregate Timings (raw) ===
  ncalls   pcalls      tottime      cumtime  function
--------------------------------------------------------------------------------
       1        1       2.50ms       3.50ms  main (main.py:1)
       1        1       1.00ms       1.00ms  load (load.py:3)
--------------------------------------------------------------------------------
Total timings: 2, unique functions: 2
Sum tottime: 3.50ms, Sum cumtime: 4.50ms";
        assert_eq!(timed_calls_table(&calls, &places), expected);
    }
}
