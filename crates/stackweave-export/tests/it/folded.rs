//! Folded stacks: read by hand, by gprof2dot, and by inferno if it is installed.

use std::collections::BTreeMap;
use std::fs::File;

use stackweave_export::{ExportOptions, Format};
use stackweave_profile::{AggregateOptions, Measure, aggregate};
use stackweave_recording::Recording;
use stackweave_testkit::folder::Folder;

use crate::common::examples::{TOTAL, TREE, example, nasty, random};
use crate::common::readers::{reader, run, system_program};
use crate::common::{assert_golden, exported_text};

fn folded(recording: &Recording, part: AggregateOptions) -> String {
    exported_text(recording, Format::Folded, &ExportOptions { part, ..ExportOptions::default() })
}

/// Returns stacks with their costs. Each stack has one line.
fn parse(text: &str) -> BTreeMap<Vec<&str>, i64> {
    let mut stacks = BTreeMap::new();
    for line in text.lines() {
        let (stack, cost) = line.rsplit_once(' ').unwrap();
        assert!(stacks.insert(stack.split(';').collect(), cost.parse().unwrap()).is_none(), "{line}");
    }
    stacks
}

#[test]
fn the_example_has_a_line_for_each_stack() {
    let text = folded(&example().recording(), AggregateOptions::default());
    assert_golden("example.folded", &text);
    let stacks = parse(&text);
    let bare = |stack: &Vec<&str>| -> Vec<String> {
        stack.iter().map(|name| name.split(" (").next().unwrap().to_owned()).collect()
    };
    let found: BTreeMap<Vec<String>, i64> = stacks.iter().map(|(stack, cost)| (bare(stack), *cost)).collect();
    let with_cost = TREE.iter().filter(|(_, _, self_cost, _)| *self_cost > 0);
    let expected =
        with_cost.map(|(path, _, self_cost, _)| (path.iter().map(|&name| name.to_owned()).collect(), *self_cost));
    assert_eq!(found, expected.collect());
    assert_eq!(stacks.values().sum::<i64>(), TOTAL);
}

#[test]
fn lines_are_separate_on_request() {
    let text = folded(&example().recording(), AggregateOptions { lines: true, ..AggregateOptions::default() });
    assert!(text.contains("main (train.py:3);Model.step (model.py:12);outer (kernel.c:42);inner (kernel.h:5) 400\n"));
}

#[test]
fn every_measure_agrees_with_the_profile() {
    let recording = random(5, 4000).recording();
    for measure in Measure::ALL {
        let part = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
        let profile = aggregate(recording.processes(), &part, None, &mut |_| {}).unwrap().merged();
        assert_eq!(parse(&folded(&recording, part)).values().sum::<i64>(), profile.total(), "{measure}");
    }
}

#[test]
fn nasty_names_stay_in_their_lines() {
    let text = folded(&nasty().recording(), AggregateOptions::default());
    let stacks = parse(&text);
    let depths: Vec<usize> = stacks.keys().map(Vec::len).collect();
    assert_eq!(depths, (1..=stacks.len()).collect::<Vec<_>>());
    assert!(stacks.keys().flatten().all(|name| !name.is_empty() && !name.contains(char::is_control)));
}

#[test]
fn gprof2dot_reads_it() {
    for tape in [example(), nasty(), random(9, 2000)] {
        let folder = Folder::new();
        let path = folder.write("out", folded(&tape.recording(), AggregateOptions::default()).as_bytes());
        let Some(mut command) = reader("gprof2dot") else { return };
        let dot = run(command.args(["-f", "collapse", "-n0", "-e0"]).arg(path));
        assert!(dot.starts_with("digraph"), "{dot}");
    }
}

#[test]
fn inferno_finds_no_second_profile() {
    for tape in [example(), nasty(), random(9, 2000)] {
        let folder = Folder::new();
        let recording = tape.recording();
        let text = folded(&recording, AggregateOptions::default());
        let total: i64 = parse(&text).values().sum();
        let path = folder.write("out", text.as_bytes());
        let Some(mut command) = system_program("inferno-flamegraph", "--version") else { return };
        let picture = run(command.args(["--minwidth", "0"]).stdin(File::open(path).unwrap()));
        assert!(picture.contains(&format!("<title>all ({} samples", grouped(total))), "{}", &picture[..5000]);
        // With a second profile, it would show differences.
        assert!(!picture.contains("samples, 100.00%; "), "{total}");
    }
}

/// Formats a number with commas between thousands.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
