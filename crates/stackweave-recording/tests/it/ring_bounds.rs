//! A flight recorder keeps its limit whatever names, frames, stacks and threads it records, and its dumps are complete.

use std::path::Path;
use std::{fs, thread};

use stackweave_core::{CodeAddress, RawFrame};
use stackweave_recording::Recording;
use stackweave_recording::file::{LossReason, RecordedFrame};
use stackweave_recording::live::{Recorder, RecorderOptions, RingLimits};
use stackweave_store::label;
use stackweave_testkit::child;

use crate::recorded::{ReadBack, STACKS, mark, start};

/// The limit of the ring, and the size by which definitions may exceed it.
const BYTES: u64 = 256 << 10;
const SLACK: u64 = 64 << 10;
/// The size of one buffer of events with its definitions.
const BATCH: u64 = 512 << 10;
const MANY: u64 = 400_000;

fn ring(folder: &Path, bytes: Option<u64>) -> Recorder {
    let ring = Some(RingLimits { bytes, seconds: bytes.is_none().then_some(1e-3) });
    start(RecorderOptions { ring, dump_at_exit: true, ..RecorderOptions::new(folder.join("out.swv")) })
}

fn frame(index: u64) -> RawFrame {
    RawFrame::native(CodeAddress::instruction_pointer(0x10_0000 + 16 * index))
}

/// Returns the resident memory of this process.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    pages * 4096
}

/// Checks that a dump keeps the limit, has the last of the instants `0..count`, and reports how many others there were. Returns the
/// first instant in it. `is` compares an instant with its number.
fn check(path: &Path, count: u64, is: impl Fn(&ReadBack, &[u64], u64) -> bool) -> u64 {
    let length = fs::metadata(path).unwrap().len();
    assert!(length <= BYTES + SLACK + BATCH, "{length} bytes");
    let read = ReadBack::whole(path);
    let instants: Vec<_> = read.events.values().flatten().filter(|event| event.kind == "instant").collect();
    let first = count - instants.len() as u64;
    assert!(instants.len() > 1_000, "{} are left", instants.len());
    for (index, event) in (first..).zip(&instants) {
        assert!(is(&read, &event.words, index), "{index}: {event:?}");
    }
    assert_eq!(read.lost(LossReason::Ring), first);
    let opened = Recording::open(path).unwrap();
    let missing = opened.processes()[0].missing();
    assert!(!missing.is_unclosed && missing.cut_bytes == 0 && missing.damaged.is_empty(), "{missing:?}");
    first
}

fn is_frame(read: &ReadBack, number: u64, index: u64) -> bool {
    let frame_of_number = read.dictionary.frame(u32::try_from(number).unwrap());
    matches!(frame_of_number, Some(RecordedFrame::Native { address, .. }) if RawFrame::native(*address) == frame(index))
}

#[test]
fn unlimited_frames_keep_the_limit_of_the_ring() {
    let name = "ring_bounds::unlimited_frames_keep_the_limit_of_the_ring";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(BYTES));
        let mut before = 0;
        for index in 0..MANY {
            recorder.instant(frame(index), None);
            if index == MANY / 4 {
                recorder.flush().unwrap();
                before = resident();
            }
            // Intermediate dumps, whose separate definitions must not be used by later events.
            if index % (MANY / 8) == MANY / 16 {
                let path = recorder.dump(None).unwrap();
                check(&path, index + 1, |read, words, index| is_frame(read, words[0], index));
            }
        }
        recorder.flush().unwrap();
        let stats = recorder.stats();
        assert!(stats.ring_bytes <= BYTES + SLACK + BATCH, "{stats:?}");
        let grown = resident().saturating_sub(before);
        assert!(grown < 16 << 20, "the process has grown by {grown} bytes");
        let summary = recorder.stop();
        check(&summary.path, MANY, |read, words, index| is_frame(read, words[0], index));
    });
}

#[test]
fn definitions_of_dropped_events_are_dropped_too() {
    let name = "ring_bounds::definitions_of_dropped_events_are_dropped_too";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(BYTES));
        for index in 0..MANY / 4 {
            let stack = STACKS.intern(&[frame(index), frame(index / 100), frame(0)]);
            recorder.instant(label(&format!("GET /user/{index}"), "", 0).unwrap(), stack);
        }
        let summary = recorder.stop();
        check(&summary.path, MANY / 4, |read, words, index| {
            let [name, stack] = [words[0], words[1]].map(|number| u32::try_from(number).unwrap());
            let found = read.dictionary.names(name).first().and_then(|name| read.dictionary.string(name.name));
            let frames: Vec<u32> = read.dictionary.frames_of(stack).collect();
            found == Some(&format!("GET /user/{index}"))
                && frames.len() == 3
                && frames
                    .iter()
                    .zip([index, index / 100, 0])
                    .all(|(found, index)| is_frame(read, (*found).into(), index))
        });
    });
}

#[test]
fn a_ring_with_a_limit_on_time_drops_definitions_too() {
    let name = "ring_bounds::a_ring_with_a_limit_on_time_drops_definitions_too";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, None);
        for index in 0..2 * MANY {
            recorder.instant(frame(index), None);
        }
        recorder.flush().unwrap();
        let stats = recorder.stats();
        // At most two generations of a mebibyte, and the definitions of a millisecond and of one round of the writer.
        assert!(stats.ring_bytes < 5 << 20, "{stats:?}");
        // On a busy machine the millisecond may have elapsed before the dump.
        let is_kept = (0..1_000).any(|_| {
            recorder.instant(frame(7), None);
            let read = ReadBack::whole(&recorder.dump(None).unwrap());
            let last = read.events.values().flatten().rfind(|event| event.kind == "instant");
            last.is_some_and(|last| {
                assert!(is_frame(&read, last.words[0], 7));
                true
            })
        });
        assert!(is_kept, "no dump has the event before it");
    });
}

#[test]
fn ended_threads_are_removed_with_their_last_events() {
    let name = "ring_bounds::ended_threads_are_removed_with_their_last_events";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(16 << 10));
        let mark = mark(&recorder);
        for producer in 0..600 {
            let clone = recorder.clone();
            let work = move || {
                // A span that is left open.
                clone.begin(frame(producer));
                (0..50).for_each(|index| clone.record(mark, &[producer, index]));
            };
            thread::spawn(work).join().unwrap();
            if producer % 50 == 0 {
                recorder.dump(None).unwrap();
            }
        }
        let path = recorder.stop().path;
        let read = ReadBack::whole(&path);
        let marks = read.marks();
        assert_eq!(marks[&599].len(), 50);
        let (threads, open) = (read.dictionary.threads().count(), read.events.len());
        assert!(threads < 500 && open < 500, "{threads} threads remain, {open} of them with events");
    });
}
