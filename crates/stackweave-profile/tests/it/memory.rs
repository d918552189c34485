//! Memory figures compared with ones computed by hand.

use stackweave_core::EventKind;
use stackweave_heap::LedgerOptions;
use stackweave_profile::memory::{
    Figures, MemoryQuery, MemoryTimeline, MemoryUsage, TimelinePoint, UsageSource, read_history, read_timeline,
    read_usage,
};
use stackweave_profile::{AggregateOptions, Diff, Grouping, Measure};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::memory::{MemoryStep, MemoryTape, header};
use stackweave_tapes::{Tape, recording, span};

use crate::common::recording::{path, paths, profile};

const OWN: i64 = EventKind::OWN_DEVICE;

fn allocate(address: u64, size: u64, names: &[&str]) -> MemoryStep {
    allocated_by(Allocator::Malloc, address, size, names)
}

fn allocated_by(by: Allocator, address: u64, size: u64, names: &[&str]) -> MemoryStep {
    MemoryStep::Allocate { address, size, stack: names.iter().map(|name| span(name)).collect(), by }
}

fn free(address: u64) -> MemoryStep {
    MemoryStep::Free { address }
}

/// Records `a`, which allocates 100 bytes and keeps 40, and `b`, which has two pages at the peak and keeps one.
fn tape() -> MemoryTape {
    let mut tape = MemoryTape::new();
    tape.tape.thread(1, 11, "main");
    tape.tape.thread(2, 12, "worker");
    for (thread, ticks, step) in [
        (1, 10, allocate(0x1000, 60, &["a", "main"])),
        (1, 20, allocate(0x2000, 40, &["a", "main"])),
        (2, 25, MemoryStep::Tag { name: Some("step 1") }),
        (2, 30, allocated_by(Allocator::Mmap, 0x10000, 8192, &["b", "main"])),
        (1, 40, allocate(0x3000, 7, &["c", "main"])),
        (1, 41, free(0x3000)),
        (1, 50, free(0x1000)),
        (2, 60, MemoryStep::Unmap { address: 0x10000, size: 4000 }),
        (2, 65, MemoryStep::Tag { name: None }),
        (2, 70, allocated_by(Allocator::Calloc, 0x4000, 8, &["c", "main"])),
        (1, 80, free(0x9000)),
    ] {
        tape.step(thread, ticks, &step);
    }
    tape
}

fn usage(process: &ProcessRecording, query: &MemoryQuery) -> MemoryUsage {
    read_usage(process, query, &mut |_| {}).unwrap()
}

/// Returns for each row the innermost function, allocator, tag and thread; allocations, live, peak, temporary and
/// leaked bytes.
fn rows(process: &ProcessRecording, usage: &MemoryUsage, device: i64) -> Vec<(String, [u64; 5])> {
    let dictionary = process.dictionary();
    let text = |row: &stackweave_profile::memory::UsageRow| {
        let frame = dictionary.stack(row.stack).unwrap().1;
        let name = dictionary.string(dictionary.names(frame)[0].name).unwrap();
        let (allocator, tag) = (&usage.allocators[row.allocator as usize], &usage.tags[row.tag as usize]);
        let of = row.figures;
        let numbers = [of.allocations, of.live_bytes, of.peak_bytes, of.temporary_bytes, row.leaked_bytes];
        (format!("{name} {allocator} {tag} {}", row.thread), numbers)
    };
    let mut rows: Vec<_> = usage.device(device).unwrap().rows.iter().map(text).collect();
    rows.sort();
    rows
}

fn row(text: &str, numbers: [u64; 5]) -> (String, [u64; 5]) {
    (text.to_owned(), numbers)
}

