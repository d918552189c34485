//! What people read about the memory of devices.

use stackweave_core::EventKind;
use stackweave_profile::memory::{Figures, FromBefore, MemoryQuery, MemoryReport, read_report, read_usage};
use stackweave_profile::{AggregateOptions, HeapOptions, HeapView, Measure, aggregate, write_heap};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::{Tape, span};

use crate::common::devices::{DeviceStep, DeviceTape};
use crate::common::memory::{MemoryTape, Step};
use crate::common::recording::{path, paths, profile};

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// A program that trains: a block from before, batches that come and go, a graph's pool, and a request that fails.
fn training() -> ProcessRecording {
    let total = (64 * MIB).to_string();
    let mut tape = DeviceTape::with(&[("device.0.name", "Toy 9000"), ("device.0.total", &total)]);
    tape.tape.thread(1, 4711, "MainThread");
    let main = Tape::at(tape.tape.python("main", "/srv/app/main.py", 10), 12);
    let train = Tape::at(tape.tape.python("Trainer.train", "/srv/app/trainer.py", 33), 40);
    let step = Tape::at(tape.tape.python("Trainer.step", "/srv/app/trainer.py", 77), 80);
    let graph = 1 << 63 | 3;
    let taken = |address, size| DeviceStep::TakeAt { address, size, stack: vec![step, train, main] };
    let block = |address, size, asked, flags| DeviceStep::BlockState { address, size, asked, flags, pool: 0 };
    let mut steps = vec![
        (1, DeviceStep::SegmentPresent { address: 0x10_0000, size: 20 * MIB, pool: 0 }),
        (2, DeviceStep::Present { address: 0x10_0000, size: 2 * MIB }),
        (10, taken(0x40_0000, 5 * MIB)),
        (20, DeviceStep::SegmentMap { address: 0x8000_0000, size: 8 * MIB, pool: graph }),
        (30, DeviceStep::Take { address: 0x8000_0000, size: 6 * MIB, pool: graph }),
        (40, taken(0x90_0000, 3 * MIB)),
        (60, DeviceStep::Request { address: 0x90_0000 }),
        (70, DeviceStep::Request { address: 0x8000_0000 }),
        (75, DeviceStep::Complete { address: 0x8000_0000 }),
        (80, DeviceStep::SegmentUnmap { address: 0x8000_0000, size: 4 * MIB }),
        (90, DeviceStep::OutOfMemory { size: 60 * MIB, free: 36 * MIB, stack: vec![step, train, main] }),
    ];
    let account = [
        DeviceStep::Begin { reason: 1 },
        DeviceStep::SegmentState { address: 0x10_0000, size: 20 * MIB, pool: 0 },
        block(0x10_0000, 2 * MIB, 2 * MIB, 3),
        block(0x30_0000, MIB, 0, 0),
        block(0x40_0000, 6 * MIB, 5 * MIB, 3),
        block(0x90_0000, 3 * MIB, 3 * MIB, 2),
        block(0xc0_0000, 8 * MIB, 0, 0),
        DeviceStep::SegmentState { address: 0x8040_0000, size: 4 * MIB, pool: graph },
        DeviceStep::BlockState { address: 0x8040_0000, size: 4 * MIB, asked: 0, flags: 0, pool: graph },
        DeviceStep::End,
    ];
    steps.extend(account.map(|step| (91, step)));
    for (ms, step) in steps {
        tape.step(1, ms * MS, 0, &step);
    }
    tape.process()
}

fn report(processes: &[ProcessRecording], query: &MemoryQuery) -> MemoryReport {
    let mut report = read_report(processes, query, None, &mut |_| {}).unwrap();
    report.add_devices(processes, query, None).unwrap();
    report
}

fn text(report: &MemoryReport, view: HeapView) -> String {
    let mut text = Vec::new();
    write_heap(&mut text, report, &HeapOptions { view, limit: 3, ..HeapOptions::default() }).unwrap();
    String::from_utf8(text).unwrap()
}

