//! Recorders that start, pause, stop and start again, and processes that fork meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use stackweave_capture::stacks;
use stackweave_core::NoNames;
use stackweave_recording::{Options, Recorder};
use stackweave_store::label;
use stackweave_testkit::folder::Folder;

use super::recorded::{Running, about, plain, record, sized};
use crate::platform::hooks;
use crate::{Memory, MemoryError, MemoryOptions};

fn without_stacks() -> MemoryOptions {
    MemoryOptions { depth: 0, ..MemoryOptions::default() }
}

fn take(size: usize) -> usize {
    // SAFETY: as the function is meant to be called.
    unsafe { hooks::malloc(size) }.addr()
}

fn give_back(block: usize) {
    // SAFETY: taken by `take`, and given back once.
    unsafe { hooks::free(std::ptr::with_exposed_provenance_mut(block)) };
}

#[test]
fn there_is_one_at_a_time() {
    let running = Running::start(without_stacks());
    let second = Memory::start(running.recorder.clone(), without_stacks());
    assert!(matches!(second, Err(MemoryError::AlreadyRecording)));
    let before = take(300);
    running.memory.stop();
    running.memory.stop();
    let block = take(301);
    let third = Memory::start(running.recorder.clone(), without_stacks()).unwrap();
    let after = take(302);
    drop(third);
    [before, block, after].into_iter().for_each(give_back);
    let seen = running.stop();
    assert_eq!(about(&seen, &[before, block, after]), [sized("malloc", before, 300), sized("malloc", after, 302)]);
}

#[test]
fn in_a_pause_blocks_are_given_back_but_not_taken() {
    let (mut blocks, mut late) = ([0; 3], 0);
    let seen = record(without_stacks(), |memory| {
        blocks[0] = take(400);
        memory.pause();
        blocks[1] = take(401);
        give_back(blocks[0]);
        memory.resume();
        blocks[2] = take(100_402);
        late = take(403);
        blocks[1..].iter().copied().for_each(give_back);
    });
    let expected = [
        sized("malloc", blocks[0], 400),
        plain("free", blocks[0]),
        sized("malloc", blocks[2], 100_402),
        plain("free", blocks[1]),
        plain("free", blocks[2]),
    ];
    assert_eq!(
        about(&seen, &blocks).into_iter().filter(|told| *told != sized("malloc", late, 403)).collect::<Vec<_>>(),
        expected
    );
    give_back(late);
}

#[test]
fn a_tag_is_the_threads_own_and_is_given_back() {
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
                give_back(take(64));
            }
        };
        scope.spawn(work);
        let weak: Vec<_> = (0..SESSIONS)
            .map(|_| {
                let folder = Folder::new();
                let options = Options::new(folder.file("out.swv"));
                let (names, memory) = (Arc::new(NoNames), without_stacks());
                let known = Arc::downgrade(&names);
                let recorder = Recorder::start(options, stacks(), names).unwrap();
                let memory = Memory::start(recorder.clone(), memory).unwrap();
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

/// Runs `child` in a forked process, and gives its exit code.
fn fork(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child does what a program does after a fork, and ends itself.
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
fn a_child_records_what_it_does_once_it_has_begun() {
    let running = Running::start(without_stacks());
    let name = label("before the fork", "", 0).unwrap();
    running.memory.set_tag(Some(name));
    let parents = take(500);
    let code = fork(|| {
        let early = take(501);
        give_back(early);
        let counted = running.memory.stats().before_begun;
        running.memory.begin_in_child();
        running.memory.begin_in_child();
        give_back(take(502));
        give_back(parents);
        running.memory.stop();
        running.recorder.stop();
        i32::from(counted < 2)
    });
    assert_eq!(code, 0);
    give_back(parents);
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
fn a_child_of_many_threads_that_never_begins_is_left_alone() {
    let running = Running::start(MemoryOptions::default());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    give_back(take(64));
                }
            });
        }
        for _ in 0..20 {
            let code = fork(|| {
                (0..1000).for_each(|size| give_back(take(size)));
                0
            });
            assert_eq!(code, 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(running.stop_all().len(), 1);
}

/// As `vfork` and `posix_spawn` run it: in the parent's memory, with its thread's own.
extern "C" fn beside(_: *mut libc::c_void) -> i32 {
    give_back(take(601));
    0
}

#[test]
fn a_child_that_shares_our_memory_is_told_of_as_ours() {
    let running = Running::start(without_stacks());
    give_back(take(600));
    let mut stack = vec![0_u128; 1 << 14];
    // SAFETY: the child has a stack of its own while the parent waits, and does only what the parent could do in its place.
    unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(beside, stack.as_mut_ptr_range().end.cast(), flags, std::ptr::null_mut());
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
    }
    give_back(take(602));
    let seen = running.stop();
    let sizes: Vec<u64> = seen
        .iter()
        .filter(|event| event.kind == "malloc" && (600..603).contains(&event.words[1]))
        .map(|event| event.words[1])
        .collect();
    assert_eq!(sizes, [600, 601, 602]);
}
