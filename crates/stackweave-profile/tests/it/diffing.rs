//! Two profiles are compared path by path and function by function.

use stackweave_core::RawFrame;
use stackweave_profile::{AggregateOptions, Change, Diff, DiffOptions, Measure, NodeId, Profile, Sort, write_diff};
use stackweave_tapes::{Tape, span};

use crate::common::recording::TapeExt as _;

/// Stacks of names, outermost first and separated by semicolons, and their weights.
fn profile(stacks: &[(&str, i64)]) -> Profile {
    let mut tape = Tape::new();
    for (time, (stack, weight)) in (0..).zip(stacks) {
        let stack: Vec<RawFrame> = stack.split(';').rev().map(span).collect();
        tape.sample((1, time), &stack, *weight);
    }
    tape.profile(&AggregateOptions::default())
}

/// Each path, and its totals on both sides.
fn paths(diff: &Diff) -> Vec<(String, Option<i64>, Option<i64>)> {
    let mut names = vec![String::new(); diff.nodes().len()];
    let mut paths = Vec::new();
    for (index, node) in diff.nodes().iter().enumerate().skip(1) {
        let name = &diff.functions().function_of(node.frame).name;
        names[index] = format!("{}/{name}", names[node.parent.index()]);
        paths.push((names[index].clone(), node.before.map(|cost| cost.total), node.after.map(|cost| cost.total)));
    }
    paths.sort();
    paths
}

fn before() -> Profile {
    profile(&[("main;load", 10), ("main;train;step", 70), ("main;old", 20)])
}

fn after() -> Profile {
    profile(&[("main;new;load", 5), ("main;train;step", 35), ("main;train", 4), ("main;load", 6)])
}

#[test]
fn paths_are_compared() {
    let diff = Diff::of(&before(), &after(), false).unwrap();
    let expected = [
        ("/main", Some(100), Some(50)),
        ("/main/load", Some(10), Some(6)),
        ("/main/new", None, Some(5)),
        ("/main/new/load", None, Some(5)),
        ("/main/old", Some(20), None),
        ("/main/train", Some(70), Some(39)),
        ("/main/train/step", Some(70), Some(35)),
    ];
    let expected: Vec<_> = expected.iter().map(|(name, before, after)| ((*name).to_owned(), *before, *after)).collect();
    assert_eq!(paths(&diff), expected);
    assert_eq!(diff.total(), Change { before: 100.0, after: 50.0 });
    assert_eq!(diff.children().get(NodeId::ROOT).len(), 1);
}

#[test]
fn functions_are_compared_wherever_they_were_called() {
    let diff = Diff::of(&before(), &after(), false).unwrap();
    let find = |name: &str| {
        let is_it =
            |function: &&stackweave_profile::FunctionDiff| &*diff.functions().function(function.function).name == name;
        let found = diff.by_function().iter().find(is_it).unwrap();
        (found.before.map(|cost| (cost.own, cost.total)), found.after.map(|cost| (cost.own, cost.total)))
    };
    assert_eq!(find("load"), (Some((10, 10)), Some((11, 11))));
    assert_eq!(find("train"), (Some((0, 70)), Some((4, 39))));
    assert_eq!((find("old"), find("new")), ((Some((20, 20)), None), (None, Some((0, 5)))));
    assert_eq!(diff.by_function().len(), 6);
}

#[test]
fn shares_compare_runs_of_different_length() {
    let diff = Diff::of(&before(), &after(), true).unwrap();
    assert_eq!(diff.total(), Change { before: 1.0, after: 1.0 });
    let change = diff.change(Some(70), Some(35));
    assert!((change.before - 0.7).abs() < 1e-9 && (change.after - 0.7).abs() < 1e-9);
    let nothing = Diff::of(&Profile::empty(Measure::Samples), &after(), true).unwrap();
    assert_eq!(nothing.total(), Change { before: 0.0, after: 1.0 });
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let diff = Diff::of(&before(), &before(), false).unwrap();
    assert!(diff.nodes().iter().all(|node| node.before == node.after && node.before.is_some()));
    let mut text = Vec::new();
    write_diff(&mut text, &diff, &DiffOptions::default()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), 2);
}

#[test]
fn different_measures_are_refused() {
    assert!(Diff::of(&before(), &Profile::empty(Measure::WallTime), false).is_err());
}

#[test]
fn the_greatest_change_is_written_first() {
    let diff = Diff::of(&before(), &after(), false).unwrap();
    let text = |options: &DiffOptions| {
        let mut text = Vec::new();
        write_diff(&mut text, &diff, options).unwrap();
        String::from_utf8(text).unwrap()
    };
    let by_function = "\
before  after  change          function
   100     50     -50  -50.0%  (all)
    70     35     -35  -50.0%  step
    20      -     -20    gone  old
     0      4      +4          train
    10     11      +1  +10.0%  load
";
    assert_eq!(text(&DiffOptions::default()), by_function);
    let by_path = "\
before  after  change          path
   100     50     -50  -50.0%  (all)
   100     50     -50  -50.0%  main
    70     39     -31  -44.3%    train
    70     35     -35  -50.0%      step
    20      -     -20    gone    old
";
    let options = DiffOptions { by_path: true, min_share: 0.1, ..DiffOptions::default() };
    assert_eq!(text(&options), by_path);
    let cut = text(&DiffOptions { limit: Some(1), sort: Sort::Total, ..DiffOptions::default() });
    assert!(cut.contains("  main\n(5 more)\n"), "{cut}");
}
