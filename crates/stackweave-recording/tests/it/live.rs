//! Recorded events are read back completely, for all threads, buffers and disks.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use stackweave_core::{FrameKind, NoNames};
use stackweave_recording::clock::ClockSource;
use stackweave_recording::events;
use stackweave_recording::file::{EndReason, LossReason};
use stackweave_recording::live::{FlushError, Recorder, RecorderOptions, Summary};
use stackweave_store::label;
use stackweave_testkit::child;
use stackweave_testkit::counting_allocator::requests;
use stackweave_testkit::folder::Folder;
use stackweave_testkit::random::Random;
use stackweave_testkit::signals::{self, SignalStack, Ticker};

use crate::recorded::{ReadBack, STACKS, mark, start};

const SHORT: Duration = Duration::from_millis(2);

const CHUNK: usize = 64 * 1024;
/// Fills several buffers.
const MANY: u64 = 100_000;

fn all_of(count: u64) -> Vec<u64> {
    (0..count).collect()
}

fn assert_ended(read: &ReadBack, summary: &Summary) {
    let end = read.end.unwrap();
    assert_eq!((end.reason, end.events), (EndReason::Stopped, read.count()));
    assert_eq!((summary.events, &summary.error), (read.count(), &None));
    assert_eq!(summary.bytes_written, fs::metadata(&summary.path).unwrap().len());
    assert_eq!(end.lost, summary.lost.values().sum::<u64>());
    assert!(read.points.len() >= 2);
    assert_eq!(end.residual_ns, read.timeline().residual_ns());
}

#[test]
fn every_event_of_every_thread_is_read_back_in_order() {
    let folder = Folder::new();
    // Few buffers, so that threads wait all the time.
    let options =
        RecorderOptions { memory: 3 * CHUNK, flush_every: SHORT, ..RecorderOptions::new(folder.file("out.swv")) };
    let recorder = start(options);
    let mark = mark(&recorder);
    thread::scope(|scope| {
        for producer in 0..6_u64 {
            let recorder = &recorder;
            let named = thread::Builder::new().name(format!("worker {producer}"));
            let work = move || (0..MANY).for_each(|index| recorder.record(mark, &[producer, index]));
            named.spawn_scoped(scope, work).unwrap();
        }
    });
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    assert_ended(&read, &summary);
    assert!(summary.lost.is_empty());
    let marks = read.marks();
    assert_eq!(marks.len(), 6);
    assert!(marks.values().all(|index| *index == all_of(MANY)));
    let names: Vec<&str> = read.dictionary.threads().map(|thread| &*thread.name).collect();
    assert!((0..6).all(|producer| names.contains(&&*format!("worker {producer}"))), "{names:?}");
    assert_eq!(recorder.stop(), summary, "a second stop returns the same");
}

#[test]
fn values_of_all_kinds_are_read_back() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let frame = label("load", "train.py", 7).unwrap();
    let stack = STACKS.intern(&[frame, label("main", "", 0).unwrap()]);
    recorder.begin(frame);
    recorder.begin_at(frame, stack);
    recorder.begin_with(frame, None, b"{\"a\": 1}");
    recorder.end();
    recorder.instant(frame, stack);
    recorder.instant_with(frame, stack, b"");
    recorder.counter(frame, -0.5);
    recorder.sample(stack, -3);
    recorder.allocate(0x7000, 64, stack);
    recorder.free(0x7000);
    recorder.name_thread("first name");
    recorder.flush().unwrap();
    recorder.name_thread("last name");
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    assert_ended(&read, &summary);
    let events = &read.events[&1];
    let kinds: Vec<&str> = events.iter().map(|event| &*event.kind).collect();
    let expected = events::BUILT_IN;
    assert_eq!(kinds, expected.iter().map(|kind| &*kind.name).collect::<Vec<_>>());
    let number = u32::try_from(events[0].words[0]).unwrap();
    let [name] = read.dictionary.names(number) else { panic!("a label has a name") };
    assert_eq!((name.kind, read.dictionary.string(name.name)), (FrameKind::Span, Some("load")));
    assert_eq!(read.dictionary.frames_of(u32::try_from(events[1].words[1]).unwrap()).count(), 2);
    assert_eq!((&events[2].bytes, &events[5].bytes), (&Some(b"{\"a\": 1}".to_vec()), &Some(Vec::new())));
    assert_eq!(events[6].words[1], (-0.5_f64).to_bits());
    assert_eq!(events[7].words[1].cast_signed(), -3);
    assert_eq!(events[8].words[..2], [0x7000, 64]);
    let threads: Vec<_> = read.dictionary.threads().map(|thread| (thread.number, &*thread.name)).collect();
    assert_eq!(threads, [(1, "last name")]);
}

