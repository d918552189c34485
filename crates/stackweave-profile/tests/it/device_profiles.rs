//! The memory of devices beside that of the process.

use stackweave_core::EventKind;
use stackweave_profile::memory::{Figures, MemoryQuery, MemoryReport, read_report, read_usage};
use stackweave_profile::{AggregateOptions, Measure, aggregate};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::devices::training;
use stackweave_tapes::memory::{MemoryStep, MemoryTape};
use stackweave_tapes::span;

use crate::common::recording::{path, paths, profile};

const MIB: u64 = 1 << 20;

fn report(processes: &[ProcessRecording], query: &MemoryQuery) -> MemoryReport {
    let mut report = read_report(processes, query, None, &mut |_| {}).unwrap();
    report.add_devices(processes, query, None).unwrap();
    report
}

#[test]
fn selected_threads_do_not_determine_the_device() {
    let stack = vec![span("main")];
    let own = MemoryStep::Allocate { address: 0x1000, size: 60, stack: stack.clone(), by: Allocator::Malloc };
    let steps = [(1, own), (2, MemoryStep::HostAllocate { device: 1, address: 0x1000, size: 5, stack })];
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
fn a_device_does_not_have_the_curve_of_the_heap() {
    let mut tape = MemoryTape::new();
    let stack = vec![span("main")];
    tape.step(1, 10, &MemoryStep::HostAllocate { device: 1, address: 0x1000, size: 5, stack });
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
fn memory_from_before_is_no_leak_candidate_but_counts_otherwise() {
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
fn profiles_are_of_the_device_if_only_devices_were_recorded() {
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
    let options = AggregateOptions { device: Some(EventKind::OWN_DEVICE), ..AggregateOptions::default() };
    assert_eq!(profile(&processes, &options).total(), 0);
    let aggregated = aggregate(&processes, &AggregateOptions::default(), None, &mut |_| {}).unwrap();
    assert_eq!(aggregated.device, 0);
}
