//! Forked children have separate recordings, and never wait for locks that their parent's threads held.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use stackweave_core::NoNames;
use stackweave_recording::file::EndReason;
use stackweave_recording::live::{Recorder, RecorderOptions, Summary};
use stackweave_recording::read::first_start;
use stackweave_testkit::child::{self, in_own_process};

use crate::recorded::{ReadBack, STACKS, mark, start};

/// Forks; the child runs `inside` and ends without cleanup. Returns its process id.
fn fork(inside: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child only makes calls that glibc allows in a child of a process with threads, including allocation.
    match unsafe { libc::fork() } {
        0 => end_after(inside),
        pid => pid,
    }
}

fn end_after(inside: impl FnOnce()) -> ! {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(inside));
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}

fn wait_for(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: a child of this process, and a valid pointer to its status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child succeeded");
}

fn beside(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("out.{pid}.swv"))
}

fn range(read: &ReadBack, producer: u64) -> (u64, u64) {
    let index = &read.marks()[&producer];
    assert!(index.windows(2).all(|pair| pair[1] == pair[0] + 1));
    (index[0], index[index.len() - 1])
}

#[test]
fn a_child_and_its_child_have_separate_files() {
    let folder = in_own_process("forking::a_child_and_its_child_have_separate_files", |folder| {
        let recorder = start(RecorderOptions::new(folder.join("out.swv")));
        let mark = mark(&recorder);
        let parent = std::process::id();
        (0..10).for_each(|index| recorder.record(mark, &[0, index]));
        let child = fork(|| {
            (10..20).for_each(|index| recorder.record(mark, &[1, index]));
            let own = std::process::id();
            assert_eq!(recorder.path(), beside(folder, own));
            let grandchild = fork(|| {
                recorder.record(mark, &[2, 20]);
                let summary = recorder.stop();
                assert_eq!((summary.path, summary.events), (beside(folder, std::process::id()), 1));
                let read = ReadBack::whole(&recorder.path());
                assert_eq!((read.start.forked_from, range(&read, 2)), (Some(own), (20, 20)));
            });
            recorder.record(mark, &[1, 20]);
            wait_for(grandchild);
            let summary = recorder.stop();
            assert_eq!((&summary.path, summary.events), (&beside(folder, own), 11));
            let read = ReadBack::whole(&summary.path);
            assert_eq!((read.start.pid, read.start.parent_pid, read.start.forked_from), (own, parent, Some(parent)));
            assert_eq!((range(&read, 1), read.events.len(), read.end.is_some()), ((10, 20), 1, true));
        });
        wait_for(child);
        (10..15).for_each(|index| recorder.record(mark, &[0, index]));
        let summary = recorder.stop();
        let read = ReadBack::whole(&summary.path);
        assert_eq!((range(&read, 0), read.count(), read.start.forked_from), ((0, 14), 15, None));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 3));
}

#[test]
fn a_child_that_can_not_create_its_file_reports_it_and_its_parent_counts_it() {
    let folder =
        in_own_process("forking::a_child_that_can_not_create_its_file_reports_it_and_its_parent_counts_it", |folder| {
            let inner = folder.join("inner");
            std::fs::create_dir(&inner).unwrap();
            let recorder = start(RecorderOptions::new(inner.join("out.swv")));
            let mark = mark(&recorder);
            recorder.record(mark, &[0, 0]);
            std::fs::rename(&inner, folder.join("moved")).unwrap();
            let child = fork(|| {
                assert_eq!(recorder.failure(), None);
                recorder.record(mark, &[1, 1]);
                let why = recorder.failure().unwrap();
                assert!(why.contains("its folder does not exist"), "{why}");
                assert_eq!(recorder.stats().error.as_ref(), Some(&why));
                let grandchild = fork(|| {
                    assert_eq!(recorder.failure(), None, "it has not tried yet");
                    assert_eq!(recorder.stop().error, None);
                });
                wait_for(grandchild);
                assert_eq!(recorder.stop(), Summary { error: Some(why), ..Summary::default() });
            });
            wait_for(child);
            std::fs::rename(folder.join("moved"), &inner).unwrap();
            let other = fork(|| {
                recorder.record(mark, &[2, 2]);
                assert_eq!(recorder.failure(), None);
                let own = first_start(&recorder.path()).unwrap();
                assert_eq!(own.pid, std::process::id());
                assert!(own.run().is_some());
                assert_eq!(own.run(), first_start(&inner.join("out.swv")).unwrap().run());
            });
            wait_for(other);
            assert_eq!((recorder.failure(), recorder.unrecorded_children()), (None, 1));
            let summary = recorder.stop();
            assert_eq!((summary.error, summary.events), (None, 1));
        });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 1));
}