#[test]
fn bytes_of_every_length_are_read_back_and_excessive_ones_are_counted() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let frame = label("details", "", 0).unwrap();
    let mut random = Random::new(6);
    let mut inputs = Vec::new();
    for length in (0..70).chain([1_000, 65_000, 65_400, 4_000, 65_440]) {
        let bytes: Vec<u8> = (0..length).map(|_| random.byte_below(255)).collect();
        recorder.instant_with(frame, None, &bytes);
        inputs.push(Some(bytes));
    }
    recorder.instant_with(frame, None, &vec![1; 65_500]);
    recorder.instant_with(frame, None, &vec![1; 1 << 20]);
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    let found: Vec<_> = read.events[&1].iter().map(|event| event.bytes.clone()).collect();
    assert!(found == inputs, "{} of {}", found.len(), inputs.len());
    assert_eq!((read.lost(LossReason::TooLarge), summary.lost[&LossReason::TooLarge]), (2, 2));
}

#[test]
fn short_threads_lose_no_events_and_leak_no_memory() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions {
        memory: 4 * CHUNK,
        flush_every: SHORT,
        ..RecorderOptions::new(folder.file("out.swv"))
    });
    let mark = mark(&recorder);
    for round in 0..100_u64 {
        thread::scope(|scope| {
            for producer in 0..8 {
                let recorder = &recorder;
                scope.spawn(move || {
                    (0..=producer).for_each(|index| recorder.record(mark, &[round * 8 + producer, index]));
                });
            }
        });
    }
    recorder.flush().unwrap();
    // Threads of one round may still be ending during the next.
    assert!(recorder.stats().buffer_bytes <= (4 + 3 * 8) * CHUNK, "{:?}", recorder.stats());
    let summary = recorder.stop();
    let marks = ReadBack::whole(&summary.path).marks();
    assert_eq!(marks.len(), 800);
    assert!(marks.into_iter().all(|(producer, index)| index == all_of(producer % 8 + 1)));
}

#[test]
fn events_of_destructors_of_thread_locals_are_recorded() {
    struct RecordsAtDrop(Recorder, u64);
    impl Drop for RecordsAtDrop {
        fn drop(&mut self) {
            let mark = mark(&self.0);
            self.0.record(mark, &[self.1, 1]);
        }
    }
    thread_local! {
        static BEFORE: RefCell<Option<RecordsAtDrop>> = const { RefCell::new(None) };
    }
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let kind = mark(&recorder);
    for (producer, records_before) in [(0, true), (1, false)] {
        let recorder = recorder.clone();
        let work = move || {
            if records_before {
                recorder.record(kind, &[producer, 0]);
            }
            BEFORE.set(Some(RecordsAtDrop(recorder, producer)));
        };
        thread::spawn(work).join().unwrap();
    }
    let marks = ReadBack::whole(&recorder.stop().path).marks();
    assert_eq!(marks.into_iter().collect::<Vec<_>>(), [(0, vec![0, 1]), (1, vec![1])]);
}

#[test]
fn a_flush_writes_everything_while_recording_continues() {
    let folder = Folder::new();
    let recorder =
        start(RecorderOptions { flush_every: Duration::MAX, ..RecorderOptions::new(folder.file("out.swv")) });
    let mark = mark(&recorder);
    for index in 0..50 {
        recorder.record(mark, &[1, index]);
        recorder.flush().unwrap();
        let read = ReadBack::whole(&recorder.path());
        assert_eq!((read.marks()[&1].clone(), read.end), (all_of(index + 1), None));
    }
    let length = fs::metadata(recorder.path()).unwrap().len();
    recorder.flush().unwrap();
    assert_eq!(fs::metadata(recorder.path()).unwrap().len(), length, "a flush without events writes nothing");
    recorder.stop();
    assert_eq!(recorder.flush(), Err(FlushError::Stopped));
    recorder.record(mark, &[1, 50]);
    assert_eq!(recorder.stop().events, 50);
}

