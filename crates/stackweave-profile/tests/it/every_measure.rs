//! All measures at once equal each of them alone.

use std::cell::Cell;

use stackweave_core::EventKind;
use stackweave_heap::LedgerOptions;
use stackweave_profile::{AggregateOptions, EveryMeasure, Grouping, Measure, MeasuredProfile, aggregate};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::memory::{MemoryStep, MemoryTape, header};
use stackweave_tapes::{Tape, span};

use crate::common::recording::paths;

const OWN: i64 = EventKind::OWN_DEVICE;

fn all(process: &ProcessRecording, options: &AggregateOptions) -> Vec<MeasuredProfile> {
    let process = std::slice::from_ref(process);
    EveryMeasure::collect(process, options, None, &mut |_| {}).unwrap().profiles(0, None).collect()
}

fn by_thread() -> AggregateOptions {
    AggregateOptions { grouping: Grouping::Threads, ..AggregateOptions::default() }
}

/// Compares each profile with that of its measure alone. Returns measure, device and thread of all.
fn compare(process: &ProcessRecording, options: &AggregateOptions) -> Vec<(Measure, i64, Option<u32>)> {
    let mut found = Vec::new();
    for part in all(process, options) {
        let (measure, device) = (part.profile.measure(), part.device);
        let options = AggregateOptions { measure: Some(measure), device: Some(device), ..options.clone() };
        let alone = aggregate(std::slice::from_ref(process), &options, None, &mut |_| {}).unwrap();
        let alone = alone.parts.into_iter().find(|alone| alone.thread == part.thread).unwrap();
        assert_eq!(paths(&part.profile), paths(&alone.profile), "{measure} of {device}");
        found.push((measure, device, part.thread));
    }
    found
}

/// Records two threads with spans, memory of the process, and of a device.
fn tape(options: &[(&str, &str)]) -> MemoryTape {
    let mut tape = MemoryTape::with(&header(options), LedgerOptions::default());
    tape.tape.thread(1, 11, "main");
    tape.tape.thread(2, 12, "worker");
    let taken = |address, size, name: &str| MemoryStep::Allocate {
        address,
        size,
        stack: vec![span(name), span("main")],
        by: Allocator::Malloc,
    };
    tape.tape.begin((1, 5), span("epoch"));
    for (thread, ticks, step) in [
        (1, 10, taken(0x1000, 60, "a")),
        (2, 20, taken(0x2000, 40, "b")),
        (1, 30, MemoryStep::Free { address: 0x1000 }),
        (1, 40, taken(0x3000, 7, "c")),
        (1, 50, MemoryStep::HostAllocate { device: 3, address: 0x1000, size: 500, stack: vec![span("d")] }),
    ] {
        tape.step(thread, ticks, &step);
    }
    tape.tape.end((1, 90));
    tape
}

fn of_memory(device: i64, thread: u32) -> [(Measure, i64, Option<u32>); 4] {
    [Measure::PeakBytes, Measure::LiveBytes, Measure::AllocatedBytes, Measure::TemporaryBytes]
        .map(|measure| (measure, device, Some(thread)))
}

#[test]
fn memory_is_the_same_from_a_snapshot_and_from_events() {
    let options = [("recorder", "memory"), ("memory.mode", "history")];
    let (replayed, mut kept) = (tape(&options), tape(&options));
    kept.snapshot(1, false);
    let mut expected = vec![(Measure::WallTime, OWN, Some(1))];
    expected.extend(of_memory(OWN, 1).into_iter().chain(of_memory(3, 1)).chain(of_memory(OWN, 2)));
    for process in [replayed.process(), kept.process()] {
        let mut found = compare(&process, &by_thread());
        found.sort_by_key(|(_, _, thread)| *thread);
        assert_eq!(found, expected);
        assert_eq!(compare(&process, &AggregateOptions::default()).len(), 9);
        compare(&process, &AggregateOptions { range: Some(15..45), ..by_thread() });
    }
}

#[test]
fn a_program_that_records_its_memory_has_spans_too() {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    tape.begin((1, 0), span("outer"));
    tape.allocate((1, 10), (0x1000, 100), &[]);
    tape.sample((1, 20), &[span("outer")], 3);
    tape.free((1, 30), 0x1000);
    tape.end((1, 50));
    let mut expected = vec![(Measure::WallTime, OWN, Some(1)), (Measure::Samples, OWN, Some(1))];
    expected.extend(of_memory(OWN, 1));
    assert_eq!(compare(&tape.process(), &by_thread()), expected);
}

#[test]
fn a_requested_measure_is_the_only_one() {
    let process = tape(&[("recorder", "memory")]).process();
    let options =
        AggregateOptions { measure: Some(Measure::LiveBytes), device: Some(3), ..AggregateOptions::default() };
    assert_eq!(compare(&process, &options), [(Measure::LiveBytes, 3, None)]);
}

#[test]
fn a_recording_without_memory_is_read_once() {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    for ticks in 0..1000 {
        tape.begin((1, ticks * 2), span("f"));
        tape.end((1, ticks * 2 + 1));
    }
    let process = tape.process();
    let (most, falls) = (Cell::new(0), Cell::new(0));
    let progress = &mut |bytes: u64| {
        falls.set(falls.get() + u32::from(bytes < most.get()));
        most.set(bytes);
    };
    EveryMeasure::collect(std::slice::from_ref(&process), &by_thread(), None, progress).unwrap();
    assert_eq!((most.get(), falls.get()), (process.bytes(), 0));
}
