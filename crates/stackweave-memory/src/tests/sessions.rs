//! Recorders that start, pause, stop and start again, and processes that fork meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use stackweave_capture::stacks;
use stackweave_core::NoNames;
use stackweave_recording::{Recorder, RecorderOptions};
use stackweave_store::label;
use stackweave_testkit::folder::Folder;

use super::recorded::{Running, about, plain, record, sized};
use crate::platform::hooks;
use crate::{MemoryError, MemoryOptions, MemoryRecorder};

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

fn allocate(size: usize) -> usize {
    // SAFETY: as the function is meant to be called.
    unsafe { hooks::malloc(size) }.addr()
}

fn free(block: usize) {
    // SAFETY: a block of `allocate` that is freed once.
    unsafe { hooks::free(std::ptr::with_exposed_provenance_mut(block)) };
}

#[test]
fn a_process_has_one_recorder_at_a_time() {
    let running = Running::start(without_stacks());
    let second = MemoryRecorder::start(running.recorder.clone(), without_stacks());
    assert!(matches!(second, Err(MemoryError::AlreadyRecording)));
    let before = allocate(300);
    running.memory.stop();
    running.memory.stop();
    let block = allocate(301);
    let third = MemoryRecorder::start(running.recorder.clone(), without_stacks()).unwrap();
    let after = allocate(302);
    drop(third);
    [before, block, after].into_iter().for_each(free);
    let seen = running.stop();
    assert_eq!(about(&seen, &[before, block, after]), [sized("malloc", before, 300), sized("malloc", after, 302)]);
}

#[test]
fn while_paused_frees_are_recorded_and_allocations_are_not() {
    let (mut blocks, mut late) = ([0; 3], 0);
    let seen = record(without_stacks(), |memory| {
        blocks[0] = allocate(400);
        memory.pause();
        blocks[1] = allocate(401);
        free(blocks[0]);
        memory.resume();
        blocks[2] = allocate(100_402);
        late = allocate(403);
        blocks[1..].iter().copied().for_each(free);
    });
    let expected = [
        sized("malloc", blocks[0], 400),
        plain("free", blocks[0]),
        sized("malloc", blocks[2], 100_402),
        plain("free", blocks[1]),
        plain("free", blocks[2]),
    ];
    assert_eq!(
        about(&seen, &blocks).into_iter().filter(|event| *event != sized("malloc", late, 403)).collect::<Vec<_>>(),
        expected
    );
    free(late);
}

#[test]
fn a_tag_belongs_to_its_thread_and_the_previous_one_is_returned() {
    let names = ["step 1", "step 2"].map(|name| label(name, "", 0).unwrap());
    let seen = record(without_stacks(), |memory| {
        assert_eq!(memory.set_tag(Some(names[0])), None);
        assert_eq!(memory.set_tag(Some(names[1])), Some(names[0]));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(memory.set_tag(None), None));
        });
        assert_eq!(memory.set_tag(None), Some(names[1]));
        assert_eq!(memory.set_tag(None), None);
    });
    let tags: Vec<_> = seen.iter().filter(|event| event.kind == "memory-tag").collect();
    assert_eq!(tags.len(), 5);
    assert_eq!(tags.iter().filter(|event| event.words[0] == 0).count(), 3);
}

#[test]
fn many_starts_and_stops_leave_nothing_behind() {
    const SESSIONS: usize = 100;
    let guard = Running::start(without_stacks());
    guard.memory.stop();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                free(allocate(64));
            }
        };
        scope.spawn(work);
        let weak: Vec<_> = (0..SESSIONS)
            .map(|_| {
                let folder = Folder::new();
                let options = RecorderOptions::new(folder.file("out.swv"));
                let (names, memory) = (Arc::new(NoNames), without_stacks());
                let known = Arc::downgrade(&names);
                let recorder = Recorder::start(options, stacks(), names).unwrap();
                let memory = MemoryRecorder::start(recorder.clone(), memory).unwrap();
                thread::yield_now();
                memory.stop();
                assert_eq!(memory.stats().left_over, 0);
                recorder.stop();
                known
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert!(weak.iter().all(|names| names.upgrade().is_none()), "each recorder is freed");
    });
}

/// Runs `child` in a forked process, and returns its exit code.
fn fork(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child does what a program does after a fork, and exits.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::alarm(30);
            libc::_exit(child());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        assert!(libc::WIFEXITED(status), "{status}");
        libc::WEXITSTATUS(status)
    }
}

#[test]
fn a_child_records_once_its_recording_has_begun() {
    let running = Running::start(without_stacks());
    let name = label("before the fork", "", 0).unwrap();
    running.memory.set_tag(Some(name));
    let parents = allocate(500);
    let code = fork(|| {
        let early = allocate(501);
        free(early);
        let counted = running.memory.stats().before_begun;
        running.memory.begin_in_child();
        running.memory.begin_in_child();
        free(allocate(502));
        free(parents);
        running.memory.stop();
        running.recorder.stop();
        i32::from(counted < 2)
    });
    assert_eq!(code, 0);
    free(parents);
    let recordings = running.stop_all();
    assert_eq!(recordings.len(), 2);
    let of_child = recordings.iter().find(|(path, _)| !path.ends_with("out.swv")).unwrap();
    let sizes: Vec<u64> =
        of_child.1.iter().filter(|event| event.kind == "malloc").map(|event| event.words[1]).collect();
    assert_eq!(sizes, [502]);
    assert_eq!(of_child.1[0].kind, "memory-tag");
    assert!(of_child.1[0].words[0] != 0);
    assert_eq!(about(&of_child.1, &[parents]).last(), Some(&plain("free", parents)));
}

#[test]
fn a_child_of_many_threads_that_never_begins_records_nothing() {
    let running = Running::start(MemoryOptions::default());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    free(allocate(64));
                }
            });
        }
        for _ in 0..20 {
            let code = fork(|| {
                (0..1000).for_each(|size| free(allocate(size)));
                0
            });
            assert_eq!(code, 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(running.stop_all().len(), 1);
}

/// Runs in a child as `vfork` and `posix_spawn` start it: in the parent's memory, with the thread state of its thread.
extern "C" fn run_in_shared_memory(_: *mut libc::c_void) -> i32 {
    free(allocate(601));
    0
}

#[test]
fn a_child_that_shares_our_memory_is_recorded_as_ours() {
    let running = Running::start(without_stacks());
    free(allocate(600));
    let mut stack = vec![0_u128; 1 << 14];
    // SAFETY: the child has its own stack while the parent waits, and does only what the parent could do.
    unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(run_in_shared_memory, stack.as_mut_ptr_range().end.cast(), flags, std::ptr::null_mut());
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
    }
    free(allocate(602));
    let seen = running.stop();
    let sizes: Vec<u64> = seen
        .iter()
        .filter(|event| event.kind == "malloc" && (600..603).contains(&event.words[1]))
        .map(|event| event.words[1])
        .collect();
    assert_eq!(sizes, [600, 601, 602]);
}
