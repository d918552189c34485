//! Profiles are compared by path and by function.

use stackweave_core::RawFrame;
use stackweave_profile::{AggregateOptions, Diff, Measure, NodeId, Profile, ValueChange};
use stackweave_tapes::{Tape, span};

use crate::common::recording::TapeExt as _;

/// Builds a profile of stacks, outermost name first and separated by semicolons, with their weights.
fn profile(stacks: &[(&str, i64)]) -> Profile {
    let mut tape = Tape::new();
    for (time, (stack, weight)) in (0..).zip(stacks) {
        let stack: Vec<RawFrame> = stack.split(';').rev().map(span).collect();
        tape.sample((1, time), &stack, *weight);
    }
    tape.profile(&AggregateOptions::default())
}

/// Returns each path with its totals on both sides.
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
    assert_eq!(diff.total(), ValueChange { before: 100.0, after: 50.0 });
    assert_eq!(diff.children().get(NodeId::ROOT).len(), 1);
}

#[test]
fn functions_are_compared_over_all_their_callers() {
    let diff = Diff::of(&before(), &after(), false).unwrap();
    let find = |name: &str| {
        let is_it =
            |function: &&stackweave_profile::FunctionDiff| &*diff.functions().function(function.function).name == name;
        let found = diff.by_function().iter().find(is_it).unwrap();
        (found.before.map(|cost| (cost.self_cost, cost.total)), found.after.map(|cost| (cost.self_cost, cost.total)))
    };
    assert_eq!(find("load"), (Some((10, 10)), Some((11, 11))));
    assert_eq!(find("train"), (Some((0, 70)), Some((4, 39))));
    assert_eq!((find("old"), find("new")), ((Some((20, 20)), None), (None, Some((0, 5)))));
    assert_eq!(diff.by_function().len(), 6);
}

#[test]
fn shares_compare_runs_of_different_length() {
    let diff = Diff::of(&before(), &after(), true).unwrap();
    assert_eq!(diff.total(), ValueChange { before: 1.0, after: 1.0 });
    let change = diff.change(Some(70), Some(35));
    assert!((change.before - 0.7).abs() < 1e-9 && (change.after - 0.7).abs() < 1e-9);
    let nothing = Diff::of(&Profile::empty(Measure::Samples), &after(), true).unwrap();
    assert_eq!(nothing.total(), ValueChange { before: 0.0, after: 1.0 });
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let diff = Diff::of(&before(), &before(), false).unwrap();
    assert!(diff.nodes().iter().all(|node| node.before == node.after && node.before.is_some()));
}

#[test]
fn different_measures_are_refused() {
    assert!(Diff::of(&before(), &Profile::empty(Measure::WallTime), false).is_err());
}
