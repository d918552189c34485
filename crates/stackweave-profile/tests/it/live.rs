//! The figures of a recording while it is made equal, at its end, those of the whole file.

use std::path::Path;
use std::sync::Arc;

use stackweave_core::EventKind;
use stackweave_profile::live::{LiveCalls, LiveMemory, NativeNames, TopRow, function_rows};
use stackweave_profile::memory::{MemoryQuery, read_usage};
use stackweave_profile::{AggregateOptions, Measure, View};
use stackweave_recording::events::Allocator;
use stackweave_recording::read::{Follower, RecordingSource};
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_tapes::memory::{MemoryStep, MemoryTape};
use stackweave_tapes::{Tape, span};
use stackweave_testkit::growing_file::GrowingFile;
use stackweave_testkit::random::Random;

use crate::common::recording::{TapeExt as _, paths, profile};

/// Shows a process after each part of its file.
fn in_parts(file: &[u8], seed: u64, mut see: impl FnMut(&ProcessRecording)) {
    let mut random = Random::new(seed);
    let growing = GrowingFile::new();
    let mut follower = Follower::open(growing.path()).unwrap();
    let mut rest = file;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(1 + random.below(rest.len().min(1 + file.len() / 5)));
        growing.add(part);
        rest = behind;
        follower.update().unwrap();
        follower.processes().iter().for_each(&mut see);
    }
}

fn read(file: &[u8]) -> ProcessRecording {
    let source: Arc<dyn RecordingSource> = Arc::new(Arc::<[u8]>::from(file));
    Recording::from_source(&source, Path::new("whole.swv")).unwrap().processes()[0].clone()
}

/// Sorts rows for comparison.
fn table(mut rows: Vec<TopRow>) -> Vec<TopRow> {
    let key = |row: &TopRow| (row.function.full_name().to_owned(), row.function.first_line, row.cost.self_cost);
    rows.sort_by_key(key);
    rows
}

const NAMES: [&str; 6] = ["load", "step", "save", "grow", "parse", "visit"];

/// Records calls on several threads: recursion, generators that are resumed, ends without starts, spans that are only
/// recorded as open, losses.
fn calls(seed: u64, has_losses: bool) -> Tape {
    let mut random = Random::new(seed);
    let mut tape = Tape::new();
    let functions: Vec<u32> =
        (0..5).map(|number| tape.python(&format!("C.f{number}"), "site-packages/lib.py", number)).collect();
    (1..=3).for_each(|thread| tape.thread(thread, 100 + thread, "worker"));
    let mut ticks = [0u64; 4];
    for _ in 0..400 {
        let thread = 1 + random.below(3);
        ticks[thread] += random.below(2_000_000) as u64;
        let (number, now) = (u32::try_from(thread).unwrap(), ticks[thread]);
        let name = span(NAMES[random.below(NAMES.len())]);
        let function = Tape::at(functions[random.below(functions.len())], 7);
        match random.below(16) {
            0..4 => tape.begin((number, now), function),
            4..6 => tape.begin((number, now), name),
            6 => tape.resume((number, now), name),
            7..13 => tape.end((number, now)),
            13 => tape.open((number, now), Some(name), random.below(4) as u64),
            14 if has_losses => tape.lose((number, now)),
            _ => tape.flush(number),
        }
    }
    tape
}

#[test]
fn calls_equal_those_of_the_whole_recording() {
    for seed in 0..60 {
        let tape = calls(seed, false);
        let file = if seed % 3 == 0 { tape.unended_bytes() } else { tape.bytes() };
        let whole = read(&file);
        let expected = profile(std::slice::from_ref(&whole), &AggregateOptions::default());
        let (mut live, mut last) = (None, None);
        in_parts(&file, seed, |process| {
            let live = live.get_or_insert_with(|| LiveCalls::new(process));
            live.update(process, u64::MAX, &mut || true).unwrap();
            last = Some(process.clone());
        });
        let (live, last) = (live.unwrap(), last.unwrap());
        let now = live.profile(&last, &NativeNames::default());
        assert_eq!(paths(&now), paths(&expected), "seed {seed}");
        assert_eq!(now.counts(), expected.counts(), "seed {seed}");
        for view in [View::default(), View { show_all: true, ..View::default() }] {
            assert_eq!(table(function_rows(&now, &view)), table(function_rows(&expected, &view)), "seed {seed}");
        }
        assert_eq!(live.events_done(), whole.event_count());
        let begun: u64 = expected.tree().iter().map(|(_, node)| node.cost.calls).sum();
        assert_eq!((live.calls(), live.per_second().iter().sum::<u64>()), (begun, begun), "seed {seed}");
    }
}

