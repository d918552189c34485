//! Threads that record to their very end, after the last of their destructors that a recorder could ask for: their events are
//! there, each thread is one, and nothing of theirs is left behind.

use std::ffi::c_void;
use std::fs;
use std::path::Path;
use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use stackweave_recording::live::{KindNumber, Options, Recorder};
use stackweave_testkit::child;

use crate::recorded::{Read, mark, start};

const CHUNK: usize = 64 * 1024;
/// As often as glibc calls destructors again.
const ROUNDS: u64 = 4;

/// What the destructor records into.
static INTO: RwLock<Option<(Recorder, KindNumber)>> = RwLock::new(None);

/// Records in each round of destructors, in the last one too: `value` is the number of the thread, and the round.
extern "C" fn record_again(value: *mut c_void) {
    let (who, round) = (value.addr() as u64 >> 8, value.addr() as u64 & 0xff);
    if let Some((recorder, mark)) = INTO.read().unwrap().as_ref() {
        recorder.record(*mark, &[who, round]);
    }
    arm(who, round + 1);
}

/// Has the destructor called for the calling thread. The key is made after the recorder's own: its destructors run later.
fn arm(who: u64, round: u64) {
    static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the destructor has the right signature and lives as long as the process.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(record_again)) }, 0);
        key
    });
    let value = std::ptr::without_provenance(usize::try_from(who << 8 | round).unwrap());
    // SAFETY: the key exists, and its value is only a number.
    unsafe { libc::pthread_setspecific(key, value) };
}

fn run_threads(whos: std::ops::Range<u64>, first: Option<(&Recorder, KindNumber)>) {
    for who in whos {
        thread::scope(|scope| {
            // Joined, for a scope does not wait for destructors.
            let work = || {
                if let Some((recorder, mark)) = first {
                    recorder.record(mark, &[who, 0]);
                }
                arm(who, 1);
            };
            scope.spawn(work).join().unwrap();
        });
    }
}

/// Bytes of memory that the process has: not of addresses, of which the C library takes many for new threads.
fn memory_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn record_in_destructors(folder: &Path, whos: std::ops::Range<u64>, records_before: bool) {
    let path = folder.join(format!("{}.swv", whos.start));
    let recorder = start(Options { memory: 4 * CHUNK, flush_every: Duration::from_millis(2), ..Options::new(path) });
    let kind = mark(&recorder);
    *INTO.write().unwrap() = Some((recorder.clone(), kind));
    run_threads(whos.clone(), records_before.then_some((&recorder, kind)));
    *INTO.write().unwrap() = None;
    assert_eq!(u64::from(recorder.stats().threads), whos.end - whos.start, "each thread is one, to its end");
    assert!(recorder.stats().buffer_bytes < 64 * CHUNK, "{:?}", recorder.stats());
    let summary = recorder.stop();
    assert!(summary.lost.is_empty());
    let marks = Read::whole(&summary.path).marks();
    let first = u64::from(!records_before);
    assert!(whos.clone().all(|who| marks[&who] == (first..=ROUNDS).collect::<Vec<_>>()));
    assert_eq!(marks.len() as u64, whos.end - whos.start);
}

/// Measures the memory of the process, which no other test may change.
#[test]
fn what_the_last_destructor_records_is_there_and_leaves_nothing_behind() {
    child::in_own_process(
        "ending_threads::what_the_last_destructor_records_is_there_and_leaves_nothing_behind",
        check_last_destructors,
    );
}

fn check_last_destructors(folder: &Path) {
    for records_before in [true, false] {
        let first = if records_before { 0 } else { 10_000 };
        // Once, so that what stays by design is there.
        record_in_destructors(folder, first..first + 20, records_before);
        let before = memory_bytes();
        record_in_destructors(folder, first + 1_000..first + 1_400, records_before);
        let grown = memory_bytes().saturating_sub(before);
        assert!(grown < 4 << 20, "{grown} bytes for 400 threads");
    }
}

/// Measures the memory of the process, which no other test may change.
#[test]
fn a_recording_that_stops_while_threads_end_leaves_nothing_behind() {
    child::in_own_process(
        "ending_threads::a_recording_that_stops_while_threads_end_leaves_nothing_behind",
        check_stops_while_threads_end,
    );
}

fn check_stops_while_threads_end(folder: &Path) {
    let mut before = 0;
    for round in 0..60_u64 {
        let recorder = start(Options::new(folder.join(format!("{round}.swv"))));
        let kind = mark(&recorder);
        *INTO.write().unwrap() = Some((recorder.clone(), kind));
        thread::scope(|scope| {
            let begin = |who| {
                let recorder = &recorder;
                let work = move || {
                    recorder.record(kind, &[who, 0]);
                    arm(who, 1);
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
        let marks = Read::whole(&recorder.path()).marks();
        assert!(marks.values().all(|which| *which == (0..which.len() as u64).collect::<Vec<_>>()), "{marks:?}");
        if round == 20 {
            before = memory_bytes();
        }
    }
    let grown = memory_bytes().saturating_sub(before);
    assert!(grown < 512 << 10, "{grown} bytes for 40 recordings");
}