#[test]
fn replayed_and_recorded_figures_are_equal_and_correct() {
    let replayed = tape().process();
    let kept = {
        let mut tape = tape();
        tape.snapshot(1, false);
        tape.process()
    };
    for (process, source) in [(&replayed, UsageSource::Replayed), (&kept, UsageSource::Snapshot)] {
        let usage = usage(process, &MemoryQuery::default());
        assert_eq!(usage.source, source);
        let own = usage.device(OWN).unwrap();
        let expected = Figures {
            allocations: 5,
            bytes: 8307,
            live_blocks: 3,
            live_bytes: 4144,
            peak_blocks: 4,
            peak_bytes: 8299,
            temporary: 1,
            temporary_bytes: 7,
        };
        assert_eq!((own.totals.figures, own.totals.peak_ticks), (expected, 40));
        assert_eq!((own.totals.frees, own.totals.unknown_frees, own.totals.replaced), (3, 1, 0));
        let expected = [
            row("a malloc  1", [2, 40, 100, 0, 40]),
            row("b mmap step 1 2", [1, 4096, 8192, 0, 4096]),
            row("c calloc  2", [1, 8, 0, 0, 8]),
            row("c malloc  1", [1, 0, 7, 7, 0]),
        ];
        assert_eq!(rows(process, &usage, OWN), expected);
        let sizes: Vec<(u64, u64)> = own.sizes.iter().map(|(most, figures)| (*most, figures.allocations)).collect();
        assert_eq!(sizes, [(8, 2), (64, 2), (8192, 1)]);
    }
}

#[test]
fn a_range_has_its_own_peak_and_leak_candidates() {
    let mut tape = tape();
    tape.snapshot(1, false);
    let process = tape.process();
    let query = |range| MemoryQuery { range: Some(range), ..MemoryQuery::default() };
    let late = usage(&process, &query(45..75));
    assert_eq!(late.source, UsageSource::Replayed);
    let own = late.device(OWN).unwrap();
    // Live at its start: 100 bytes and two pages.
    assert_eq!((own.totals.figures.peak_bytes, own.totals.figures.allocations, own.totals.frees), (8292, 1, 2));
    let expected = [
        row("a malloc  1", [0, 40, 100, 0, 0]),
        row("b mmap step 1 2", [0, 4096, 8192, 0, 0]),
        row("c calloc  2", [1, 8, 0, 0, 8]),
    ];
    assert_eq!(rows(&process, &late, OWN), expected);
    let early = usage(&process, &query(0..35));
    assert_eq!(early.device(OWN).unwrap().totals.figures.peak_bytes, 8292);
    let empty = usage(&process, &query(1000..2000));
    let figures = empty.device(OWN).unwrap().totals.figures;
    assert_eq!((figures.allocations, figures.live_bytes, figures.peak_bytes), (0, 4144, 4144));
}

#[test]
fn threads_and_tags_select_rows() {
    let process = tape().process();
    let of = |threads: &[&str], tags: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let query = MemoryQuery { threads: texts(threads), tags: texts(tags), ..MemoryQuery::default() };
        let usage = usage(&process, &query);
        let own = usage.device(OWN).unwrap();
        assert!(own.sizes.is_empty());
        (own.totals.figures.peak_bytes, own.totals.figures.live_bytes, own.totals.peak_ticks)
    };
    assert_eq!(of(&["worker"], &[]), (8192, 4104, 40));
    assert_eq!(of(&["11"], &[]), (107, 40, 40));
    assert_eq!(of(&[], &["step 1"]), (8192, 4096, 40));
    assert_eq!(of(&[], &["step"]), (0, 0, 40));
    assert_eq!(of(&["main"], &["st*"]), (0, 0, 40));
}

#[test]
fn another_limit_of_temporary_blocks_is_replayed() {
    let mut tape = tape();
    tape.snapshot(1, false);
    let process = tape.process();
    let of = |temporary| {
        let usage = usage(&process, &MemoryQuery { temporary, ..MemoryQuery::default() });
        (usage.source, usage.device(OWN).unwrap().totals.figures.temporary_bytes)
    };
    assert_eq!(of(Some(1)), (UsageSource::Snapshot, 7));
    // The first block was freed after its thread had allocated two others.
    assert_eq!(of(Some(2)), (UsageSource::Replayed, 67));
}

