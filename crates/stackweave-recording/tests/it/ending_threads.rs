//! Threads that record until their very end, after the last destructor that a recorder could register: all events are recorded,
//! each thread has one number, and no memory leaks.

use std::ffi::c_void;
use std::fs;
use std::path::Path;
use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use stackweave_recording::live::{KindNumber, Recorder, RecorderOptions};
use stackweave_testkit::child;

use crate::recorded::{ReadBack, mark, start};

const CHUNK: usize = 64 * 1024;
/// The number of times that glibc repeats destructors.
const ROUNDS: u64 = 4;

/// The recorder that the destructor uses.
static INTO: RwLock<Option<(Recorder, KindNumber)>> = RwLock::new(None);

/// Records in each round of destructors, including the last: `value` is the number of the thread, and the round.
extern "C" fn record_again(value: *mut c_void) {
    let (producer, round) = (value.addr() as u64 >> 8, value.addr() as u64 & 0xff);
    if let Some((recorder, mark)) = INTO.read().unwrap().as_ref() {
        recorder.record(*mark, &[producer, round]);
    }
    arm(producer, round + 1);
}

/// Registers the destructor for the calling thread. The key is created after the recorder's own, so its destructors run later.
fn arm(producer: u64, round: u64) {
    static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor has the right signature and lives as long as the process.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(record_again)) }, 0);
        key
    });
    let value = std::ptr::without_provenance(usize::try_from(producer << 8 | round).unwrap());
    // SAFETY: the key exists, and its value is only a number.
    unsafe { libc::pthread_setspecific(key, value) };
}

fn run_threads(producers: std::ops::Range<u64>, first: Option<(&Recorder, KindNumber)>) {
    for producer in producers {
        thread::scope(|scope| {
            // Joined, because a scope does not wait for destructors.
            let work = || {
                if let Some((recorder, mark)) = first {
                    recorder.record(mark, &[producer, 0]);
                }
                arm(producer, 1);
            };
            scope.spawn(work).join().unwrap();
        });
    }
}

/// Returns the resident memory of the process, not its address space, of which the C library reserves much for new threads.
fn memory_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn record_in_destructors(folder: &Path, producers: std::ops::Range<u64>, records_before: bool) {
    let path = folder.join(format!("{}.swv", producers.start));
    let recorder = start(RecorderOptions {
        memory: 4 * CHUNK,
        flush_every: Duration::from_millis(2),
        ..RecorderOptions::new(path)
    });
    let kind = mark(&recorder);
    *INTO.write().unwrap() = Some((recorder.clone(), kind));
    run_threads(producers.clone(), records_before.then_some((&recorder, kind)));
    *INTO.write().unwrap() = None;
    assert_eq!(u64::from(recorder.stats().threads), producers.end - producers.start, "each thread has one number");
    assert!(recorder.stats().buffer_bytes < 64 * CHUNK, "{:?}", recorder.stats());
    let summary = recorder.stop();
    assert!(summary.lost.is_empty());
    let marks = ReadBack::whole(&summary.path).marks();
    let first = u64::from(!records_before);
    assert!(producers.clone().all(|producer| marks[&producer] == (first..=ROUNDS).collect::<Vec<_>>()));
    assert_eq!(marks.len() as u64, producers.end - producers.start);
}

/// Measures the memory of the process, so no other test may run in it.
#[test]
fn events_of_the_last_destructor_are_recorded_and_nothing_leaks() {
    child::in_own_process(
        "ending_threads::events_of_the_last_destructor_are_recorded_and_nothing_leaks",
        check_last_destructors,
    );
}

fn check_last_destructors(folder: &Path) {
    for records_before in [true, false] {
        let first = if records_before { 0 } else { 10_000 };
        // A first run, so that permanent allocations exist.
        record_in_destructors(folder, first..first + 20, records_before);
        let before = memory_bytes();
        record_in_destructors(folder, first + 1_000..first + 1_400, records_before);
        let grown = memory_bytes().saturating_sub(before);
        assert!(grown < 4 << 20, "{grown} bytes for 400 threads");
    }
}

/// Measures the memory of the process, so no other test may run in it.
#[test]
fn a_recording_that_stops_while_threads_end_leaks_nothing() {
    child::in_own_process(
        "ending_threads::a_recording_that_stops_while_threads_end_leaks_nothing",
        check_stops_while_threads_end,
    );
}

fn check_stops_while_threads_end(folder: &Path) {
    let mut before = 0;
    for round in 0..60_u64 {
        let recorder = start(RecorderOptions::new(folder.join(format!("{round}.swv"))));
        let kind = mark(&recorder);
        *INTO.write().unwrap() = Some((recorder.clone(), kind));
        thread::scope(|scope| {
            let begin = |producer| {
                let recorder = &recorder;
                let work = move || {
                    recorder.record(kind, &[producer, 0]);
                    arm(producer, 1);
                };
                scope.spawn(work)
            };
            let threads = [0, 1, 2, 3].map(begin);
            let _ = recorder.stop();
            for thread in threads {
                thread.join().unwrap();
            }
        });
        *INTO.write().unwrap() = None;
        let marks = ReadBack::whole(&recorder.path()).marks();
        assert!(marks.values().all(|index| *index == (0..index.len() as u64).collect::<Vec<_>>()), "{marks:?}");
        if round == 20 {
            before = memory_bytes();
        }
    }
    let grown = memory_bytes().saturating_sub(before);
    assert!(grown < 512 << 10, "{grown} bytes for 40 recordings");
}