#[test]
fn open_calls_count_up_to_now() {
    let mut tape = Tape::new();
    let [outer, inner] = ["outer", "inner"].map(span);
    tape.begin((1, 10), outer);
    tape.begin((1, 20), inner);
    tape.flush(1);
    tape.begin((1, 50), inner);
    tape.flush(1);
    tape.end((1, 100));
    let file = tape.unended_bytes();
    let mut seen = Vec::new();
    let mut live = None;
    in_parts(&file, 3, |process| {
        let live = live.get_or_insert_with(|| LiveCalls::new(process));
        live.update(process, u64::MAX, &mut || true).unwrap();
        let rows = table(function_rows(&live.profile(process, &NativeNames::default()), &View::default()));
        let total = |row: &TopRow| (row.function.full_name().to_string(), row.cost.calls, row.cost.total);
        seen.push(rows.iter().map(total).collect::<Vec<_>>());
    });
    seen.dedup();
    let row = |name: &str, calls, total| (name.to_owned(), calls, total);
    let expected = [
        vec![],
        vec![row("inner", 1, 0), row("outer", 1, 10)],
        vec![row("inner", 2, 30), row("outer", 1, 40)],
        vec![row("inner", 2, 80), row("outer", 1, 90)],
    ];
    assert_eq!(seen, expected);
}

#[test]
fn losses_that_are_known_in_time_end_open_calls() {
    for seed in 0..30 {
        let file = calls(seed, true).bytes();
        let whole = read(&file);
        let mut live = LiveCalls::new(&whole);
        live.update(&whole, u64::MAX, &mut || true).unwrap();
        let expected = profile(std::slice::from_ref(&whole), &AggregateOptions::default());
        assert_eq!(paths(&live.profile(&whole, &NativeNames::default())), paths(&expected), "seed {seed}");
    }
}

#[test]
fn memory_that_a_program_records_is_noticed() {
    for has_host_events in [false, true] {
        let mut tape = calls(1, false);
        if has_host_events {
            tape.allocate((1, 1 << 40), (0x1000, 10), &[span("main")]);
        }
        let whole = read(&tape.bytes());
        let mut live = LiveCalls::new(&whole);
        live.update(&whole, u64::MAX, &mut || true).unwrap();
        assert_eq!((live.has_memory(), LiveMemory::is_recorded(&whole)), (has_host_events, (false, false)));
    }
}

#[test]
fn an_update_can_be_interrupted_and_continued() {
    let whole = read(&calls(5, false).bytes());
    let mut live = LiveCalls::new(&whole);
    let mut steps = 0;
    while live.events_done() < whole.event_count() {
        let before = live.events_done();
        live.update(&whole, u64::MAX, &mut || false).unwrap();
        assert!(live.events_done() > before);
        steps += 1;
    }
    assert!(steps > 10);
    let expected = profile(std::slice::from_ref(&whole), &AggregateOptions::default());
    assert_eq!(paths(&live.profile(&whole, &NativeNames::default())), paths(&expected));
}

/// Records blocks that one thread allocates and another frees, or reallocates; each round is written separately.
fn memory(seed: u64, ends: &mut Vec<u64>) -> MemoryTape {
    let mut random = Random::new(seed);
    let mut tape = MemoryTape::new();
    let mut now = 0;
    for _ in 0..30 {
        for _ in 0..random.below(30) {
            now += 1 + random.below(3) as u64;
            let thread = 1 + u32::try_from(random.below(3)).unwrap();
            let address = 0x1000 + 16 * random.below(25) as u64;
            let stack = vec![span(NAMES[random.below(NAMES.len())]), span("main")];
            let took = |by| MemoryStep::Allocate { address, size: 1 + address % 97, stack, by };
            let step = match random.below(9) {
                0..4 => took(Allocator::Malloc),
                4 => took(Allocator::Realloc),
                5 => MemoryStep::Keep { address },
                _ => MemoryStep::Free { address },
            };
            tape.step(thread, now, &step);
        }
        (1..=3).for_each(|thread| tape.tape.flush(thread));
        now += 1;
        ends.push(now);
    }
    tape
}

