//! Recordings become trees that were computed by hand.

use stackweave_core::RawFrame;
use stackweave_profile::{AggregateOptions, Grouping, Measure, NodeId, Profile, Statistics, aggregate};
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::random::Random;

use crate::common::recording::{TapeExt as _, path, paths, profile};

fn with(measure: Measure) -> AggregateOptions {
    AggregateOptions { measure: Some(measure), ..AggregateOptions::default() }
}

/// Records two threads: `main` calls `load` twice and itself once; `worker` only calls `load`.
fn two_threads() -> Tape {
    let mut tape = Tape::new();
    tape.thread(1, 100, "MainThread");
    tape.thread(2, 101, "worker-1");
    let [main, load, worker] = ["main", "load", "worker"].map(span);
    tape.begin((1, 10), main);
    tape.begin((1, 20), load);
    tape.end((1, 25));
    tape.flush(1);
    tape.begin((2, 12), worker);
    tape.begin((2, 14), load);
    tape.flush(2);
    tape.begin((1, 30), load);
    tape.end((1, 37));
    tape.begin((1, 40), main);
    tape.end((1, 60));
    tape.end((1, 110));
    tape.end((2, 20));
    tape.end((2, 50));
    tape
}

#[test]
fn spans_become_a_tree_of_wall_time() {
    let profile = two_threads().profile(&AggregateOptions::default());
    assert_eq!(profile.measure(), Measure::WallTime);
    let expected = [
        path("main", 1, 68, 100),
        path("main;load", 2, 12, 12),
        path("main;main", 1, 20, 20),
        path("worker", 1, 32, 38),
        path("worker;load", 1, 6, 6),
    ];
    assert_eq!(paths(&profile), expected);
    assert_eq!((profile.total(), profile.counts().events, profile.counts().unfinished), (138, 12, 0));
}

#[test]
fn threads_can_be_selected_or_kept_separate() {
    let process = [two_threads().process()];
    let named = |name: &str| AggregateOptions { threads: vec![name.to_owned()], ..AggregateOptions::default() };
    assert_eq!(profile(&process, &named("worker*")).total(), 38);
    assert_eq!(profile(&process, &named("100")).total(), 100);
    assert_eq!(profile(&process, &named("unknown")).total(), 0);
    let apart = AggregateOptions { grouping: Grouping::Threads, ..AggregateOptions::default() };
    let mut parts = aggregate(&process, &apart, None, &mut |_| {}).unwrap().parts;
    parts.sort_by_key(|part| part.thread);
    let totals: Vec<_> = parts.iter().map(|part| (part.process, part.thread, part.profile.total())).collect();
    assert_eq!(totals, [(Some(0), Some(1), 100), (Some(0), Some(2), 38)]);
    let mut merged = Profile::empty(Measure::WallTime);
    for part in &parts {
        merged.merge(&part.profile).unwrap();
    }
    assert_eq!(paths(&merged), paths(&profile(&process, &AggregateOptions::default())));
}

#[test]
fn a_time_range_cuts_spans_at_its_ends() {
    let process = [two_threads().process()];
    let ranged = |range| profile(&process, &AggregateOptions { range: Some(range), ..AggregateOptions::default() });
    let expected = [path("main", 1, 5, 13), path("main;load", 2, 8, 8), path("worker", 1, 13, 13)];
    assert_eq!(paths(&ranged(22..35)), expected);
    // There are no events in this range, but both threads are inside spans.
    assert_eq!(paths(&ranged(38..39)), [path("main", 1, 1, 1), path("worker", 1, 1, 1)]);
    assert_eq!(ranged(38..39).counts().unfinished, 0);
    assert_eq!((ranged(0..5).total(), ranged(200..300).total()), (0, 0));
    // Adjacent ranges add up.
    let whole: i64 = (0..12).map(|ten| ranged(ten * 10..(ten + 1) * 10).total()).sum();
    assert_eq!(whole, 138);
}

#[test]
fn missing_begins_and_ends_are_counted() {
    let mut tape = Tape::new();
    let [a, b, c] = ["a", "b", "c"].map(span);
    tape.end((1, 5));
    tape.begin((1, 10), a);
    tape.begin((1, 15), b);
    tape.instant((1, 16), c, &[]);
    tape.lose((1, 20));
    tape.end((1, 30));
    tape.begin((1, 40), c);
    tape.begin((1, 45), a);
    tape.end((1, 50));
    let profile = tape.profile(&AggregateOptions::default());
    // An instant is no span, but shows that the spans were open.
    let expected = [path("a", 1, 5, 6), path("a;b", 1, 1, 1), path("c", 1, 5, 10), path("c;a", 1, 5, 5)];
    assert_eq!(paths(&profile), expected);
    assert_eq!((profile.counts().unfinished, profile.counts().unmatched_ends), (3, 2));
}

