//! A slow, full or missing disk never affects the program, and the file stays consistent.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stackweave_recording::file::{EndReason, LossReason, RecordingMode};
use stackweave_recording::live::{FlushError, RecorderOptions, RingLimits, WhenFull, set_waiter};
use stackweave_testkit::child;
use stackweave_testkit::folder::Folder;

use crate::recorded::{ReadBack, mark, start};

const SHORT: Duration = Duration::from_millis(2);
const CHUNK: usize = 64 * 1024;

/// Creates a named pipe and a thread that reads it: slowly until `fast_after` bytes.
fn slow_pipe(folder: &Folder, fast_after: usize) -> (PathBuf, JoinHandle<Vec<u8>>) {
    let path = folder.file("pipe");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends with zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let reader = thread::spawn({
        let path = path.clone();
        move || {
            let (mut pipe, mut all, mut buffer) = (File::open(path).unwrap(), Vec::new(), [0; 4096]);
            loop {
                match pipe.read(&mut buffer).unwrap() {
                    0 => return all,
                    count => all.extend_from_slice(&buffer[..count]),
                }
                if all.len() < fast_after {
                    thread::sleep(Duration::from_millis(3));
                }
            }
        }
    });
    (path, reader)
}

/// Returns numbers that do not compress.
fn noise(index: u64) -> u64 {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn threads_wait_for_a_slow_disk_if_no_event_may_be_lost() {
    static WAITED: AtomicU64 = AtomicU64::new(0);
    let folder = Folder::new();
    let (path, reader) = slow_pipe(&folder, 400_000);
    let recorder =
        start(RecorderOptions { memory: CHUNK, flush_every: SHORT, overwrite: true, ..RecorderOptions::new(path) });
    set_waiter(|wait| {
        WAITED.fetch_add(1, Ordering::Relaxed);
        wait();
    });
    let mark = mark(&recorder);
    let limit = 3 * CHUNK;
    thread::scope(|scope| {
        for producer in 0..2 {
            let recorder = &recorder;
            scope.spawn(move || {
                for index in 0..60_000 {
                    recorder.record(mark, &[producer, noise(index)]);
                    if index % 5_000 == 0 {
                        assert!(recorder.stats().buffer_bytes <= limit, "one for each thread, and one that waits");
                    }
                }
            });
        }
    });
    let summary = recorder.stop();
    drop(recorder);
    let read = ReadBack::bytes(&reader.join().unwrap());
    assert_eq!((read.torn, summary.events, summary.lost.len()), (0, 120_000, 0));
    let all: Vec<u64> = (0..60_000).map(noise).collect();
    assert!(read.marks().into_values().all(|index| index == all));
    assert!(WAITED.load(Ordering::Relaxed) > 0, "threads wait inside the waiter");
}

#[test]
fn a_slow_disk_drops_events_if_allowed_and_counts_them() {
    let folder = Folder::new();
    let (path, reader) = slow_pipe(&folder, 200_000);
    let options =
        RecorderOptions { memory: CHUNK, when_full: WhenFull::Drop, overwrite: true, ..RecorderOptions::new(path) };
    let recorder = start(RecorderOptions { flush_every: SHORT, ..options });
    let mark = mark(&recorder);
    thread::scope(|scope| {
        for producer in 0..2 {
            let recorder = &recorder;
            scope.spawn(move || (0..100_000).for_each(|index| recorder.record(mark, &[producer, noise(index)])));
        }
    });
    let summary = recorder.stop();
    drop(recorder);
    let read = ReadBack::bytes(&reader.join().unwrap());
    let lost = read.lost(LossReason::Full);
    assert_eq!(read.count() + lost, 200_000);
    assert_eq!((summary.events, summary.lost.get(&LossReason::Full)), (read.count(), Some(&lost)));
    assert!(lost > 0);
    for (number, events) in &read.events {
        let mut all = (0..100_000).map(noise);
        assert!(events.iter().all(|event| all.any(|index| index == event.words[1])), "thread {number}: in order");
    }
    for lost in &read.lost {
        assert!(lost.thread > 0 && lost.first_ticks <= lost.last_ticks, "{lost:?}");
    }
}

#[test]
fn a_full_device_blocks_no_thread() {
    for when_full in [WhenFull::Block, WhenFull::Drop] {
        let options =
            RecorderOptions { memory: CHUNK, when_full, overwrite: true, ..RecorderOptions::new("/dev/full") };
        let recorder = start(RecorderOptions { flush_every: SHORT, ..options });
        let mark = mark(&recorder);
        (0..100_000).for_each(|index| recorder.record(mark, &[0, index]));
        assert!(matches!(recorder.flush(), Err(FlushError::Write(_))));
        let summary = recorder.stop();
        assert_eq!((summary.events, summary.bytes_written), (0, 0));
        assert_eq!(summary.lost.values().sum::<u64>(), 100_000);
        assert!(summary.error.unwrap().contains("No space left"));
    }
}

#[test]
fn a_pipe_without_a_reader_blocks_no_thread() {
    let folder = Folder::new();
    let (path, reader) = slow_pipe(&folder, 0);
    let recorder =
        start(RecorderOptions { memory: CHUNK, flush_every: SHORT, overwrite: true, ..RecorderOptions::new(&path) });
    let mark = mark(&recorder);
    recorder.record(mark, &[0, 0]);
    recorder.flush().unwrap();
    // The reader ends at an end of file, which a second writer that opens and closes can't cause. So the recorder ends first
    // here, and then a reader comes that closes at once.
    drop(recorder);
    reader.join().unwrap();
    let closes_at_once = thread::spawn({
        let path = path.clone();
        move || drop(File::open(path).unwrap())
    });
    let recorder =
        start(RecorderOptions { memory: CHUNK, flush_every: SHORT, overwrite: true, ..RecorderOptions::new(&path) });
    closes_at_once.join().unwrap();
    (0..100_000).for_each(|index| recorder.record(mark, &[0, index]));
    let summary = recorder.stop();
    assert!(summary.error.is_some(), "{summary:?}");
}

/// Runs in a separate process, because a limit on the size of files applies to the process. The signal that the system sends would
/// end the process if it were delivered.
fn fill_the_disk(path: &Path) {
    let limit = |bytes| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    };
    let recorder = start(RecorderOptions { memory: CHUNK, flush_every: SHORT, ..RecorderOptions::new(path) });
    let mark = mark(&recorder);
    let mut next = 0;
    let mut record = |count| {
        for _ in 0..count {
            recorder.record(mark, &[0, noise(next)]);
            next += 1;
        }
    };
    limit(300_000);
    let mut many = 100_000;
    record(many);
    // The rest for this flush may have been so small that it fitted.
    while recorder.flush().is_ok() {
        record(1_000);
        many += 1_000;
    }
    assert!(fs::metadata(path).unwrap().len() <= 300_000);
    let during = ReadBack::whole(path);
    assert!(during.count() > 0 && during.end.is_none());
    limit(libc::RLIM_INFINITY);
    while recorder.flush().is_err() {
        thread::sleep(SHORT);
    }
    let lost = recorder.stats().lost[&LossReason::WriteFailed];
    record(1_000);
    let summary = recorder.stop();
    let read = ReadBack::whole(path);
    assert_eq!(read.end.map(|end| (end.events, end.lost)), Some((read.count(), lost)));
    assert_eq!((read.lost(LossReason::WriteFailed), read.count() + lost), (lost, many + 1_000));
    assert_eq!(summary.lost[&LossReason::WriteFailed], lost);
    assert!(summary.error.unwrap().contains("File too large"));
    let newest: Vec<u64> = read.events[&1].iter().rev().take(1_000).map(|event| event.words[1]).collect();
    assert!(newest.into_iter().rev().eq((many..many + 1_000).map(noise)), "recording continues once there is space");
}