#[test]
fn a_complete_snapshot_counts_and_a_later_one_replaces_it() {
    let start = header(&[("recorder", "memory"), ("memory.mode", "aggregate")]);
    let mut tape = MemoryTape::with(&start, LedgerOptions::default());
    tape.step(1, 10, &allocate(0x1000, 60, &["a"]));
    tape.snapshot(1, false);
    tape.step(1, 20, &allocate(0x2000, 40, &["b"]));
    tape.snapshot(2, false);
    tape.step(1, 30, &allocate(0x3000, 500, &["c"]));
    tape.step(1, 40, &MemoryStep::HostAllocate { device: 0, address: 1, size: 5, stack: vec![span("d")] });
    tape.snapshot(3, true);
    let process = recording(tape.tape.unended_bytes()).processes()[0].clone();
    let usage = usage(&process, &MemoryQuery { range: Some(0..5), ..MemoryQuery::default() });
    assert_eq!(usage.device(OWN).unwrap().totals.figures.live_bytes, 100);
    assert_eq!(usage.devices.len(), 1);
    assert!(usage.remarks.iter().any(|remark| remark.contains("without a history")), "{:?}", usage.remarks);
}

#[test]
fn a_truncated_recording_is_replayed_from_its_last_snapshot() {
    let mut tape = MemoryTape::new();
    tape.step(1, 10, &allocate(0x1000, 60, &["a"]));
    tape.snapshot(1, false);
    tape.step(1, 20, &allocate(0x2000, 40, &["b"]));
    let process = recording(tape.tape.unended_bytes()).processes()[0].clone();
    let usage = usage(&process, &MemoryQuery::default());
    assert_eq!(usage.source, UsageSource::Replayed);
    assert_eq!(usage.device(OWN).unwrap().totals.figures.live_bytes, 100);
}

#[test]
fn a_failed_call_frees_nothing() {
    let mut tape = MemoryTape::new();
    tape.step(1, 10, &allocate(0x1000, 60, &["a"]));
    tape.step(1, 20, &free(0x1000));
    tape.step(1, 21, &MemoryStep::Keep { address: 0x1000 });
    tape.step(1, 30, &allocated_by(Allocator::Mmap, 0x10000, 4096, &["b"]));
    tape.step(1, 40, &MemoryStep::Unmap { address: 0x10000, size: 4096 });
    tape.step(1, 41, &MemoryStep::Keep { address: 0x10000 });
    let process = tape.process();
    let own = usage(&process, &MemoryQuery::default());
    let totals = own.device(OWN).unwrap().totals;
    assert_eq!((totals.figures.live_bytes, totals.figures.allocations, totals.frees), (4156, 2, 0));
    let history = read_history(&process, &MemoryQuery::default(), &mut |_| {}).unwrap();
    assert!(history.rows().all(|row| row.freed_ns.is_none()), "{history:?}");
}

#[test]
fn devices_are_separate_and_segments_are_not_counted() {
    let mut tape = MemoryTape::new();
    let stack = || vec![span("model")];
    tape.step(1, 5, &MemoryStep::Segment { device: 0, address: 0, size: 1 << 20 });
    tape.step(1, 10, &MemoryStep::HostAllocate { device: 0, address: 0x1000, size: 100, stack: stack() });
    tape.step(1, 11, &allocate(0x1000, 7, &["a"]));
    tape.step(1, 20, &MemoryStep::HostAllocate { device: 1, address: 0x1000, size: 50, stack: stack() });
    tape.step(1, 30, &MemoryStep::HostFree { device: 0, address: 0x1000 });
    tape.snapshot(1, false);
    let process = tape.process();
    for range in [None, Some(0..100)] {
        let usage = usage(&process, &MemoryQuery { range, ..MemoryQuery::default() });
        let of = |device| {
            let figures = usage.device(device).unwrap().totals.figures;
            (figures.live_bytes, figures.peak_bytes)
        };
        assert_eq!((of(OWN), of(0), of(1)), ((7, 7), (0, 100), (50, 50)));
    }
    for (device, total) in [(None, 7), (Some(0), 100), (Some(1), 50), (Some(5), 0)] {
        for measure in [None, Some(Measure::PeakBytes)] {
            let options = AggregateOptions { device, measure, ..AggregateOptions::default() };
            assert_eq!(profile(std::slice::from_ref(&process), &options).total(), total);
        }
        let options = AggregateOptions {
            device,
            range: Some(0..100),
            measure: Some(Measure::AllocatedBytes),
            ..AggregateOptions::default()
        };
        assert_eq!(profile(std::slice::from_ref(&process), &options).total(), total);
    }
}

