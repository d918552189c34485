//! Once warm, a capture does not allocate and makes no system call.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::ffi::c_void;

use stackweave_testkit::counting_allocator::{CountingAllocator, requests};
use stackweave_testkit::fixtures::{call_through, sw_call_leaf, sw_recurse, sw_trapping_leaf};
use stackweave_testkit::signals::{SignalStack, in_handler, with_handlers};
use stackweave_testkit::subject;
use stackweave_testkit::tree::{FUNCTIONS, FramePointers, walk};
use stackweave_unwind::{CodeAddress, StackPointer};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROUNDS: usize = 2000;

/// Returns the number of allocator calls of `round`, over all rounds after the first few.
fn requests_when_warm(round: &mut dyn FnMut()) -> u64 {
    for _ in 0..10 {
        round();
    }
    let before = requests();
    for _ in 0..ROUNDS {
        round();
    }
    requests() - before
}

#[test]
fn a_warm_capture_does_not_allocate() {
    let mut frames = vec![CodeAddress::default(); 512];
    let mut stack_pointers = vec![StackPointer::default(); 512];
    let mut request_count = 0;
    let path: Vec<u8> = (0..FUNCTIONS).chain(0..FUNCTIONS).collect();
    for build in [FramePointers::Omitted, FramePointers::Kept] {
        walk(build, &path, &mut |_| {
            request_count += requests_when_warm(&mut || {
                subject::capture(&mut frames, 0);
                subject::capture(&mut frames, 5);
                subject::capture(&mut frames[..7], 2);
                subject::capture_with_stack_pointers(&mut frames, &mut stack_pointers, 0);
            });
        });
    }
    assert_eq!(request_count, 0);
}

#[test]
fn a_warm_capture_of_changing_stacks_does_not_allocate() {
    let mut frames = vec![CodeAddress::default(); 512];
    let mut inside = 0;
    let mut capture = || {
        let before = requests();
        subject::capture(&mut frames, 0);
        inside += requests() - before;
    };
    let mut descend = |depth| {
        call_through(&mut capture, |callback, data| {
            // SAFETY: the fixture gets a callback with its own data.
            unsafe { sw_recurse(depth, callback, data) };
        });
    };
    descend(100);
    for round in 0..2000_u32 {
        descend(round * 7 % 100);
    }
    assert_eq!(inside, 0);
}

#[test]
fn a_warm_capture_from_a_context_does_not_allocate() {
    let mut frames = vec![CodeAddress::default(); 512];
    let mut request_count = 0;
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        in_handler(stack, &mut |context| {
            request_count += requests_when_warm(&mut || {
                // SAFETY: the context is that of the handler that runs.
                unsafe { subject::capture_from_context(context, &mut frames, 0) };
                subject::capture(&mut frames, 0);
            });
        });
    }
    assert_eq!(request_count, 0);
}

/// Captures in every way that needs no system call.
fn capture_in_every_way(frames: &mut [CodeAddress], stack_pointers: &mut [StackPointer], rounds: usize) {
    let mut capture = || {
        subject::capture(frames, 0);
        subject::capture_with_stack_pointers(frames, stack_pointers, 0);
        // SAFETY: the leaf traps, and the trap has a handler, which captures from its context.
        unsafe { sw_call_leaf(sw_trapping_leaf, 1) };
    };
    for round in 0..rounds {
        call_through(&mut capture, |callback, data| {
            // SAFETY: the fixture gets a callback with its own data.
            unsafe { sw_recurse(u32::try_from(round % 50).unwrap_or(0), callback, data) };
        });
    }
}

/// Warms up, then continues where every system call except signal return ends the process. Runs in the child.
fn capture_without_the_system(frames: &mut [CodeAddress], stack_pointers: &mut [StackPointer]) -> ! {
    capture_in_every_way(frames, stack_pointers, 200);
    // SAFETY: seccomp's strict mode takes no argument; it allows `exit` of this single thread.
    unsafe {
        if libc::prctl(libc::PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */, 0, 0, 0) != 0 {
            libc::syscall(libc::SYS_exit, 77);
        }
    }
    capture_in_every_way(frames, stack_pointers, ROUNDS);
    // SAFETY: ends this thread, and with it the process.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the process has ended");
}

#[test]
fn a_warm_capture_makes_no_system_call() {
    let mut frames = vec![CodeAddress::default(); 512];
    let mut stack_pointers = vec![StackPointer::default(); 512];
    let mut from_context = vec![CodeAddress::default(); 512];
    let mut status = -1;
    subject::capture(&mut frames, 0);
    let mut on_trap = |context: *mut c_void| {
        // SAFETY: the context is that of the handler that runs.
        unsafe { subject::capture_from_context(context, &mut from_context, 0) };
    };
    with_handlers(&[libc::SIGTRAP], SignalStack::Normal, &mut on_trap, || {
        // SAFETY: the child only captures and exits; the parent waits for it.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                capture_without_the_system(&mut frames, &mut stack_pointers);
            }
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        }
    });
    assert!(!libc::WIFSIGNALED(status), "a system call was made (killed by signal {})", libc::WTERMSIG(status));
    let code = libc::WEXITSTATUS(status);
    assert!(code == 0 || code == 77, "exit status {code}");
}