#[test]
fn a_child_that_records_nothing_creates_nothing_and_never_hangs() {
    let folder = in_own_process("forking::a_child_that_records_nothing_creates_nothing_and_never_hangs", |folder| {
        let recorder = start(RecorderOptions::new(folder.join("out.swv")));
        let mark = mark(&recorder);
        recorder.record(mark, &[0, 0]);
        let children = [
            fork(|| assert_eq!(recorder.flush(), Ok(()))),
            fork(|| {
                assert_eq!(recorder.stop(), Summary::default());
                recorder.record(mark, &[0, 1]);
                assert_eq!(recorder.stop(), Summary::default());
            }),
            fork(|| assert_eq!(recorder.stats().events, 0)),
            fork(|| recorder.pause()),
            fork(|| drop(recorder.clone())),
        ];
        children.into_iter().for_each(wait_for);
        // SAFETY: the child drops its only handle, and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            end_after(|| drop(recorder));
        }
        wait_for(pid);
        recorder.record(mark, &[0, 1]);
        assert_eq!(range(&ReadBack::whole(&recorder.stop().path), 0), (0, 1));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 1));
}

#[test]
fn children_are_not_recorded_if_not_requested() {
    let folder = in_own_process("forking::children_are_not_recorded_if_not_requested", |folder| {
        let recorder = start(RecorderOptions { follow_forks: false, ..RecorderOptions::new(folder.join("out.swv")) });
        let mark = mark(&recorder);
        recorder.record(mark, &[0, 0]);
        wait_for(fork(|| {
            (0..100_000).for_each(|index| recorder.record(mark, &[1, index]));
            assert_eq!(recorder.stop(), Summary::default());
        }));
        recorder.record(mark, &[0, 1]);
        assert_eq!(range(&ReadBack::whole(&recorder.stop().path), 0), (0, 1));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 1));
}

#[test]
fn forks_at_any_moment_are_harmless() {
    const FORKS: u32 = 60;
    let folder = in_own_process("forking::forks_at_any_moment_are_harmless", |folder| {
        let options = RecorderOptions {
            memory: 64 * 1024,
            flush_every: Duration::from_millis(1),
            ..RecorderOptions::new(folder.join("out.swv"))
        };
        let recorder = start(options);
        let mark = mark(&recorder);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for producer in 1..3 {
                let (recorder, is_over) = (&recorder, &is_over);
                scope.spawn(move || {
                    for index in 0.. {
                        recorder.record(mark, &[producer, index]);
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        if index % 200 == 0 {
                            thread::sleep(Duration::from_micros(100));
                        }
                    }
                });
            }
            for round in 0..u64::from(FORKS) {
                recorder.record(mark, &[0, round]);
                let child = fork(|| {
                    let records = || (0..7_000).for_each(|index| recorder.record(mark, &[10, index]));
                    if round % 2 == 0 {
                        thread::scope(|scope| {
                            scope.spawn(|| (0..1_000).for_each(|index| recorder.record(mark, &[11, index])));
                            records();
                        });
                    } else {
                        records();
                    }
                    if round % 3 != 0 {
                        recorder.stop();
                    } else {
                        recorder.flush().unwrap();
                    }
                    let read = ReadBack::whole(&recorder.path());
                    assert_eq!(range(&read, 10), (0, 6_999));
                    assert_eq!(read.end.is_some(), round % 3 != 0);
                });
                wait_for(child);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let read = ReadBack::whole(&recorder.stop().path);
        assert_eq!(range(&read, 0), (0, u64::from(FORKS) - 1));
        assert_eq!((range(&read, 1).0, range(&read, 2).0), (0, 0));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == FORKS as usize + 1));
}

#[test]
fn a_fork_without_handlers_is_detected() {
    let folder = in_own_process("forking::a_fork_without_handlers_is_detected", |folder| {
        let recorder = start(RecorderOptions { memory: 64 * 1024, ..RecorderOptions::new(folder.join("out.swv")) });
        let mark = mark(&recorder);
        recorder.record(mark, &[0, 0]);
        // SAFETY: forks without the C library, which calls no handlers then; the child needs none.
        let pid = unsafe { libc::syscall(libc::SYS_fork) };
        if pid == 0 {
            end_after(|| {
                (0..100_000).for_each(|index| recorder.record(mark, &[1, index]));
                let summary = recorder.stop();
                let (first, last) = range(&ReadBack::whole(&summary.path), 1);
                // Events in the copy of the parent's buffer are discarded.
                assert!(first < 5_000 && last == 99_999, "{first} {last}");
            });
        }
        wait_for(libc::pid_t::try_from(pid).unwrap());
        recorder.record(mark, &[0, 1]);
        assert_eq!(range(&ReadBack::whole(&recorder.stop().path), 0), (0, 1));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 2));
}

/// Runs `inside` in a child that shares this memory, as after `vfork`; this thread waits meanwhile.
fn in_borrowed_memory(inside: &mut dyn FnMut()) {
    extern "C" fn run(inside: *mut c_void) -> i32 {
        // SAFETY: the pointer that is passed below, which stays valid.
        unsafe { (*inside.cast::<&mut dyn FnMut()>())() };
        0
    }
    let mut inside = inside;
    let mut stack = vec![0_u128; 16 * 1024];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child runs on a separate stack, and ends before this thread continues.
    let pid = unsafe { libc::clone(run, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut inside).cast()) };
    assert!(pid > 0);
    wait_for(pid);
}

