//! Captures return the same addresses as glibc, libgcc and framehop, in code that calls in usual and unusual ways.

use std::thread;

use stackweave_testkit::coroutine_stack::MappedStack;
use stackweave_testkit::fixtures::{
    CallingFixture, call_through, sw_behind_noreturn, sw_catch, sw_coroutine, sw_noreturn, sw_recurse, sw_recurse_wide,
    sw_sort, sw_std_call_once, sw_std_ostream, sw_std_sort, sw_std_thread, sw_terminate, sw_throw_through,
};
use stackweave_testkit::oracles::{ALL, Oracle, SIGNAL_SAFE};
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::{child, subject};
use stackweave_unwind::{CodeAddress, StopReason};

/// All oracles except framehop, which cannot unwind there.
const WITHOUT_FRAMEHOP: &[Oracle] = SIGNAL_SAFE;

fn agree_inside(what: &'static str, oracles: &[Oracle], least: usize, fixture: CallingFixture) {
    let mut checker = StackChecker::new(4096);
    call_through(&mut || checker.check_here(what, oracles), |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { fixture(callback, data) };
    });
    checker.expect_agreement(least);
}

#[test]
fn deep_recursion_is_captured_completely() {
    const DEPTH: u32 = 50_000;
    let captured_in_thread = || {
        let mut checker = StackChecker::new(DEPTH as usize + 100);
        call_through(&mut || checker.check_here("recursion in a thread", ALL), |callback, data| {
            // SAFETY: the fixture gets a callback with its own data; the stack has space for all frames.
            unsafe { sw_recurse(DEPTH, callback, data) };
        });
        checker.expect_agreement(3);
        assert!(checker.frames() > DEPTH as usize);
    };
    thread::Builder::new().stack_size(64 << 20).spawn(captured_in_thread).unwrap().join().unwrap();
}

#[test]
fn deep_recursion_in_the_main_thread_is_captured_completely_as_its_stack_grows() {
    let output = child::run(&mut child::command(&child::own_executable(), "none", MAIN_THREAD));
    assert!(output.status.success(), "{}", child::text(&output));
}

const MAIN_THREAD: &str = "main thread";

/// A test runs in a separate thread; code for the main thread runs before the test runner.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    if child::role().is_some_and(|role| role == MAIN_THREAD) {
        recurse_in_the_main_thread();
        std::process::exit(0);
    }
}

fn recurse_in_the_main_thread() {
    let mut checker = StackChecker::new(50_100);
    for wide_frames in [1, 100, 500, 1000, 1500] {
        call_through(&mut || checker.check_here("growing main stack", SIGNAL_SAFE), |callback, data| {
            // SAFETY: the fixture gets a callback with its own data; 1500 frames of 4 KiB fit.
            unsafe { sw_recurse_wide(wide_frames, callback, data) };
        });
    }
    call_through(&mut || checker.check_here("recursion in the main thread", ALL), |callback, data| {
        // SAFETY: as above.
        unsafe { sw_recurse(50_000, callback, data) };
    });
    checker.expect_agreement(13);
}

#[test]
fn a_call_to_noreturn_as_last_instruction_belongs_to_its_caller() {
    let mut checker = StackChecker::new(4096);
    let mut frames = vec![CodeAddress::default(); 4096];
    let mut at_function_border = false;
    let mut check = || {
        checker.check_here("noreturn call", ALL);
        let captured = subject::capture(&mut frames, 0);
        let next_function = sw_behind_noreturn as *const () as u64;
        at_function_border = frames[..captured.len].iter().any(|frame| frame.address() == next_function);
    };
    call_through(&mut check, |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_noreturn(callback, data) };
    });
    checker.expect_agreement(3);
    assert!(at_function_border, "the fixture no longer ends in the call, or the frame is missing");
}

#[test]
fn a_qsort_callback_is_captured_through_libc() {
    let mut checker = StackChecker::new(4096);
    call_through(&mut || checker.check_here("qsort", ALL), |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_sort(callback, data) };
    });
    checker.expect_agreement(20);
}