#[test]
fn the_stack_of_a_begin_does_not_determine_its_node() {
    let mut tape = Tape::new();
    let function = tape.python("f", "f.py", 1);
    let (outer, inner) = (span("outer"), span("inner"));
    tape.begin((1, 0), outer);
    tape.begin_at((1, 1), inner, &[Tape::at(function, 3)]);
    tape.end((1, 3));
    tape.end((1, 4));
    let profile = tape.profile(&AggregateOptions::default());
    assert_eq!(paths(&profile), [path("outer", 1, 2, 4), path("outer;inner", 1, 2, 2)]);
}

#[test]
fn samples_count_by_their_weight() {
    let mut tape = Tape::new();
    let [main, step] = [tape.python("main", "m.py", 1), tape.python("Model.step", "m.py", 10)];
    let (early, late) = (Tape::at(main, 3), Tape::at(main, 4));
    tape.sample((1, 1), &[early], 5);
    tape.sample((2, 2), &[Tape::at(step, 11), early], 7);
    tape.sample((1, 3), &[Tape::at(step, 12), late], 1);
    tape.sample((1, 4), &[Tape::at(step, 12), late], 1);
    tape.sample((1, 5), &[], 100);
    let process = [tape.process()];
    let by_function = profile(&process, &AggregateOptions::default());
    assert_eq!(by_function.measure(), Measure::Samples);
    assert_eq!(paths(&by_function), [path("main", 1, 5, 14), path("main;Model.step", 3, 9, 9)]);
    assert_eq!((by_function.total(), by_function.without_frame()), (114, 100));
    let by_line = profile(&process, &AggregateOptions { lines: true, ..AggregateOptions::default() });
    let expected = [
        path("main:3", 1, 5, 12),
        path("main:3;Model.step:11", 1, 7, 7),
        path("main:4", 0, 0, 2),
        path("main:4;Model.step:12", 2, 2, 2),
    ];
    assert_eq!(paths(&by_line), expected);
    let statistics = Statistics::of(&by_line);
    let costs: Vec<_> = statistics.functions().map(|(_, cost)| (cost.calls, cost.self_cost, cost.total)).collect();
    assert_eq!(costs, [(1, 5, 14), (3, 9, 9)]);
}

#[test]
fn allocations_are_matched_with_frees_by_time_across_threads() {
    let mut tape = Tape::new();
    let function = tape.python("make", "m.py", 1);
    let stack = [Tape::at(function, 2)];
    let work = span("work");
    // The second thread's free is written first, but is later.
    tape.free((2, 50), 0x1000);
    tape.flush(2);
    tape.allocate((1, 10), (0x1000, 100), &stack);
    tape.allocate((1, 20), (0x2000, 30), &stack);
    tape.begin((1, 25), work);
    tape.allocate((1, 30), (0x3000, 7), &[]);
    tape.allocate((1, 60), (0x1000, 1), &stack);
    tape.allocate((1, 61), (0x1000, 2), &stack);
    tape.free((1, 70), 0x9999);
    tape.free((1, 71), 0);
    let process = [tape.process()];
    let get = |measure| profile(&process, &with(measure));
    assert_eq!(paths(&get(Measure::AllocatedBytes)), [path("make", 4, 133, 133), path("work", 1, 7, 7)]);
    assert_eq!(paths(&get(Measure::Allocations)), [path("make", 4, 4, 4), path("work", 1, 1, 1)]);
    let live = get(Measure::LiveBytes);
    assert_eq!(paths(&live), [path("make", 2, 32, 32), path("work", 1, 7, 7)]);
    assert_eq!((live.counts().unknown_frees, live.counts().replaced_blocks), (1, 1));
    let until = AggregateOptions { range: Some(15..55), ..with(Measure::LiveBytes) };
    assert_eq!(paths(&profile(&process, &until)), [path("make", 1, 30, 30), path("work", 1, 7, 7)]);
}

#[test]
fn processes_are_merged_on_one_clock() {
    let tape = |pid, started_wall_ns| {
        let mut tape = Tape::started(&ProcessStart { pid, started_wall_ns, ..ProcessStart::default() });
        tape.begin((1, 0), span("run"));
        tape.end((1, 100));
        tape.process()
    };
    let processes = [tape(1, 1000), tape(2, 1050)];
    assert_eq!(paths(&profile(&processes, &AggregateOptions::default())), [path("run", 2, 200, 200)]);
    let ranged = |range| profile(&processes, &AggregateOptions { range: Some(range), ..AggregateOptions::default() });
    assert_eq!((ranged(0..50).total(), ranged(50..100).total(), ranged(100..200).total()), (50, 100, 50));
    let apart = AggregateOptions { grouping: Grouping::Processes, ..AggregateOptions::default() };
    let parts = aggregate(&processes, &apart, None, &mut |_| {}).unwrap().parts;
    assert_eq!(parts.iter().map(|part| part.process).collect::<Vec<_>>(), [Some(0), Some(1)]);
}