#[test]
fn every_measure_is_equal_from_a_snapshot_and_from_events() {
    let (replayed, mut kept) = (tape(), tape());
    kept.snapshot(1, false);
    let (replayed, kept) = ([replayed.process()], [kept.process()]);
    for measure in Measure::ALL.into_iter().filter(|measure| measure.is_memory()) {
        for grouping in [Grouping::Merged, Grouping::Threads] {
            let options = AggregateOptions { measure: Some(measure), grouping, ..AggregateOptions::default() };
            let (one, other) = (profile(&replayed, &options), profile(&kept, &options));
            assert_eq!(paths(&one), paths(&other), "{measure}");
        }
    }
    let default = profile(&kept, &AggregateOptions::default());
    assert_eq!((default.measure(), default.total()), (Measure::PeakBytes, 8299));
    let expected =
        [path("main", 0, 0, 8299), path("main;a", 2, 100, 100), path("main;b", 1, 8192, 8192), path("main;c", 1, 7, 7)];
    assert_eq!(paths(&default), expected);
    let live =
        AggregateOptions { measure: Some(Measure::LiveBytes), range: Some(45..75), ..AggregateOptions::default() };
    assert_eq!(paths(&profile(&kept, &live)), [path("main", 0, 0, 8), path("main;c", 1, 8, 8)]);
}

#[test]
fn recordings_are_compared_by_any_measure() {
    let before = tape().process();
    let mut tape = tape();
    tape.step(1, 90, &allocate(0x7000, 20_000, &["a", "main"]));
    let after = tape.process();
    for (measure, change) in [
        (Measure::PeakBytes, (8299.0, 24_144.0)),
        (Measure::LiveBytes, (4144.0, 24_144.0)),
        (Measure::AllocatedBytes, (8307.0, 28_307.0)),
        (Measure::Allocations, (5.0, 6.0)),
        (Measure::TemporaryBytes, (7.0, 7.0)),
    ] {
        let options = AggregateOptions { measure: Some(measure), ..AggregateOptions::default() };
        let of = |process: &ProcessRecording| profile(std::slice::from_ref(process), &options);
        let diff = Diff::of(&of(&before), &of(&after), false).unwrap();
        assert_eq!((diff.total().before, diff.total().after), change, "{measure}");
    }
}

#[test]
fn a_sample_is_scaled() {
    let start = header(&[("recorder", "memory"), ("memory.mode", "sampled"), ("memory.sample_every", "1000")]);
    let options = LedgerOptions { temporary: 1, sample_every: Some(1000) };
    let mut tape = MemoryTape::with(&start, options);
    tape.step(1, 10, &allocate(0x1000, 1000, &["a"]));
    tape.snapshot(1, false);
    let process = [tape.process()];
    // 1000 / (1 - exp(-1))
    for (measure, expected) in [(Measure::PeakBytes, 1582), (Measure::AllocatedBytes, 1582), (Measure::Allocations, 2)]
    {
        for range in [None, Some(0..100)] {
            let options = AggregateOptions { measure: Some(measure), range, ..AggregateOptions::default() };
            assert_eq!(profile(&process, &options).total(), expected, "{options:?}");
        }
    }
    assert_eq!(usage(&process[0], &MemoryQuery::default()).sample_every(), Some(1000));
}

#[test]
fn a_ring_has_no_blocks_from_before_it() {
    let mut start = header(&[("recorder", "memory")]);
    start.mode = stackweave_recording::file::RecordingMode::Ring;
    let mut tape = MemoryTape::with(&start, LedgerOptions::default());
    tape.step(1, 10, &free(0x5000));
    tape.step(1, 20, &allocate(0x1000, 10, &["a"]));
    let usage = usage(&tape.process(), &MemoryQuery::default());
    assert_eq!(usage.device(OWN).unwrap().totals.unknown_frees, 1);
    assert!(usage.remarks.iter().any(|remark| remark.contains("1 frees")), "{:?}", usage.remarks);
}