#[test]
fn memory_equals_that_of_the_whole_recording() {
    let (mut in_time, mut late) = (0, 0);
    for seed in 0..60 {
        let mut ends = Vec::new();
        let mut tape = memory(seed, &mut ends);
        tape.snapshot(1, false);
        let file = tape.tape.bytes();
        let whole = read(&file);
        let (mut live, mut last) = (None, None);
        let waits = seed % 2 == 0;
        in_parts(&file, seed, |process| {
            let live = live.get_or_insert_with(|| LiveMemory::new(process));
            // Reading waits up to the end of the last complete round.
            let seen = process.latest_ticks().unwrap_or(0);
            let whole_round = ends.iter().copied().filter(|end| *end <= seen).max().unwrap_or(0);
            let until = if waits && process.end().is_none() { whole_round } else { u64::MAX };
            live.update(process, until, &mut || true).unwrap();
            last = Some(process.clone());
        });
        let (live, last) = (live.unwrap(), last.unwrap());
        let now = live.now(&last).unwrap();
        let usage = read_usage(&whole, &MemoryQuery::default(), &mut |_| {}).unwrap();
        assert_eq!(now.totals(), usage.device(EventKind::OWN_DEVICE).unwrap().totals, "seed {seed}");
        for measure in [Measure::LiveBytes, Measure::AllocatedBytes, Measure::PeakBytes] {
            let options = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
            let expected = profile(std::slice::from_ref(&whole), &options);
            assert_eq!(paths(&now.profile(&last, measure, &NativeNames::default())), paths(&expected), "seed {seed}");
        }
        assert_eq!(live.events_done(), whole.event_count(), "seed {seed}");
        if waits { in_time += live.late() } else { late += live.late() }
    }
    assert_eq!(in_time, 0, "a reader that waits gets all events in order");
    assert!(late > 0, "a reader that does not wait gets some events too late");
}

#[test]
fn the_curve_has_the_highest_value_of_each_interval() {
    let mut tape = MemoryTape::new();
    let quarter = 250_000_000;
    let took = |address, size| MemoryStep::Allocate { address, size, stack: vec![span("main")], by: Allocator::Malloc };
    tape.step(1, 10, &took(0x1000, 100));
    tape.step(1, 20, &took(0x2000, 900));
    tape.step(1, 30, &MemoryStep::Free { address: 0x2000 });
    tape.step(2, 3 * quarter, &took(0x3000, 50));
    let whole = read(&tape.tape.unended_bytes());
    let mut live = LiveMemory::new(&whole);
    live.update(&whole, u64::MAX, &mut || true).unwrap();
    assert_eq!(live.curve(), [1000, 100, 100, 150]);
}

#[test]
fn a_device_is_shown_if_only_devices_were_recorded() {
    let mut tape = MemoryTape::new();
    let took = |device, address, size| MemoryStep::HostAllocate { device, address, size, stack: vec![span("main")] };
    tape.step(1, 5, &MemoryStep::Tag { name: Some("step 1") });
    tape.step(1, 10, &took(1, 0x1000, 100));
    tape.step(1, 20, &took(3, 0x2000, 900));
    let whole = read(&tape.tape.unended_bytes());
    let mut live = LiveMemory::new(&whole);
    live.update(&whole, u64::MAX, &mut || true).unwrap();
    let now = live.now(&whole).unwrap();
    assert_eq!((live.curve(), now.totals().figures.live_bytes), (&[100][..], 100));
    assert_eq!(now.profile(&whole, Measure::LiveBytes, &NativeNames::default()).total(), 100);
    assert_eq!(now.remarks(), ["No heap memory was recorded: this is the memory of device 1."]);
    assert!(!now.heaviest_frames(&whole).is_empty());
}

#[test]
fn totals_without_a_history_are_the_last_ones_written() {
    let header = stackweave_tapes::memory::header(&[("recorder", "memory"), ("memory.mode", "aggregate")]);
    let mut tape = MemoryTape::with(&header, stackweave_heap::LedgerOptions::default());
    let took = |address| MemoryStep::Allocate { address, size: 10, stack: vec![span("main")], by: Allocator::Malloc };
    tape.step(1, 10, &took(0x1000));
    tape.snapshot(1, false);
    tape.step(1, 20, &took(0x2000));
    tape.snapshot(2, true);
    let whole = read(&tape.tape.unended_bytes());
    let mut live = LiveMemory::new(&whole);
    live.update(&whole, u64::MAX, &mut || true).unwrap();
    assert_eq!(LiveMemory::is_recorded(&whole), (true, true));
    assert_eq!(live.now(&whole).unwrap().totals().figures.live_bytes, 10);
}