#[test]
fn destructors_run_by_an_exception_are_captured_completely() {
    agree_inside("destructor during unwinding", ALL, 5, sw_throw_through);
}

#[test]
fn exception_handlers_are_captured_completely() {
    agree_inside("catch handler", ALL, 2, sw_catch);
}

#[test]
fn a_terminate_handler_is_captured_completely() {
    const NAME: &str = "agreement::a_terminate_handler_is_captured_completely";
    if child::role().is_none() {
        let output = child::run(&mut child::command(&child::own_executable(), NAME, "terminate"));
        assert!(output.status.success(), "{}", child::text(&output));
        return;
    }
    let mut checker = StackChecker::new(4096);
    let mut check = || {
        checker.check_here("terminate handler", WITHOUT_FRAMEHOP);
        checker.expect_agreement(2);
        std::process::exit(0);
    };
    call_through(&mut check, |callback, data| {
        // SAFETY: the fixture gets a callback with its own data, which does not return.
        unsafe { sw_terminate(callback, data) };
    });
    unreachable!("the terminate handler must have run");
}

#[test]
fn standard_library_callbacks_are_captured_through_libstdcxx() {
    agree_inside("std::sort and std::function", ALL, 3, sw_std_sort);
    agree_inside("std::call_once", ALL, 1, sw_std_call_once);
    agree_inside("std::ostream", ALL, 3, sw_std_ostream);
    agree_inside("std::thread", ALL, 1, sw_std_thread);
}

/// A coroutine starts in a frame that no unwind entry describes: there the unwind tables end.
const COROUTINE_ENDS: &[StopReason] = &[StopReason::EndOfStack, StopReason::NoUnwindEntry];

fn check_coroutine(checker: &mut StackChecker, what: &'static str, stack: *mut libc::c_void, size: usize, depth: u32) {
    checker.accept(COROUTINE_ENDS);
    call_through(&mut || checker.check_here(what, WITHOUT_FRAMEHOP), |callback, data| {
        // SAFETY: the stack is memory of this size of the caller; the fixture gets a callback with its own data.
        let done = unsafe { sw_coroutine(stack, size as libc::c_ulong, depth, callback, data) };
        assert_eq!(done, 0, "no coroutine");
    });
    checker.accept(&[StopReason::EndOfStack]);
}

#[test]
fn a_coroutine_is_captured_to_its_first_frame() {
    let mut checker = StackChecker::new(4096);
    let mapped = MappedStack::new(64, None);
    let mut on_heap = vec![0_u8; 256 << 10];
    for depth in [1, 20, 300] {
        check_coroutine(&mut checker, "coroutine on mapped pages", mapped.start(), mapped.size(), depth);
        check_coroutine(&mut checker, "coroutine on the heap", on_heap.as_mut_ptr().cast(), on_heap.len(), depth);
        checker.check_here("after a coroutine", ALL);
    }
    checker.expect_agreement(30);
}

#[test]
fn a_coroutine_stack_may_be_unmapped_and_mapped_again() {
    let mut checker = StackChecker::new(4096);
    for round in 0..50_u32 {
        let first = MappedStack::new(64, None);
        let place = first.start();
        check_coroutine(&mut checker, "first stack", place, first.size(), 40 + round % 3);
        drop(first);
        let pages = [16, 32, 63][round as usize % 3];
        let second = MappedStack::new(pages, Some(place.addr()));
        check_coroutine(&mut checker, "shorter stack at the same place", place, second.size(), 30 + round % 5);
        drop(second);
        checker.check_here("after both", SIGNAL_SAFE);
    }
    checker.expect_agreement(50 * 10);
}

#[test]
fn a_complete_stack_ends_at_the_outermost_frame() {
    let mut frames = [CodeAddress::default(); 256];
    let captured = subject::capture(&mut frames, 0);
    assert_eq!(captured.stop, StopReason::EndOfStack);
    assert!(captured.len > 3);
    assert!(frames[..captured.len].iter().all(|frame| frame.address() != 0 && !frame.is_exact()));
}