/// Compares a text with the file of this name. With `STACKWEAVE_GOLDEN` set, the file is written.
fn assert_golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("STACKWEAVE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

#[test]
fn a_recording_of_a_device_is_told_as_one() {
    let report = report(&[training()], &MemoryQuery::default());
    assert_eq!((report.device, report.from_before), (0, FromBefore { blocks: 1, bytes: 2 * MIB }));
    for (name, view) in [
        ("summary", HeapView::Summary),
        ("time", HeapView::Time),
        ("devices", HeapView::Devices),
        ("leaks", HeapView::Leaks),
    ] {
        assert_golden(&format!("device-{name}.txt"), &text(&report, view));
    }
}

#[test]
fn devices_are_told_beside_the_process_s_own_memory() {
    let mut tape = MemoryTape::new();
    let stack = vec![span("main")];
    tape.step(1, 10, &Step::Take { address: 0x1000, size: 60, stack: stack.clone(), by: Allocator::Malloc });
    tape.step(1, 20, &Step::HostTake { device: 1, address: 0x1000, size: 5, stack });
    tape.snapshot(1, false);
    let processes = [tape.process()];
    let of = |devices: &[i64]| report(&processes, &MemoryQuery { devices: devices.to_vec(), ..MemoryQuery::default() });
    let own = of(&[]);
    assert_eq!((own.device, own.device_memory.len()), (EventKind::OWN_DEVICE, 1));
    let summary = text(&own, HeapView::Summary);
    assert!(summary.starts_with("Memory  ") && summary.contains("\nDevice 1\n  peak        5 B in use"), "{summary}");
    let device = of(&[1]);
    assert_eq!(device.timeline.highest(), (Some(5), Some(0)));
    assert!(text(&device, HeapView::Time).contains("in use, up to 5 B; • reserved, up to 0 B"));
    assert!(device.has_device(1) && !device.has_device(0));
}

#[test]
fn the_threads_that_are_asked_for_do_not_say_whose_memory_it_is() {
    let stack = vec![span("main")];
    let own = Step::Take { address: 0x1000, size: 60, stack: stack.clone(), by: Allocator::Malloc };
    let steps = [(1, own), (2, Step::HostTake { device: 1, address: 0x1000, size: 5, stack })];
    for has_snapshot in [true, false] {
        let mut tape = MemoryTape::new();
        tape.tape.thread(1, 101, "main");
        tape.tape.thread(2, 102, "worker");
        for (ticks, (thread, step)) in (10..).zip(&steps) {
            tape.step(*thread, ticks, step);
        }
        if has_snapshot {
            tape.snapshot(1, false);
        }
        let processes = [tape.process()];
        let query = MemoryQuery { threads: vec!["worker".to_owned()], ..MemoryQuery::default() };
        let of_worker = report(&processes, &query);
        assert_eq!((of_worker.device, of_worker.is_empty()), (EventKind::OWN_DEVICE, true));
        for measure in [Measure::PeakBytes, Measure::AllocatedBytes] {
            let threads = query.threads.clone();
            let options = AggregateOptions { threads, measure: Some(measure), ..AggregateOptions::default() };
            let done = aggregate(&processes, &options, None, &mut |_| {}).unwrap();
            assert_eq!((done.device, done.merged().total()), (EventKind::OWN_DEVICE, 0));
        }
    }
}

#[test]
fn a_device_does_not_have_the_curve_of_the_process() {
    let mut tape = MemoryTape::new();
    let stack = vec![span("main")];
    tape.step(1, 10, &Step::HostTake { device: 1, address: 0x1000, size: 5, stack });
    tape.curve(20, 100.0, 200.0);
    tape.snapshot(1, false);
    let processes = [tape.process()];
    let of = |devices: &[i64]| {
        let query = MemoryQuery { devices: devices.to_vec(), ..MemoryQuery::default() };
        read_report(&processes, &query, None, &mut |_| {}).unwrap().timeline.points.len()
    };
    assert_eq!((of(&[EventKind::OWN_DEVICE]), of(&[1])), (1, 0));
}

#[test]
fn what_was_there_before_is_no_leak_but_counts_in_all_else() {
    let process = training();
    let usage = read_usage(&process, &MemoryQuery::default(), &mut |_| {}).unwrap();
    let device = usage.device(0).unwrap();
    let before = device.rows.iter().find(|row| usage.is_from_before(row)).unwrap();
    let Figures { live_bytes, peak_bytes, .. } = before.figures;
    assert_eq!((live_bytes, peak_bytes, before.leaked_bytes, before.leaked_blocks), (2 * MIB, 2 * MIB, 0, 0));
    assert_eq!(device.rows.iter().map(|row| row.leaked_bytes).sum::<u64>(), 5 * MIB);
    assert_eq!(device.totals.figures.live_bytes, 7 * MIB);
}

#[test]
fn profiles_are_of_the_device_where_there_is_nothing_else() {
    let processes = [training()];
    let of = |measure| profile(&processes, &AggregateOptions { measure, ..AggregateOptions::default() });
    let total = |measure| u64::try_from(of(Some(measure)).total()).unwrap();
    assert_eq!(total(Measure::PeakBytes), 16 * MIB);
    assert_eq!(total(Measure::LiveBytes), 5 * MIB);
    assert_eq!(total(Measure::AllocatedBytes), 16 * MIB);
    let merged = of(None);
    assert_eq!(merged.measure(), Measure::PeakBytes);
    let of_step: Vec<_> = paths(&merged).into_iter().filter(|(path, ..)| path.contains("Trainer.step")).collect();
    let own = i64::try_from(8 * MIB).unwrap();
    assert_eq!(of_step, [path("main;Trainer.train;Trainer.step", 2, own, own)]);
    let asked = AggregateOptions { device: Some(EventKind::OWN_DEVICE), ..AggregateOptions::default() };
    assert_eq!(profile(&processes, &asked).total(), 0);
    let aggregated = aggregate(&processes, &AggregateOptions::default(), None, &mut |_| {}).unwrap();
    assert_eq!(aggregated.device, 0);
}
