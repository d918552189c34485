//! Checks profiles of well-formed recordings with extreme numbers: whatever is counted, totals are the sums of their
//! parts.

use std::io::sink;

use stackweave_cli::text::{
    DiffOptions, FlameOptions, FlameShape, FlameTree, Palette, PhasesOptions, TableOptions, TreeOptions, write_diff,
    write_phases, write_table, write_tree,
};
use stackweave_profile::timing::read_timing;
use stackweave_profile::{
    AggregateOptions, Diff, EveryMeasure, Grouping, Measure, Profile, Statistics, View, aggregate,
};
use stackweave_recording::Recording;

use crate::{check_tree, choices_and_recording, range};

/// Checks one input.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check_input(data: &[u8]) {
    let (mut choices, recording) = choices_and_recording(data);
    let measures = [Measure::ALL.as_slice(), &[Measure::Calls]].concat();
    let measure = choices.below(measures.len() + 1);
    let options = AggregateOptions {
        measure: measures.get(measure).copied(),
        range: range(&mut choices),
        lines: choices.below(2) == 0,
        ..AggregateOptions::default()
    };
    let profile = merged(&recording, &options);
    check_tree(&profile);
    check_parts(&recording, &options, &profile);
    check_statistics(&profile);
    check_texts(&profile);
    every_measure(&recording, &options);
    let view = View { show_all: choices.below(2) == 0, ..View::default() };
    check_tree(&merged(&recording, &AggregateOptions { view: Some(view.clone()), ..options.clone() }));
    let timing = read_timing(recording.processes(), &options, &view, None, &mut |_| ()).unwrap();
    write_phases(&mut sink(), &timing, &PhasesOptions::default()).unwrap();
}

fn merged(recording: &Recording, options: &AggregateOptions) -> Profile {
    aggregate(recording.processes(), options, None, &mut |_| ()).unwrap().merged()
}

/// Checks that the threads of a recording together are the whole.
fn check_parts(recording: &Recording, options: &AggregateOptions, whole: &Profile) {
    let options = AggregateOptions { grouping: Grouping::Threads, measure: Some(whole.measure()), ..options.clone() };
    let parts = aggregate(recording.processes(), &options, None, &mut |_| ()).unwrap().parts;
    for part in &parts {
        check_tree(&part.profile);
    }
    let calls = |profile: &Profile| profile.tree().nodes().iter().map(|node| u128::from(node.cost.calls)).sum::<u128>();
    let sum: u128 = parts.iter().map(|part| calls(&part.profile)).sum();
    assert_eq!(sum, calls(whole), "calls of {}", whole.measure());
    let events: u64 = parts.iter().map(|part| part.profile.counts().events).sum();
    assert_eq!(events, whole.counts().events);
}

/// Checks that the calls of the functions add up to those of the tree, and that a profile does not differ from itself.
fn check_statistics(profile: &Profile) {
    let statistics = Statistics::of(profile);
    let sum: u128 = statistics.functions().map(|(_, function)| u128::from(function.calls)).sum();
    let calls: u128 = profile.tree().iter().map(|(_, node)| u128::from(node.cost.calls)).sum();
    assert_eq!(sum, calls);
    let diff = Diff::of(profile, profile, false).unwrap();
    assert!(diff.nodes().iter().all(|node| node.before == node.after && node.before.is_some()));
    assert_eq!(diff.nodes().len(), profile.tree().nodes().len());
    write_diff(&mut sink(), &diff, &DiffOptions::default()).unwrap();
    write_diff(&mut sink(), &diff, &DiffOptions { by_path: true, ..DiffOptions::default() }).unwrap();
}

fn check_texts(profile: &Profile) {
    let view = profile.view(&View::default());
    check_tree(&view);
    write_table(&mut sink(), profile, &TableOptions::default()).unwrap();
    write_tree(&mut sink(), profile, &TreeOptions::default()).unwrap();
    let options = FlameOptions { width: 80, palette: Palette::default() };
    let shape = FlameShape { least: options.least(view.total()), ..FlameShape::default() };
    stackweave_cli::text::write_flame(&mut sink(), &FlameTree::of(&view, &shape), &options).unwrap();
}

fn every_measure(recording: &Recording, options: &AggregateOptions) {
    let all = EveryMeasure::collect(recording.processes(), options, None, &mut |_| ()).unwrap();
    for process in 0..recording.processes().len() {
        all.profiles(process, None).for_each(|part| check_tree(&part.profile));
    }
}
