//! Checks memory reports of well-formed recordings with extreme numbers: the figures of a device are the sums of those
//! of its stacks.

use std::io::sink;

use stackweave_cli::text::{HeapOptions, HeapView, write_heap};
use stackweave_profile::memory::{
    DeviceUsage, Figures, MemoryQuery, MemoryUsage, UsageSource, add_figures, read_devices, read_history, read_report,
    read_timeline, read_usage, top_stacks,
};
use stackweave_recording::{ProcessRecording, Recording};
use stackweave_testkit::random::Random;

use crate::{check_tree, choices_and_recording, range};

const VIEWS: [HeapView; 9] = [
    HeapView::Summary,
    HeapView::Peak,
    HeapView::Leaks,
    HeapView::Temporary,
    HeapView::Sizes,
    HeapView::Threads,
    HeapView::Tags,
    HeapView::Time,
    HeapView::Devices,
];

/// Checks one input.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check_input(data: &[u8]) {
    let (mut choices, recording) = choices_and_recording(data);
    let query = query(&mut choices);
    for process in recording.processes() {
        check_usage(&read_usage(process, &query, &mut |_| ()).unwrap());
        check_history(process, &query);
    }
    check_report(&recording, &query);
}

fn query(choices: &mut Random) -> MemoryQuery {
    MemoryQuery {
        range: range(choices),
        temporary: (choices.below(2) == 0).then(|| [0, 1, 7, u32::MAX][choices.below(4)]),
        devices: if choices.below(3) == 0 { vec![[-1, 0, 1, 7][choices.below(4)]] } else { Vec::new() },
        ..MemoryQuery::default()
    }
}

fn check_usage(usage: &MemoryUsage) {
    assert!(usage.devices.is_sorted_by_key(|device| (device.device != -1, device.device)));
    for device in &usage.devices {
        assert!(
            device.rows.iter().all(|row| {
                (row.allocator as usize) < usage.allocators.len() && (row.tag as usize) < usage.tags.len()
            })
        );
        // A snapshot contains what its recorder has written, which need not add up.
        if usage.source == UsageSource::Replayed {
            check_sums(device);
        }
    }
}

fn check_sums(device: &DeviceUsage) {
    let mut sum = Figures::default();
    for row in &device.rows {
        add_figures(&mut sum, &row.figures);
        assert!(row.leaked_blocks <= row.figures.live_blocks && row.leaked_bytes <= row.figures.live_bytes);
    }
    let whole = device.totals.figures;
    let counts = |of: &Figures| [of.allocations, of.live_blocks, of.peak_blocks, of.temporary];
    let bytes = |of: &Figures| [of.bytes, of.live_bytes, of.peak_bytes, of.temporary_bytes];
    assert_eq!(counts(&sum), counts(&whole), "device {}", device.device);
    let is_equal = |(sum, whole): (u64, u64)| sum == whole || sum == u64::MAX || whole == u64::MAX;
    let pairs = bytes(&sum).into_iter().zip(bytes(&whole));
    assert!(pairs.clone().all(is_equal), "device {}: {:?}", device.device, pairs.collect::<Vec<_>>());
    assert!(whole.peak_bytes >= whole.live_bytes, "{whole:?}");
    let mut sizes = Figures::default();
    device.sizes.iter().for_each(|(_, figures)| add_figures(&mut sizes, figures));
    assert_eq!(sizes.live_blocks, whole.live_blocks, "blocks by size");
}

fn check_history(process: &ProcessRecording, query: &MemoryQuery) {
    let history = read_history(process, query, &mut |_| ()).unwrap();
    let names = (history.allocators.len(), history.tags.len());
    assert!(history.rows().all(|row| (row.allocator as usize) < names.0 && (row.tag as usize) < names.1));
    // The order is not checked: blocks of a thread may go back in time here.
    read_timeline(process, query.range.clone(), &mut |_| ()).unwrap();
    read_devices(process, query.range.clone(), &mut |_| ()).unwrap();
}

fn check_report(recording: &Recording, query: &MemoryQuery) {
    let mut report = read_report(recording.processes(), query, None, &mut |_| ()).unwrap();
    report.add_devices(recording.processes(), query, None).unwrap();
    [&report.peak, &report.live, &report.temporary].into_iter().for_each(check_tree);
    top_stacks(&report.peak);
    for view in VIEWS {
        write_heap(&mut sink(), &report, &HeapOptions { view, ..HeapOptions::default() }).unwrap();
    }
}
