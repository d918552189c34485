//! Costs by recorded frames equal those of profiles.

use stackweave_profile::{AggregateOptions, Grouping, Measure, RecordedCosts};
use stackweave_tapes::{Tape, native, span};

use crate::common::recording::profile;

/// Records two threads with spans, samples and allocations, some of them without a stack.
fn tape() -> Tape {
    let mut tape = Tape::new();
    for thread in [1, 2] {
        tape.begin((thread, 10), span("outer"));
        tape.begin((thread, 20), span("inner"));
        tape.sample((thread, 25), &[native(0x30), native(0x20)], 7);
        tape.sample((thread, 26), &[], 3);
        tape.allocate((thread, 27), (0x1000 * u64::from(thread), 100), &[native(0x20)]);
        tape.end((thread, 30));
        tape.end((thread, 50));
        tape.allocate((thread, 60), (0x5000 * u64::from(thread), 1), &[]);
    }
    tape.free((1, 70), 0x1000);
    tape
}

#[test]
fn every_measure_sums_up_to_its_profile() {
    let processes = [tape().process()];
    for measure in Measure::ALL {
        for range in [None, Some(0..26), Some(22..65)] {
            let options = AggregateOptions { measure: Some(measure), range, ..AggregateOptions::default() };
            let costs = RecordedCosts::collect(&processes, &options, &mut |_| {}).unwrap();
            let (mut own, mut calls) = (0, 0);
            costs.visit(measure, |cost| {
                own += cost.self_cost;
                calls += cost.calls;
            });
            let profile = profile(&processes, &options);
            let expected: u64 = profile.tree().nodes().iter().map(|node| node.cost.calls).sum();
            assert_eq!((own, calls), (profile.total(), expected), "{options:?}");
        }
    }
}

#[test]
fn frames_are_distinguished_by_address_and_threads_on_request() {
    let processes = [tape().process()];
    let options = AggregateOptions { grouping: Grouping::Threads, ..AggregateOptions::default() };
    let costs = RecordedCosts::collect(&processes, &options, &mut |_| {}).unwrap();
    assert_eq!(costs.measures(), [Measure::WallTime, Measure::Samples, Measure::AllocatedBytes, Measure::Allocations]);
    assert_eq!(costs.missing().count(), 1);
    let mut found = Vec::new();
    costs.visit(Measure::Samples, |cost| {
        found.push((cost.thread, costs.frames_of(cost.stack).count(), cost.calls, cost.self_cost));
    });
    assert_eq!(found, [(Some(1), 2, 1, 7), (Some(1), 2, 1, 3), (Some(2), 2, 1, 7), (Some(2), 2, 1, 3)]);
    found.clear();
    costs.visit(Measure::WallTime, |cost| {
        found.push((cost.thread, costs.frames_of(cost.stack).count(), cost.calls, cost.self_cost));
    });
    assert_eq!(found, [(Some(1), 1, 1, 30), (Some(1), 2, 1, 10), (Some(2), 1, 1, 30), (Some(2), 2, 1, 10)]);
}
