//! The memory of devices as text.

use stackweave_cli::text::{HeapOptions, HeapView, write_heap};
use stackweave_core::EventKind;
use stackweave_profile::memory::{FromBefore, MemoryQuery, MemoryReport, read_report};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::devices::training;
use stackweave_tapes::memory::{MemoryStep, MemoryTape};
use stackweave_tapes::span;

use super::assert_golden;

const MIB: u64 = 1 << 20;

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

#[test]
fn a_recording_of_device_memory_is_labelled_as_such() {
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
fn devices_are_shown_beside_the_heap() {
    let mut tape = MemoryTape::new();
    let stack = vec![span("main")];
    tape.step(1, 10, &MemoryStep::Allocate { address: 0x1000, size: 60, stack: stack.clone(), by: Allocator::Malloc });
    tape.step(1, 20, &MemoryStep::HostAllocate { device: 1, address: 0x1000, size: 5, stack });
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