#[test]
fn a_full_disk_loses_whole_blocks_and_writing_is_retried() {
    let folder = Folder::new();
    if let Some(path) = child::role() {
        return fill_the_disk(Path::new(&path));
    }
    let path = folder.file("out.swv");
    let name = "disk::a_full_disk_loses_whole_blocks_and_writing_is_retried";
    let output = child::run(&mut child::command(&child::own_executable(), name, path.to_str().unwrap()));
    assert!(output.status.success(), "{}", child::text(&output));
}

#[test]
fn a_ring_keeps_the_last_bytes_and_dumps_a_complete_recording() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let ring = Some(RingLimits { bytes: Some(300_000), seconds: None });
    let recorder = start(RecorderOptions { ring, flush_every: SHORT, ..RecorderOptions::new(&path) });
    let mark = mark(&recorder);
    assert!(!path.exists());
    let mut last = 0;
    for round in 1..=3 {
        let before = last;
        last = round * 200_000;
        (before..last).for_each(|index| recorder.record(mark, &[0, noise(index)]));
        let other = folder.file(&format!("{round}.swv"));
        let dumped = recorder.dump((round > 1).then_some(&*other)).unwrap();
        assert_eq!(dumped, if round > 1 { other } else { path.clone() });
        let length = fs::metadata(&dumped).unwrap().len();
        assert!((100_000..400_000).contains(&length), "{length}");
        let read = ReadBack::whole(&dumped);
        let kept = read.count();
        assert_eq!((read.start.mode, read.end.map(|end| end.reason)), (RecordingMode::Ring, Some(EndReason::Dumped)));
        assert!(read.points.len() >= 2);
        assert_eq!(read.lost(LossReason::Ring), last - kept);
        assert!(read.marks()[&0].iter().copied().eq((last - kept..last).map(noise)));
    }
    let summary = recorder.stop();
    assert_eq!(summary.events + summary.lost[&LossReason::Ring], 600_000);
    assert_eq!(recorder.dump(None), Err(FlushError::Stopped));
    assert_eq!(folder.paths().len(), 3, "no temporary file is left");
}

#[test]
fn a_ring_keeps_the_last_seconds_and_dumps_at_the_end_if_requested() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let ring = Some(RingLimits { bytes: None, seconds: Some(0.05) });
    let recorder =
        start(RecorderOptions { ring, flush_every: SHORT, dump_at_exit: true, ..RecorderOptions::new(&path) });
    let mark = mark(&recorder);
    (0..1_000).for_each(|index| recorder.record(mark, &[0, index]));
    recorder.flush().unwrap();
    thread::sleep(Duration::from_millis(120));
    (1_000..1_010).for_each(|index| recorder.record(mark, &[0, index]));
    let summary = recorder.stop();
    let read = ReadBack::whole(&path);
    assert_eq!((summary.path, summary.events), (path, read.count()));
    // On a busy machine even the last events may be too old at the dump.
    assert!(read.marks().get(&0).is_none_or(|index| index.iter().all(|index| *index >= 1_000)));
    assert_eq!(read.lost(LossReason::Ring) + read.count(), 1_010);
    assert_eq!(read.end.unwrap().reason, EndReason::Stopped);
}

#[test]
fn only_a_ring_can_be_dumped() {
    let folder = Folder::new();
    let recorder = start(RecorderOptions { dump_at_exit: true, ..RecorderOptions::new(folder.file("out.swv")) });
    assert_eq!(recorder.dump(None), Err(FlushError::NoRing));
    assert!(ReadBack::whole(&recorder.stop().path).end.is_some());
}