#[test]
fn simultaneous_recorders_get_separate_events() {
    let folder = Folder::new();
    let recorders: Vec<_> =
        (0..3).map(|number| start(RecorderOptions::new(folder.file(&format!("{number}.swv"))))).collect();
    let marks: Vec<_> = recorders.iter().map(mark).collect();
    thread::scope(|scope| {
        for producer in 0..3_u64 {
            let (recorders, marks) = (&recorders, &marks);
            scope.spawn(move || {
                let mut random = Random::new(producer);
                let mut next = [0; 3];
                for _ in 0..30_000 {
                    let to = random.below(3);
                    recorders[to].record(marks[to], &[producer, next[to]]);
                    next[to] += 1;
                }
            });
        }
    });
    let mut total = 0;
    for recorder in recorders {
        let read = ReadBack::whole(&recorder.stop().path);
        for index in read.marks().into_values() {
            assert_eq!(index, all_of(index.len() as u64));
            total += index.len();
        }
    }
    assert_eq!(total, 90_000);
}

#[test]
fn a_paused_recorder_records_nothing() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let mark = mark(&recorder);
    for round in 0..4 {
        recorder.record(mark, &[1, round]);
        recorder.pause();
        recorder.record(mark, &[1, 100]);
        recorder.resume();
    }
    let summary = recorder.stop();
    recorder.resume();
    recorder.record(mark, &[1, 100]);
    assert_eq!(ReadBack::whole(&summary.path).marks()[&1], all_of(4));
    assert_eq!(recorder.stop(), summary);
}