#[test]
fn a_program_that_records_its_allocations_has_figures_too() {
    let mut tape = Tape::new();
    tape.allocate((1, 5), (0x1000, 10), &[span("a")]);
    tape.allocate((1, 6), (0x2000, 20), &[span("a")]);
    tape.free((1, 7), 0x1000);
    tape.free((1, 8), 0);
    let usage = usage(&tape.process(), &MemoryQuery::default());
    let totals = usage.device(OWN).unwrap().totals;
    assert_eq!((totals.figures.live_bytes, totals.figures.peak_bytes, totals.unknown_frees), (20, 30, 0));
    assert_eq!(&*usage.allocators[1], "allocate");
}

#[test]
fn the_curve_is_the_recorders_or_built_from_events() {
    let points = |tape: MemoryTape, range| {
        let timeline = read_timeline(&tape.process(), range, &mut |_| {}).unwrap();
        timeline.points.iter().map(|point| (point.time_ns, point.heap, point.rss)).collect::<Vec<_>>()
    };
    let mut noted = tape();
    noted.curve(15, 60.0, 9000.0);
    noted.curve(35, 1100.0, 9500.0);
    let expected = [(15, Some(60), Some(9000)), (35, Some(1100), Some(9500))];
    assert_eq!(points(noted, None), expected);
    let made = points(tape(), None);
    assert_eq!(made.first(), Some(&(10, Some(60), None)));
    assert!(made.contains(&(40, Some(8299), None)) && made.contains(&(41, Some(8292), None)), "{made:?}");
    assert_eq!(made.last(), Some(&(80, Some(4144), None)));
    let part = points(tape(), Some(45..65));
    let expected = [(45, Some(8292)), (50, Some(8232)), (60, Some(4136)), (64, Some(4136))];
    assert_eq!(part, expected.map(|(time, heap)| (time, heap, None)));
}

#[test]
fn a_process_that_has_ended_is_in_no_sum() {
    let points = |all: &[(u64, u64)]| {
        let points =
            all.iter().map(|(time_ns, heap)| TimelinePoint { time_ns: *time_ns, heap: Some(*heap), rss: None });
        MemoryTimeline { points: points.collect() }
    };
    let parent = (0..100, points(&[(0, 10), (50, 20)]));
    let child = (20..60, points(&[(5, 7), (10, 8)]));
    let sum: Vec<_> = MemoryTimeline::sum(&[parent, child]).points.iter().map(|at| (at.time_ns, at.heap)).collect();
    assert_eq!(sum, [(0, 10), (25, 17), (30, 18), (50, 28), (60, 20)].map(|(time, heap)| (time, Some(heap))));
}

#[test]
fn the_history_has_every_block_with_its_end() {
    let process = tape().process();
    let read = |query: &MemoryQuery| read_history(&process, query, &mut |_| {}).unwrap();
    let history = read(&MemoryQuery::default());
    let rows: Vec<_> = history
        .rows()
        .map(|row| {
            let names = (&*history.allocators[row.allocator as usize], &*history.tags[row.tag as usize]);
            (row.time_ns, row.freed_ns, row.size, names.0, names.1)
        })
        .collect();
    let expected = [
        (10, Some(50), 60, "malloc", ""),
        (20, None, 40, "malloc", ""),
        (30, None, 8192, "mmap", "step 1"),
        (40, Some(41), 7, "malloc", ""),
        (70, None, 8, "calloc", ""),
    ];
    assert_eq!(rows, expected);
    let part = read(&MemoryQuery { range: Some(15..45), threads: vec!["main".into()], ..MemoryQuery::default() });
    assert_eq!(part.rows().map(|row| (row.time_ns, row.freed_ns)).collect::<Vec<_>>(), [(20, None), (40, Some(41))]);
    let mut whole = MemoryTape::new();
    whole.step(1, 10, &allocated_by(Allocator::Mmap, 0x10000, 0x3000, &["m"]));
    whole.step(1, 20, &MemoryStep::Unmap { address: 0x11000, size: 0x1000 });
    whole.step(1, 30, &MemoryStep::Unmap { address: 0x10000, size: 0x1000 });
    whole.step(1, 40, &MemoryStep::Unmap { address: 0x12000, size: 0xfff });
    let history = read_history(&whole.process(), &MemoryQuery::default(), &mut |_| {}).unwrap();
    assert_eq!(history.rows().map(|row| row.freed_ns).collect::<Vec<_>>(), [Some(40)]);
}