#[test]
fn events_of_a_child_with_shared_memory_belong_to_its_parent() {
    let name = "forking::events_of_a_child_with_shared_memory_belong_to_its_parent";
    let folder = in_own_process(name, |folder| {
        let options = RecorderOptions {
            memory: 64 * 1024,
            flush_every: Duration::from_millis(2),
            ..RecorderOptions::new(folder.join("out.swv"))
        };
        let recorder = start(options);
        let mark = mark(&recorder);
        recorder.record(mark, &[0, 0]);
        in_borrowed_memory(&mut || (1..50_000).for_each(|index| recorder.record(mark, &[0, index])));
        recorder.record(mark, &[0, 50_000]);
        thread::scope(|scope| {
            scope.spawn(|| {
                // The child records the first event of this thread.
                in_borrowed_memory(&mut || recorder.record(mark, &[1, 0]));
                // Long enough for the writer to check which threads have ended.
                for index in 1..150 {
                    recorder.record(mark, &[1, index]);
                    thread::sleep(Duration::from_millis(10));
                }
            });
        });
        let read = ReadBack::whole(&recorder.stop().path);
        assert_eq!((range(&read, 0), range(&read, 1), read.count()), ((0, 50_000), (0, 149), 50_151));
    });
    assert!(folder.is_none_or(|folder| folder.paths().len() == 1));
}

#[test]
fn a_process_that_exits_without_stopping_ends_its_file() {
    let name = "forking::a_process_that_exits_without_stopping_ends_its_file";
    let folder = in_own_process(name, |folder| {
        let recorder = start(RecorderOptions {
            flush_every: Duration::from_secs(3600),
            ..RecorderOptions::new(folder.join("out.swv"))
        });
        let mark = mark(&recorder);
        (0..10).for_each(|index| recorder.record(mark, &[0, index]));
        std::mem::forget(recorder.clone());
        // SAFETY: the child exits normally, with its registered handlers.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            recorder.record(mark, &[1, 0]);
            std::process::exit(0);
        }
        wait_for(pid);
        std::process::exit(0);
    });
    let Some(folder) = folder else { return };
    let paths = folder.paths();
    let ends = paths.iter().map(|path| ReadBack::whole(path).end.map(|end| (end.events, end.reason)));
    let mut ends: Vec<_> = ends.map(Option::unwrap).collect();
    ends.sort_by_key(|(events, _)| *events);
    assert_eq!(ends, [(1, EndReason::Exited), (10, EndReason::Exited)]);
}

#[test]
fn a_started_program_records_beside_its_parent_if_both_request_it() {
    const NAME: &str = "forking::a_started_program_records_beside_its_parent_if_both_request_it";
    let record = |producer| {
        let recorder = Recorder::from_environment(&STACKS, Arc::new(NoNames)).unwrap();
        if let Some(recorder) = recorder {
            recorder.record(mark(&recorder), &[producer, 0]);
        }
    };
    if child::role().as_deref() == Some("started") {
        return record(1);
    }
    let folder = in_own_process(NAME, |folder| {
        let again = || {
            let mut command: Command = child::command(&child::own_executable(), NAME, "started");
            assert!(child::run(&mut command).status.success());
        };
        let recorder = start(RecorderOptions { subprocesses: true, ..RecorderOptions::new(folder.join("out.swv")) });
        again();
        again();
        recorder.stop();
        again();
        let separate = start(RecorderOptions::new(folder.join("separate.swv")));
        again();
        separate.stop();
    });
    let Some(folder) = folder else { return };
    let reads: Vec<ReadBack> = folder.paths().iter().map(|path| ReadBack::whole(path)).collect();
    let mut counts: Vec<u64> = reads.iter().map(ReadBack::count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 1, 1]);
    assert!(reads.iter().all(|read| read.start.forked_from.is_none() && read.end.is_some()));
}
