//! Threads in every phase of their lives, forked children, and captures that interrupt captures.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use stackweave_testkit::fixtures::{call_through, sw_recurse, sw_sort};
use stackweave_testkit::library::Library;
use stackweave_testkit::oracles::{ALL, SIGNAL_SAFE};
use stackweave_testkit::signals::{Alarm, SignalStack, in_handler, with_handlers};
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::tree::{FUNCTIONS, FramePointers, find_known, walk};
use stackweave_testkit::{random::Random, subject};
use stackweave_unwind::{CodeAddress, StopReason};

fn check_in_recursion(checker: &mut StackChecker, what: &'static str) {
    call_through(&mut || checker.check_here(what, ALL), |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_recurse(30, callback, data) };
    });
}

#[test]
fn threads_started_later_are_captured_completely() {
    let mut checker = StackChecker::new(4096);
    check_in_recursion(&mut checker, "before the threads");
    for round in 0..20 {
        let size = (256 << 10) * (1 + round % 4);
        let in_thread = || {
            let mut checker = StackChecker::new(4096);
            check_in_recursion(&mut checker, "in a thread");
            checker.expect_agreement(3);
        };
        thread::Builder::new().stack_size(size).spawn(in_thread).unwrap().join().unwrap();
    }
    check_in_recursion(&mut checker, "after the threads");
    checker.expect_agreement(6);
}

#[test]
fn the_first_capture_of_a_thread_may_be_in_a_handler() {
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let mut checker = StackChecker::new(4096);
        thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the context is that of the handler that runs.
                in_handler(stack, &mut |context| unsafe {
                    checker.check_context("first in a handler", context);
                    checker.check_here("second in a handler", SIGNAL_SAFE);
                });
            });
        });
        checker.expect_agreement(3);
    }
}

type Verdict = Result<usize, String>;

/// Captures when its thread ends, and sends the verdict.
struct AtExit {
    verdicts: Sender<Verdict>,
}

impl Drop for AtExit {
    fn drop(&mut self) {
        let mut checker = StackChecker::new(4096);
        checker.check_here("destructor of a thread-local", ALL);
        let _ = self.verdicts.send(checker.verdict());
    }
}

