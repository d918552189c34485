//! Explicit times are read back exactly, and the gap count shows where events may be missing.

use std::path::Path;

use stackweave_recording::clock::ClockSource;
use stackweave_recording::events;
use stackweave_recording::{RecorderOptions, WhenFull, gap_count};
use stackweave_store::label;
use stackweave_testkit::child;
use stackweave_testkit::folder::Folder;

use crate::recorded::{ReadBack, start};

/// More bytes than a buffer holds.
const LONG: usize = 70_000;

#[test]
fn a_tick_of_the_system_clock_is_a_nanosecond() {
    let folder = Folder::new();
    let options =
        RecorderOptions { clock: Some(ClockSource::Monotonic), ..RecorderOptions::new(folder.file("out.swv")) };
    let recorder = start(options);
    let (with, end) = (recorder.register(events::BEGIN_WITH).unwrap(), recorder.register(events::END).unwrap());
    let frame = label("phase", "phases.py", 3).unwrap().to_bits();
    let details: [&[u8]; 4] = [b"{}", b"12345678", b"", br#"{"a": "0123456789"}"#];
    // Not in order, far after the end of the recording, and more than one buffer.
    let times: Vec<u64> = (0..4_000).map(|round| (round * 7_919) % 4_001 * 1_000_000_007).collect();
    for (time, details) in times.iter().zip(details.iter().cycle()) {
        recorder.record_bytes_at(*time, with, &[frame, 0], details);
        recorder.record_at(*time + 1, end, &[]);
    }
    recorder.record_bytes_at(1, with, &[frame, 0], &vec![b'x'; LONG]);
    let summary = recorder.stop();
    assert_eq!((summary.events, summary.lost.values().sum::<u64>()), (8_000, 1));

    let read = ReadBack::whole(&summary.path);
    assert_eq!(read.start.clock, ClockSource::Monotonic);
    let timeline = read.timeline();
    let events = read.events.values().next().unwrap();
    for ((pair, time), details) in events.chunks(2).zip(&times).zip(details.iter().cycle()) {
        assert_eq!((pair[0].ticks, pair[0].bytes.as_deref(), pair[1].ticks), (*time, Some(*details), time + 1));
        assert_eq!((timeline.nanoseconds(*time), timeline.nanoseconds(time + 1)), (*time, time + 1));
    }
}

#[test]
fn the_best_clock_is_the_default() {
    let folder = Folder::new();
    let summary = start(RecorderOptions::new(folder.file("out.swv"))).stop();
    let best = stackweave_recording::clock::Clock::start().0.source();
    assert_eq!(ReadBack::whole(&summary.path).start.clock, best);
}

#[test]
fn a_pause_and_a_loss_are_gaps() {
    // The gap count belongs to the process.
    child::in_own_process("explicit_times::a_pause_and_a_loss_are_gaps", check_gaps);
}

fn check_gaps(folder: &Path) {
    let options =
        RecorderOptions { when_full: WhenFull::Drop, memory: 0, ..RecorderOptions::new(folder.join("out.swv")) };
    let recorder = start(options);
    recorder.end();
    let first = gap_count();
    recorder.pause();
    recorder.resume();
    let after_pause = gap_count();
    assert!(after_pause > first);
    // Faster than the writer: at some time no buffer is free, and later one is again.
    while gap_count() == after_pause {
        recorder.end();
    }
    assert!(recorder.stop().lost.values().sum::<u64>() > 0);
}
