//! Diffs as text.

use stackweave_cli::text::{DiffOptions, Sort, write_diff};
use stackweave_core::RawFrame;
use stackweave_profile::{Diff, Profile};
use stackweave_tapes::{Tape, span};

use super::profile_of;

/// Builds a profile of stacks, outermost name first and separated by semicolons, with their weights.
fn profile(stacks: &[(&str, i64)]) -> Profile {
    let mut tape = Tape::new();
    for (time, (stack, weight)) in (0..).zip(stacks) {
        let stack: Vec<RawFrame> = stack.split(';').rev().map(span).collect();
        tape.sample((1, time), &stack, *weight);
    }
    profile_of(tape)
}

fn before() -> Profile {
    profile(&[("main;load", 10), ("main;train;step", 70), ("main;old", 20)])
}

fn after() -> Profile {
    profile(&[("main;new;load", 5), ("main;train;step", 35), ("main;train", 4), ("main;load", 6)])
}

fn text(diff: &Diff, options: &DiffOptions) -> String {
    let mut text = Vec::new();
    write_diff(&mut text, diff, options).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn the_greatest_change_is_written_first() {
    let diff = Diff::of(&before(), &after(), false).unwrap();
    let by_function = "\
before  after  change          function
   100     50     -50  -50.0%  (all)
    70     35     -35  -50.0%  step
    20      -     -20    gone  old
     0      4      +4          train
    10     11      +1  +10.0%  load
";
    assert_eq!(text(&diff, &DiffOptions::default()), by_function);
    let by_path = "\
before  after  change          path
   100     50     -50  -50.0%  (all)
   100     50     -50  -50.0%  main
    70     39     -31  -44.3%    train
    70     35     -35  -50.0%      step
    20      -     -20    gone    old
";
    let options = DiffOptions { by_path: true, min_share: 0.1, ..DiffOptions::default() };
    assert_eq!(text(&diff, &options), by_path);
    let cut = text(&diff, &DiffOptions { limit: Some(1), sort: Sort::Total, ..DiffOptions::default() });
    assert!(cut.contains("  main\n(5 more)\n"), "{cut}");
}

#[test]
fn equal_costs_are_not_written() {
    let diff = Diff::of(&before(), &before(), false).unwrap();
    assert_eq!(text(&diff, &DiffOptions::default()).lines().count(), 2);
}