thread_local! {
    static MADE_BEFORE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    static MADE_AFTER: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

#[test]
fn thread_local_destructors_capture_correctly_in_any_order() {
    let (verdicts, received) = channel();
    for captures_before in [false, true] {
        let verdicts = verdicts.clone();
        let in_thread = move || {
            MADE_BEFORE.set(Some(AtExit { verdicts: verdicts.clone() }));
            if captures_before {
                let mut checker = StackChecker::new(4096);
                check_in_recursion(&mut checker, "in a thread that will end");
                checker.expect_agreement(3);
            }
            MADE_AFTER.set(Some(AtExit { verdicts }));
        };
        thread::spawn(in_thread).join().unwrap();
    }
    drop(verdicts);
    let verdicts: Vec<_> = received.into_iter().collect();
    assert_eq!(verdicts.len(), 4);
    for verdict in verdicts {
        verdict.unwrap();
    }
}

extern "C" fn capture_at_exit(verdicts: *mut c_void) {
    // SAFETY: the value is the sender that the thread boxed for this destructor.
    let verdicts = unsafe { Box::from_raw(verdicts.cast::<Sender<Verdict>>()) };
    let mut checker = StackChecker::new(4096);
    checker.check_here("destructor of a pthread key", ALL);
    let _ = verdicts.send(checker.verdict());
}

#[test]
fn pthread_key_destructors_capture_correctly() {
    let (verdicts, received) = channel::<Verdict>();
    let mut key = 0;
    // SAFETY: the destructor has the right signature and lives as long as the process.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(capture_at_exit)) }, 0);
    let in_thread = move || {
        let mut checker = StackChecker::new(4096);
        check_in_recursion(&mut checker, "in a thread that will end");
        checker.expect_agreement(3);
        let value: *mut Sender<_> = Box::into_raw(Box::new(verdicts));
        // SAFETY: the key exists; its destructor takes ownership of the value.
        unsafe { libc::pthread_setspecific(key, value.cast_const().cast()) };
    };
    thread::spawn(in_thread).join().unwrap();
    received.recv().expect("the destructor ran").unwrap();
}

/// Captures in a forked child, and returns its exit status: 0 if all checks succeeded.
fn check_in_forked_child(checker: &mut StackChecker) -> i32 {
    let mut status = -1;
    // SAFETY: the child captures into existing memory, and ends without running destructors.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(30);
            call_through(&mut || checker.check_here("forked child", SIGNAL_SAFE), |callback, data| {
                for depth in [3, 30, 3] {
                    sw_recurse(depth, callback, data);
                }
                sw_sort(callback, data);
            });
            libc::_exit(i32::from(checker.verdict().is_err()));
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    status
}

#[test]
fn a_forked_child_captures_correctly_after_its_parent_did() {
    for _ in 0..10 {
        let in_thread = || {
            let mut checker = StackChecker::new(4096);
            check_in_recursion(&mut checker, "before the fork");
            let status = check_in_forked_child(&mut checker);
            assert_eq!(status, 0, "the child's wait status");
            check_in_recursion(&mut checker, "after the fork");
            checker.expect_agreement(6);
        };
        thread::spawn(in_thread).join().unwrap();
    }
}

/// Returns whether a thread of this process sleeps or has ended, according to the kernel.
fn is_at_rest(tid: i32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")) else { return true };
    status.rsplit(") ").next().is_some_and(|state| state.starts_with(['S', 'Z', 'X']))
}

#[test]
fn a_capture_inside_the_loader_never_waits_for_a_thread_that_waits_for_it() {
    struct Inside<'a> {
        checker: &'a mut StackChecker,
        go: Sender<()>,
        waiter: i32,
    }
    unsafe extern "C" fn with_the_loaders_lock(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> i32 {
        // SAFETY: the data that is passed below.
        let inside = unsafe { &mut *data.cast::<Inside<'_>>() };
        let _ = inside.go.send(());
        // Check twice in a row, in case it sleeps for another reason on its way. It ends without having waited if
        // a thread of another test waits for the loader instead: one thread does so at a time.
        while !(is_at_rest(inside.waiter) && {
            thread::sleep(Duration::from_millis(20));
            is_at_rest(inside.waiter)
        }) {}
        inside.checker.check_here("inside of the loader", SIGNAL_SAFE);
        1
    }
    let mut checker = StackChecker::new(4096);
    check_in_recursion(&mut checker, "before");
    thread::scope(|scope| {
        let ((go, may_go), (ready, is_ready)) = (channel::<()>(), channel());
        let waiter = scope.spawn(move || {
            let mut checker = StackChecker::new(4096);
            check_in_recursion(&mut checker, "before the loader is held");
            // SAFETY: `gettid` has no preconditions.
            ready.send(unsafe { libc::gettid() }).unwrap();
            may_go.recv().unwrap();
            checker.check_here("while the loader is held", SIGNAL_SAFE);
            checker.verdict()
        });
        let waiter_tid = is_ready.recv().unwrap();
        // Load a library, so that the next capture of both threads queries the loader.
        let library = Library::open("libBrokenLocale.so.1").expect("glibc has it");
        let mut inside = Inside { checker: &mut checker, go, waiter: waiter_tid };
        // SAFETY: the callback gets the type that it expects, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(with_the_loaders_lock), (&raw mut inside).cast()) };
        waiter.join().unwrap().unwrap();
        drop(library);
    });
    checker.expect_agreement(4);
}

/// The communication between the signal handler of [`captures_interrupted_by_captures_are_both_right`] and its
/// thread.
#[derive(Default)]
struct Interruption {
    is_capturing: AtomicBool,
    has_interrupted: AtomicBool,
    captures_met: AtomicUsize,
}

#[test]
fn captures_interrupted_by_captures_are_both_right() {
    const INTERRUPTED: usize = 1500;
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let (mut in_handler, mut interrupted) = (StackChecker::new(512), StackChecker::new(512));
        let interruption = Interruption::default();
        let mut on_alarm = |context: *mut c_void| {
            // SAFETY: the context is that of the handler that runs.
            unsafe { in_handler.check_in_handler("handler that interrupts a capture", context) };
            let met = usize::from(interruption.is_capturing.load(Ordering::SeqCst));
            interruption.captures_met.fetch_add(met, Ordering::SeqCst);
            interruption.has_interrupted.store(true, Ordering::SeqCst);
        };
        with_handlers(&[libc::SIGALRM], stack, &mut on_alarm, || {
            let (alarm, mut random) = (Alarm::new(libc::SIGALRM), Random::new(7));
            while interruption.captures_met.load(Ordering::SeqCst) < INTERRUPTED {
                capture_on_random_paths(&mut random, &mut interrupted, &alarm, &interruption);
            }
        });
        // At least one check of the context and one of the handler's own stack.
        in_handler.expect_agreement(2 * INTERRUPTED);
        interrupted.expect_agreement(INTERRUPTED);
    }
}

/// Sets the alarm twenty times, each time to a random moment, and captures until it has fired.
fn capture_on_random_paths(
    random: &mut Random,
    checker: &mut StackChecker,
    alarm: &Alarm,
    Interruption { is_capturing, has_interrupted, .. }: &Interruption,
) {
    let mut frames = [CodeAddress::default(); 512];
    let length = 1 + random.below(30);
    let path: Vec<u8> = (0..length).map(|_| random.byte_below(FUNCTIONS)).collect();
    walk(FramePointers::Omitted, &path, &mut |known| {
        for _ in 0..20 {
            has_interrupted.store(false, Ordering::SeqCst);
            alarm.ring_after(Duration::from_nanos(1 + random.bits() % 100_000));
            while !has_interrupted.load(Ordering::SeqCst) {
                is_capturing.store(true, Ordering::SeqCst);
                let captured = subject::capture(&mut frames, 0);
                is_capturing.store(false, Ordering::SeqCst);
                let ours = &frames[..captured.len];
                let wrong = captured.stop != StopReason::EndOfStack || find_known(ours, known).is_none();
                checker.record_comparison(
                    "a capture that is interrupted",
                    (ours, captured.stop),
                    &[],
                    wrong.then_some(0),
                );
            }
        }
    });
}
