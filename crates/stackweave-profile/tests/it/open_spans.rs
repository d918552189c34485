//! Records of open spans: they count no calls, change nothing that is known, and correct the state after losses.

use stackweave_profile::AggregateOptions;
use stackweave_tapes::{Tape, span};
use stackweave_testkit::random::Random;

use crate::common::recording::{TapeExt as _, path, paths, profile};

fn all(tape: Tape) -> Vec<(String, u64, i64, i64)> {
    paths(&tape.profile(&AggregateOptions::default()))
}

#[test]
fn an_open_span_has_time_and_is_no_call() {
    let mut tape = Tape::new();
    let [outer, inner, work] = ["outer", "inner", "work"].map(span);
    tape.open((1, 10), Some(outer), 0);
    tape.open((1, 10), Some(inner), 1);
    tape.begin((1, 15), work);
    tape.end((1, 18));
    tape.end((1, 20));
    tape.begin((1, 22), inner);
    tape.end((1, 30));
    tape.end((1, 40));
    let expected = [path("outer", 0, 12, 30), path("outer;inner", 1, 15, 18), path("outer;inner;work", 1, 3, 3)];
    assert_eq!(all(tape), expected);
}

#[test]
fn a_resumed_span_is_a_call() {
    let mut tape = Tape::new();
    let [main, generator] = ["main", "generator"].map(span);
    tape.begin((1, 0), main);
    tape.begin((1, 10), generator);
    tape.end((1, 20));
    tape.resume((1, 30), generator);
    tape.end((1, 35));
    tape.end((1, 40));
    assert_eq!(all(tape), [path("main", 1, 25, 40), path("main;generator", 2, 15, 15)]);
}

#[test]
fn unrecorded_ends_are_at_the_last_event_before() {
    let mut tape = Tape::new();
    let [outer, inner, other] = ["outer", "inner", "other"].map(span);
    tape.begin((1, 0), outer);
    tape.begin((1, 10), inner);
    tape.lose((1, 20));
    tape.open((1, 50), Some(outer), 0);
    tape.begin((1, 60), other);
    tape.end((1, 70));
    tape.end((1, 80));
    let profile = tape.profile(&AggregateOptions::default());
    let expected = [path("outer", 1, 70, 80), path("outer;inner", 1, 0, 0), path("outer;other", 1, 10, 10)];
    assert_eq!(paths(&profile), expected);
    assert_eq!((profile.counts().unfinished, profile.counts().unmatched_ends), (1, 0));
}

#[test]
fn spans_around_an_incomplete_snapshot_are_not_part_of_it() {
    let mut tape = Tape::new();
    let [deep, deeper] = ["deep", "deeper"].map(span);
    tape.open((1, 0), Some(deep), 1_000_000);
    tape.open((1, 0), Some(deeper), 1_000_001);
    for ticks in [10, 20, 30, 40] {
        tape.end((1, ticks));
    }
    tape.open((1, 40), None, 0);
    tape.end((1, 50));
    let profile = tape.profile(&AggregateOptions::default());
    assert_eq!(paths(&profile), [path("deep", 0, 10, 20), path("deep;deeper", 0, 10, 10)]);
    assert_eq!((profile.counts().unfinished, profile.counts().unmatched_ends), (0, 1));
}

/// A step of one thread of a made-up program: a start, a resume, or an end.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(usize),
    Resume(usize),
    End,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn program(random: &mut Random, length: usize) -> Vec<(u64, Step)> {
    let (mut ticks, mut depth, mut steps) = (5_u64, 0_usize, Vec::new());
    while steps.len() < length {
        ticks += random.below(4) as u64;
        let name = random.below(NAMES.len());
        let step = match random.below(if depth > 12 { 8 } else { 5 }) {
            0 | 1 => Step::Begin(name),
            2 => Step::Resume(name),
            _ if depth == 0 => Step::Begin(name),
            _ => Step::End,
        };
        depth = if matches!(step, Step::End) { depth - 1 } else { depth + 1 };
        steps.push((ticks, step));
    }
    steps.extend((0..depth).map(|_| (ticks + 3, Step::End)));
    steps
}

/// Returns the open spans before each step, and after the last one.
fn stacks(program: &[(u64, Step)]) -> Vec<Vec<usize>> {
    let mut stacks = vec![Vec::new()];
    for (_, step) in program {
        let mut stack = stacks.last().unwrap().clone();
        match step {
            Step::Begin(name) | Step::Resume(name) => stack.push(*name),
            Step::End => drop(stack.pop()),
        }
        stacks.push(stack);
    }
    stacks
}

fn snapshot(tape: &mut Tape, ticks: u64, stack: &[usize]) {
    for (depth, name) in (0..).zip(stack) {
        tape.open((1, ticks), Some(span(NAMES[*name])), depth);
    }
    if stack.is_empty() {
        tape.open((1, ticks), None, 0);
    }
}

fn step(tape: &mut Tape, (ticks, step): (u64, Step)) {
    match step {
        Step::Begin(name) => tape.begin((1, ticks), span(NAMES[name])),
        Step::Resume(name) => tape.resume((1, ticks), span(NAMES[name])),
        Step::End => tape.end((1, ticks)),
    }
}

#[test]
fn snapshots_of_known_spans_change_nothing() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let program = program(&mut random, 150);
        let stacks = stacks(&program);
        let (mut plain, mut with_snapshots) = (Tape::new(), Tape::new());
        for (index, at) in program.iter().enumerate() {
            step(&mut plain, *at);
            if random.below(4) == 0 {
                snapshot(&mut with_snapshots, at.0, &stacks[index]);
            }
            step(&mut with_snapshots, *at);
        }
        assert_eq!(all(with_snapshots), all(plain), "seed {seed}");
    }
}

/// After a snapshot everything is as if no events were missing before it, whether at the start, as in a ring, or in the
/// middle, as with full buffers.
#[test]
fn a_snapshot_corrects_the_state_after_losses() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let program = program(&mut random, 120);
        let stacks = stacks(&program);
        let from = if seed % 3 == 0 { 0 } else { random.below(program.len() - 2) };
        let to = from + 1 + random.below(program.len() - from - 1);
        let healed = program[to].0;
        let (mut whole, mut torn) = (Tape::new(), Tape::new());
        for (index, at) in program.iter().enumerate() {
            step(&mut whole, *at);
            if index == to {
                if from > 0 && seed % 2 == 0 {
                    torn.lose((1, program[from].0));
                }
                snapshot(&mut torn, healed, &stacks[index]);
            }
            if !(from..to).contains(&index) {
                step(&mut torn, *at);
            }
        }
        let options = AggregateOptions { range: Some(healed..u64::MAX), ..AggregateOptions::default() };
        let times = |tape: Tape| {
            let all = paths(&profile(&[tape.process()], &options));
            all.into_iter()
                .map(|(path, _, own, total)| (path, own, total))
                .filter(|path| path.2 > 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(times(torn), times(whole), "seed {seed}, {from}..{to}");
    }
}