#[test]
fn recorders_start_and_stop_while_threads_record() {
    let folder = Folder::new();
    let is_over = AtomicBool::new(false);
    let mut random = Random::new(11);
    for round in 0..20 {
        let recorder =
            start(RecorderOptions { flush_every: SHORT, ..RecorderOptions::new(folder.file(&format!("{round}.swv"))) });
        is_over.store(false, Ordering::Relaxed);
        let begun = Barrier::new(4);
        thread::scope(|scope| {
            for producer in 0..3_u64 {
                let (recorder, is_over, begun) = (recorder.clone(), &is_over, &begun);
                scope.spawn(move || {
                    let mark = mark(&recorder);
                    begun.wait();
                    for index in 0.. {
                        recorder.record(mark, &[producer, index]);
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            begun.wait();
            thread::sleep(Duration::from_micros(random.bits() % 3_000));
            let summary = recorder.stop();
            let read = ReadBack::whole(&summary.path);
            assert_ended(&read, &summary);
            assert!(read.marks().into_values().all(|index| index == all_of(index.len() as u64)));
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn dropping_the_last_handle_ends_the_file() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let recorder = start(RecorderOptions::new(&path));
    let other = recorder.clone();
    let kind = mark(&recorder);
    recorder.record(kind, &[1, 0]);
    drop(recorder);
    other.record(kind, &[1, 1]);
    drop(other);
    let read = ReadBack::whole(&path);
    assert_eq!((read.marks()[&1].len(), read.end.map(|end| end.events)), (2, Some(2)));
    let again = start(RecorderOptions { overwrite: true, ..RecorderOptions::new(&path) });
    again.record(mark(&again), &[1, 7]);
    drop(again);
    assert_eq!(ReadBack::whole(&path).marks()[&1], [7], "the same thread records to the next recording");
}

#[test]
fn a_signal_handler_may_record() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions { flush_every: SHORT, ..RecorderOptions::new(folder.file("out.swv")) });
    let mark = mark(&recorder);
    let handled = AtomicU64::new(0);
    let mut inside = |_: *mut std::ffi::c_void| {
        recorder.record(mark, &[2, handled.fetch_add(1, Ordering::Relaxed)]);
    };
    let mut count = 0;
    signals::with_handlers(&[libc::SIGALRM], SignalStack::Normal, &mut inside, || {
        let ticker = Ticker::start(libc::SIGALRM, 20);
        while handled.load(Ordering::Relaxed) < 20_000 && count < 50_000_000 {
            recorder.record(mark, &[1, count]);
            count += 1;
        }
        drop(ticker);
    });
    let summary = recorder.stop();
    let read = ReadBack::whole(&summary.path);
    let marks = read.marks();
    assert_eq!(marks[&1], all_of(count), "interrupted events are complete");
    let from_handler = marks.get(&2).map_or(0, Vec::len) as u64;
    assert!(marks.get(&2).is_none_or(|index| index.is_sorted()));
    let handled = handled.load(Ordering::Relaxed);
    assert_eq!(from_handler + read.lost(LossReason::Interrupted), handled);
    assert_eq!(summary.lost.get(&LossReason::Interrupted).copied().unwrap_or(0), handled - from_handler);
    assert!(from_handler > 0 && handled > from_handler, "{from_handler} of {handled}: neither all nor none were lost");
}

#[test]
fn a_warm_thread_neither_allocates_nor_frees() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions { memory: 3 * CHUNK, ..RecorderOptions::new(folder.file("out.swv")) });
    let mark = mark(&recorder);
    recorder.record(mark, &[0, 0]);
    let frame = label("work", "", 0).unwrap();
    let before = requests();
    for index in 0..MANY {
        recorder.record(mark, &[0, index]);
        recorder.instant_with(frame, None, b"[]");
    }
    assert_eq!(requests(), before);
    assert_eq!(recorder.stop().events, 2 * MANY + 1);
}

#[test]
fn threads_can_be_named_late_and_by_other_threads() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions::new(folder.file("out.swv")));
    let (begun, over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            recorder.free(1);
            begun.wait();
            over.wait();
        });
        begun.wait();
        recorder.flush().unwrap();
        let tid = ReadBack::whole(&recorder.path()).dictionary.threads().next().unwrap().tid;
        recorder.name_other_thread(tid, "given");
        recorder.name_other_thread(u32::MAX, "no thread");
        let read = ReadBack::whole(&recorder.stop().path);
        assert_eq!(read.dictionary.threads().map(|thread| &*thread.name).collect::<Vec<_>>(), ["given"]);
        over.wait();
    });
}

#[test]
fn the_system_clock_can_be_requested() {
    child::in_own_process("live::the_system_clock_can_be_requested", check_clocks);
}

fn check_clocks(folder: &Path) {
    for (number, variable) in ["monotonic", "tsc"].into_iter().enumerate() {
        // SAFETY: no other thread of this process reads the environment.
        unsafe { std::env::set_var("STACKWEAVE_CLOCK", variable) };
        let recorder = start(RecorderOptions::new(folder.join(format!("{number}.swv"))));
        recorder.free(1);
        thread::sleep(Duration::from_millis(20));
        recorder.free(2);
        let read = ReadBack::whole(&recorder.stop().path);
        let line = read.timeline();
        let [first, second] = [0, 1].map(|index| line.nanoseconds(read.events[&1][index].ticks));
        assert!(second - first >= 20_000_000, "{first} {second}");
        if variable == "monotonic" {
            assert_eq!(read.start.clock, ClockSource::Monotonic);
        }
    }
}

#[test]
fn a_failed_start_is_reported_in_one_sentence() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    fs::write(&path, "precious").unwrap();
    let refuse = |options| Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap_err().to_string();
    let shown = path.display();
    assert_eq!(refuse(RecorderOptions::new(&path)), format!("cannot record to {shown}: the file exists already"));
    let missing = folder.file("no/such/out.swv");
    let shown = missing.display();
    assert_eq!(refuse(RecorderOptions::new(&missing)), format!("cannot record to {shown}: its folder does not exist"));
    let ring = Some(stackweave_recording::live::RingLimits::default());
    assert!(refuse(RecorderOptions { ring, ..RecorderOptions::new(&path) }).ends_with("the file exists already"));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}
