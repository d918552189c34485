//! A flight recorder stays within its bytes, whatever names, frames, stacks and threads come by, and its dumps are whole.

use std::path::Path;
use std::{fs, thread};

use stackweave_core::{CodeAddress, RawFrame};
use stackweave_recording::Recording;
use stackweave_recording::file::{LossReason, RecordedFrame};
use stackweave_recording::live::{Options, Recorder, Ring};
use stackweave_store::label;
use stackweave_testkit::child;

use crate::recorded::{Read, STACKS, mark, start};

/// What the ring may hold, and what it may hold beyond that.
const BYTES: u64 = 256 << 10;
const SLACK: u64 = 64 << 10;
/// What one buffer of events and its definitions take.
const BATCH: u64 = 512 << 10;
const MANY: u64 = 400_000;

fn ring(folder: &Path, bytes: Option<u64>) -> Recorder {
    let ring = Some(Ring { bytes, seconds: bytes.is_none().then_some(1e-3) });
    start(Options { ring, dump_at_exit: true, ..Options::new(folder.join("out.swv")) })
}

fn frame(which: u64) -> RawFrame {
    RawFrame::native(CodeAddress::instruction_pointer(0x10_0000 + 16 * which))
}

/// The memory of this process.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    pages * 4096
}

/// Checks that a dump is within its bounds, has the last of the instants `0..count`, and says how many others there were. Returns
/// the first that it has. `is` compares an instant with its number.
fn check(path: &Path, count: u64, is: impl Fn(&Read, &[u64], u64) -> bool) -> u64 {
    let length = fs::metadata(path).unwrap().len();
    assert!(length <= BYTES + SLACK + BATCH, "{length} bytes");
    let read = Read::whole(path);
    let instants: Vec<_> = read.events.values().flatten().filter(|event| event.kind == "instant").collect();
    let first = count - instants.len() as u64;
    assert!(instants.len() > 1_000, "{} are left", instants.len());
    for (which, event) in (first..).zip(&instants) {
        assert!(is(&read, &event.words, which), "{which}: {event:?}");
    }
    assert_eq!(read.lost(LossReason::Ring), first);
    let opened = Recording::open(path).unwrap();
    let missing = opened.processes()[0].missing();
    assert!(!missing.is_unclosed && missing.cut_bytes == 0 && missing.damaged.is_empty(), "{missing:?}");
    first
}

fn is_frame(read: &Read, number: u64, which: u64) -> bool {
    let found = read.dictionary.frame(u32::try_from(number).unwrap());
    matches!(found, Some(RecordedFrame::Native { address, .. }) if RawFrame::native(*address) == frame(which))
}

#[test]
fn frames_without_end_take_no_more_than_the_ring() {
    let name = "ring_bounds::frames_without_end_take_no_more_than_the_ring";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(BYTES));
        let mut before = 0;
        for which in 0..MANY {
            recorder.instant(frame(which), None);
            if which == MANY / 4 {
                recorder.flush().unwrap();
                before = resident();
            }
            // Dumps in between, whose own definitions are nobody else's.
            if which % (MANY / 8) == MANY / 16 {
                let path = recorder.dump(None).unwrap();
                check(&path, which + 1, |read, words, which| is_frame(read, words[0], which));
            }
        }
        recorder.flush().unwrap();
        let stats = recorder.stats();
        assert!(stats.ring_bytes <= BYTES + SLACK + BATCH, "{stats:?}");
        let grown = resident().saturating_sub(before);
        assert!(grown < 16 << 20, "the process has grown by {grown} bytes");
        let summary = recorder.stop();
        check(&summary.path, MANY, |read, words, which| is_frame(read, words[0], which));
    });
}

#[test]
fn names_and_stacks_without_end_are_those_of_the_events_that_are_left() {
    let name = "ring_bounds::names_and_stacks_without_end_are_those_of_the_events_that_are_left";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(BYTES));
        for which in 0..MANY / 4 {
            let stack = STACKS.intern(&[frame(which), frame(which / 100), frame(0)]);
            recorder.instant(label(&format!("GET /user/{which}"), "", 0).unwrap(), stack);
        }
        let summary = recorder.stop();
        check(&summary.path, MANY / 4, |read, words, which| {
            let [name, stack] = [words[0], words[1]].map(|number| u32::try_from(number).unwrap());
            let said = read.dictionary.names(name).first().and_then(|name| read.dictionary.string(name.name));
            let frames: Vec<u32> = read.dictionary.frames_of(stack).collect();
            said == Some(&format!("GET /user/{which}"))
                && frames.len() == 3
                && frames
                    .iter()
                    .zip([which, which / 100, 0])
                    .all(|(found, which)| is_frame(read, (*found).into(), which))
        });
    });
}

#[test]
fn a_ring_that_is_limited_by_time_forgets_definitions_too() {
    let name = "ring_bounds::a_ring_that_is_limited_by_time_forgets_definitions_too";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, None);
        for which in 0..2 * MANY {
            recorder.instant(frame(which), None);
        }
        recorder.flush().unwrap();
        let stats = recorder.stats();
        // Two generations of a mebibyte at most, and what came by in a millisecond and one round of the writer.
        assert!(stats.ring_bytes < 5 << 20, "{stats:?}");
        // On a busy machine the millisecond may be over before the dump.
        let is_kept = (0..1_000).any(|_| {
            recorder.instant(frame(7), None);
            let read = Read::whole(&recorder.dump(None).unwrap());
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
fn threads_that_have_ended_are_forgotten_with_their_events() {
    let name = "ring_bounds::threads_that_have_ended_are_forgotten_with_their_events";
    child::in_own_process(name, |folder| {
        let recorder = ring(folder, Some(16 << 10));
        let mark = mark(&recorder);
        for who in 0..600 {
            let clone = recorder.clone();
            let work = move || {
                // Left open.
                clone.begin(frame(who));
                (0..50).for_each(|which| clone.record(mark, &[who, which]));
            };
            thread::spawn(work).join().unwrap();
            if who % 50 == 0 {
                recorder.dump(None).unwrap();
            }
        }
        let path = recorder.stop().path;
        let read = Read::whole(&path);
        let marks = read.marks();
        assert_eq!(marks[&599].len(), 50);
        let (threads, open) = (read.dictionary.threads().count(), read.events.len());
        assert!(threads < 500 && open < 500, "{threads} threads are there, {open} with events");
    });
}
