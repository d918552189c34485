//! The recordings of the tests have the contents that their comments describe.

use stackweave_profile::{AggregateOptions, Measure, NodeId, Profile, Statistics, aggregate};
use stackweave_recording::Recording;

use crate::common::examples::{STATISTICS, TOTAL, TREE, example, nasty, nasty_names, random};

fn profile(recording: &Recording, measure: Measure) -> Profile {
    let options = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
    aggregate(recording.processes(), &options, None, &mut |_| {}).unwrap().merged()
}

fn paths(profile: &Profile) -> Vec<(Vec<String>, u64, i64, i64)> {
    let tree = profile.tree();
    let mut paths: Vec<(Vec<String>, u64, i64, i64)> = vec![Default::default(); tree.nodes().len()];
    for (id, node) in tree.iter() {
        let mut path = paths[node.parent.index()].0.clone();
        path.push(profile.functions().function_of(node.frame).full_name().to_string());
        paths[id.index()] = (path, node.cost.calls, node.cost.self_cost, node.cost.total);
    }
    paths.remove(0);
    paths
}

#[test]
fn the_example_has_the_tree_computed_by_hand() {
    let recording = example().recording();
    let profile = profile(&recording, Measure::WallTime);
    let mut expected = TREE.map(|(path, calls, self_cost, total)| {
        (path.iter().map(|&name| name.to_owned()).collect::<Vec<String>>(), calls, self_cost, total)
    });
    let mut found = paths(&profile);
    found.sort();
    expected.sort();
    assert_eq!((found.as_slice(), profile.total()), (expected.as_slice(), TOTAL));
    let statistics = Statistics::of(&profile);
    for (name, calls, primitive_calls, self_cost, total) in STATISTICS {
        let is_it = |(id, _): &(_, _)| **profile.functions().function(*id).full_name() == *name;
        let (_, found) = statistics.functions().find(is_it).unwrap();
        assert_eq!(
            (found.calls, found.primitive_calls, found.self_cost, found.total),
            (calls, primitive_calls, self_cost, total)
        );
    }
}

#[test]
fn the_example_has_samples_and_allocations() {
    let recording = example().recording();
    let total = |measure| profile(&recording, measure).total();
    let totals = [Measure::Samples, Measure::AllocatedBytes, Measure::Allocations, Measure::LiveBytes].map(total);
    assert_eq!(totals, [5, 4224, 3, 128]);
    assert_eq!(profile(&recording, Measure::LiveBytes).tree().node(NodeId::ROOT).cost.self_cost, 28);
}

#[test]
fn the_other_examples_have_the_described_contents() {
    let recording = nasty().recording();
    let profile = profile(&recording, Measure::WallTime);
    assert_eq!(profile.tree().nodes().len(), 2 * nasty_names().len() + 3);
    assert!(
        profile
            .tree()
            .iter()
            .all(|(id, node)| node.cost.self_cost == 10 || id.index() == profile.tree().nodes().len() - 1)
    );
    let recording = random(1, 5000).recording();
    assert_eq!((recording.event_count(), recording.report()), (5000, Vec::new()));
}