#[test]
fn progress_increases_through_all_processes() {
    let processes = [two_threads().process(), two_threads().process()];
    let bytes: u64 = processes.iter().map(stackweave_recording::ProcessRecording::bytes).sum();
    let mut progress = Vec::new();
    aggregate(&processes, &AggregateOptions::default(), None, &mut |done| progress.push(done)).unwrap();
    assert!(progress.is_sorted() && progress.len() > 4, "{progress:?}");
    assert_eq!(progress.last(), Some(&bytes));
}

#[test]
fn profiles_of_different_measures_are_not_merged() {
    let (mut time, bytes) = (Profile::empty(Measure::WallTime), Profile::empty(Measure::LiveBytes));
    let error = time.merge(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "one profile counts wall time, the other bytes live at the end");
}

#[test]
fn frames_without_a_definition_keep_their_cost() {
    let mut tape = Tape::new();
    let [main, step, save] =
        [("main", 1), ("step", 10), ("save", 20)].map(|(name, line)| tape.python(name, "m.py", line));
    tape.sample((1, 1), &[Tape::at(main, 2)], 1);
    tape.flush(1);
    tape.sample((1, 2), &[Tape::at(step, 11), Tape::at(main, 2)], 10);
    tape.begin((1, 3), span("never defined"));
    tape.end((1, 7));
    tape.flush_undefined(1);
    tape.sample((1, 8), &[Tape::at(save, 21), Tape::at(main, 2)], 100);
    let process = [tape.process()];
    let samples = profile(&process, &with(Measure::Samples));
    assert_eq!((samples.total(), samples.without_frame()), (111, 10));
    assert_eq!(paths(&samples), [path("main", 1, 1, 101), path("main;save", 1, 100, 100)]);
    let time = profile(&process, &with(Measure::WallTime));
    assert_eq!(paths(&time), [path("<unknown>", 1, 4, 4)]);
}

#[test]
fn frames_of_source_code_are_callers_of_generated_code() {
    let mut tape = Tape::new();
    let generated = tape.python("kernel", "generated.py", 1);
    tape.behind_line_3(&["inner", "outer"]);
    tape.sample((1, 1), &[Tape::at(generated, 3)], 1);
    tape.sample((1, 2), &[Tape::at(generated, 4)], 10);
    tape.begin((1, 3), Tape::at(generated, 3));
    tape.end((1, 8));
    let process = [tape.process()];
    let samples = profile(&process, &with(Measure::Samples));
    let expected = [
        path("kernel", 1, 10, 10),
        path("outer", 0, 0, 1),
        path("outer;inner", 0, 0, 1),
        path("outer;inner;kernel", 1, 1, 1),
    ];
    assert_eq!(paths(&samples), expected);
    let time = profile(&process, &with(Measure::WallTime));
    let expected = [path("outer", 1, 0, 5), path("outer;inner", 1, 0, 5), path("outer;inner;kernel", 1, 5, 5)];
    assert_eq!(paths(&time), expected);
}

/// Computes the same tree by recursion over the starts of spans, for any blocks.
#[test]
fn random_spans_add_up_for_any_division_into_blocks() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let frames: Vec<RawFrame> = (0..5).map(|name| span(&format!("f{name}"))).collect();
        let mut tape = Tape::new();
        let mut expected: std::collections::BTreeMap<String, (u64, i64, i64)> = std::collections::BTreeMap::new();
        for thread in 1..=3 {
            let mut open: Vec<(String, i64, i64)> = Vec::new();
            let mut now = 0;
            for _ in 0..300 {
                now += i64::try_from(random.below(5)).unwrap();
                let ticks = u64::try_from(now).unwrap();
                if open.is_empty() || (random.below(2) == 0 && open.len() < 12) {
                    let name = random.below(frames.len());
                    let above = open.last().map_or_else(String::new, |(above, ..)| format!("{above};"));
                    open.push((format!("{above}f{name}"), now, 0));
                    tape.begin((thread, ticks), frames[name]);
                } else {
                    close(&mut open, now, &mut expected);
                    tape.end((thread, ticks));
                }
                if random.below(10) == 0 {
                    tape.flush(thread);
                }
            }
            // Open spans end with the thread's last event.
            while !open.is_empty() {
                close(&mut open, now, &mut expected);
            }
        }
        let profile = tape.profile(&AggregateOptions::default());
        let expected: Vec<_> = expected.iter().map(|(name, cost)| path(name, cost.0, cost.1, cost.2)).collect();
        assert_eq!(paths(&profile), expected);
        assert_eq!(profile.total(), profile.tree().nodes().iter().map(|node| node.cost.self_cost).sum::<i64>());
        assert_eq!(profile.tree().node(NodeId::ROOT).cost.self_cost, 0);
    }
}

fn close(
    open: &mut Vec<(String, i64, i64)>,
    now: i64,
    expected: &mut std::collections::BTreeMap<String, (u64, i64, i64)>,
) {
    let (path, began, inside) = open.pop().unwrap();
    let cost = expected.entry(path).or_default();
    *cost = (cost.0 + 1, cost.1 + now - began - inside, cost.2 + now - began);
    if let Some(above) = open.last_mut() {
        above.2 += now - began;
    }
}
