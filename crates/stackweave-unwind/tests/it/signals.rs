//! Captures in signal handlers, of any interrupted code.

use std::ffi::{c_long, c_void};
use std::hint::black_box;
use std::time::{Duration, Instant};

use stackweave_testkit::fixtures::{
    CallingFixture, Leaf, call_through, sw_asm_bare, sw_asm_frame_pointer, sw_asm_misleading_rbp, sw_bare_busy_leaf,
    sw_bare_call, sw_bare_leaf, sw_call_caller, sw_call_leaf, sw_recurse, sw_sort,
};
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::signals::{SignalStack, Ticker, in_handler, with_handlers};
use stackweave_testkit::stack::describe;
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::subject;
use stackweave_testkit::truth::{KnownFrame, first_untrue, is_complete, outward_from_here};
use stackweave_unwind::{Captured, CodeAddress, StopReason};

const STACKS: [SignalStack; 2] = [SignalStack::Normal, SignalStack::Alternate];

fn handler_shows_the_interrupted_code(stack: SignalStack) {
    let mut checker = StackChecker::new(4096);
    let mut first = CodeAddress::default();
    let mut raise = || {
        // SAFETY: the context is that of the handler that runs.
        in_handler(stack, &mut |context| unsafe {
            checker.check_in_handler("raised signal", context);
            subject::capture_from_context(context, std::slice::from_mut(&mut first), 0);
        });
    };
    call_through(&mut raise, |callback, data| {
        for depth in [0, 1, 50, 500] {
            // SAFETY: the fixture gets a callback with its own data.
            unsafe { sw_recurse(depth, callback, data) };
        }
    });
    checker.expect_agreement(12);
    assert!(first.is_exact(), "{first:?} is the interrupted instruction");
}

#[test]
fn captures_in_a_handler_on_the_normal_stack_contain_the_interrupted_code() {
    handler_shows_the_interrupted_code(SignalStack::Normal);
}

#[test]
fn captures_in_a_handler_on_the_alternate_stack_contain_the_interrupted_code() {
    handler_shows_the_interrupted_code(SignalStack::Alternate);
}

#[test]
fn captures_in_nested_handlers_contain_both_interrupted_frames() {
    for (inner, outer) in [(STACKS[0], STACKS[1]), (STACKS[1], STACKS[0]), (STACKS[0], STACKS[0])] {
        let mut checker = StackChecker::new(4096);
        let mut exact_frames = 0;
        let mut frames = vec![CodeAddress::default(); 4096];
        // SAFETY: the context is that of the handler that runs.
        let mut innermost = |context: *mut c_void| unsafe {
            checker.check_in_handler("handler in a handler", context);
            let captured = subject::capture(&mut frames, 0);
            exact_frames = frames[..captured.len].iter().filter(|frame| frame.is_exact()).count();
        };
        with_handlers(&[libc::SIGUSR2], inner, &mut innermost, || {
            in_handler(outer, &mut |_| {
                // SAFETY: the signal has a handler.
                unsafe { libc::raise(libc::SIGUSR2) };
            });
        });
        checker.expect_agreement(3);
        assert_eq!(exact_frames, 2);
    }
}

/// Sorts, formats and allocates until the handler has enough samples, or the time is up.
fn keep_busy(done: &dyn Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() && Instant::now() < deadline {
        call_through(&mut || (), |callback, data| {
            // SAFETY: the fixture gets a callback with its own data.
            black_box(unsafe { sw_sort(callback, data) });
        });
        black_box(format!("{:?} {:.17e}", vec![1_u8; 33], black_box(0.1_f64)));
    }
}

#[test]
fn timer_signals_in_busy_code_capture_the_complete_stack() {
    const ENOUGH: usize = 600;
    for stack in STACKS {
        let mut checker = StackChecker::new(4096);
        let ledger_at: *mut StackChecker = &raw mut checker;
        // SAFETY: the context is that of the handler that runs; elsewhere only the count of the checker is read.
        let mut sample = |context: *mut c_void| unsafe { (*ledger_at).check_in_handler("timer signal", context) };
        with_handlers(&[libc::SIGALRM], stack, &mut sample, || {
            let _ticker = Ticker::start(libc::SIGALRM, 500);
            // SAFETY: only the count of the checker is read.
            keep_busy(&|| unsafe { (*ledger_at).checks() } >= ENOUGH);
        });
        checker.expect_agreement(ENOUGH);
    }
}

fn show(captured: Captured, frames: &[CodeAddress]) -> String {
    let lines: Vec<_> = frames.iter().map(|frame| describe(*frame)).collect();
    format!("{captured:?}\n{}", lines.join("\n"))
}

/// Calls back through `caller`, which has no unwind tables. Returns the captured and the true stack.
fn capture_through(caller: CallingFixture) -> (Captured, Vec<CodeAddress>, Vec<KnownFrame>) {
    let mut result = None;
    let mut truth = Vec::new();
    let mut frames = vec![CodeAddress::default(); 512];
    let mut check = || {
        // libgcc ends at the first frame without a table, which is its last frame.
        let mut inside = [CodeAddress::default(); 64];
        let known = libgcc::capture(&mut inside, &mut [], 0);
        truth.push(KnownFrame::Within(libgcc::function_start(inside[0])));
        truth.extend(inside[1..known.len].iter().map(|&frame| KnownFrame::Exactly(frame)));
        result = Some(subject::capture(&mut frames, 0));
    };
    let outward = outward_from_this_call(&mut check, caller);
    truth.push(KnownFrame::Within(sw_call_caller as *const () as u64));
    truth.extend(outward);
    let captured = result.expect("the fixture calls back");
    frames.truncate(captured.len);
    (captured, frames, truth)
}

#[inline(never)]
fn outward_from_this_call(check: &mut dyn FnMut(), caller: CallingFixture) -> Vec<KnownFrame> {
    let mut outward = Vec::new();
    let mut inner = None;
    call_through(check, |callback, data| {
        outward = outward_from_here();
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_call_caller(caller, callback, data) };
        inner = Some(());
    });
    outward
}

#[test]
fn code_without_tables_but_with_a_frame_pointer_is_walked_through() {
    let (captured, frames, truth) = capture_through(sw_asm_frame_pointer);
    if !subject::is_libgcc() {
        assert_eq!(captured.stop, StopReason::EndOfStack, "{}", show(captured, &frames));
        assert!(is_complete(&frames, &truth), "{}\nexpected {truth:x?}", show(captured, &frames));
    }
    assert_eq!(first_untrue(&frames, &truth), None, "{}", show(captured, &frames));
}

#[test]
fn code_without_tables_and_frame_pointer_leads_to_no_wrong_frame() {
    for caller in [sw_asm_bare as CallingFixture, sw_bare_call, sw_asm_misleading_rbp] {
        let (captured, frames, truth) = capture_through(caller);
        assert!(captured.len >= 3, "{}", show(captured, &frames));
        let untrue = first_untrue(&frames, &truth);
        assert_eq!(untrue, None, "{}\nexpected {truth:x?}", show(captured, &frames));
    }
}

#[inline(never)]
fn interrupt_leaf(leaf: Leaf, truth: &mut Vec<KnownFrame>) -> c_long {
    truth.push(KnownFrame::Within(sw_call_leaf as *const () as u64));
    truth.extend(outward_from_here());
    // SAFETY: the leaf traps once, which has a handler.
    unsafe { sw_call_leaf(leaf, 5) }
}

#[test]
fn an_interrupted_leaf_without_tables_leads_to_no_wrong_frame() {
    for leaf in [sw_bare_leaf as Leaf, sw_bare_busy_leaf] {
        for stack in STACKS {
            let mut frames = vec![CodeAddress::default(); 512];
            let mut captured = None;
            let mut handler = |context: *mut c_void| {
                // SAFETY: the context is that of the handler that runs.
                captured = Some(unsafe { subject::capture_from_context(context, &mut frames, 0) });
            };
            let mut truth = Vec::with_capacity(512);
            with_handlers(&[libc::SIGTRAP], stack, &mut handler, || {
                interrupt_leaf(leaf, &mut truth);
            });
            let captured = captured.expect("the leaf traps");
            let frames = &frames[..captured.len];
            assert!(frames[0].is_exact());
            let start = leaf as *const () as u64;
            assert!((start..start + 200).contains(&frames[0].address()), "{}", show(captured, frames));
            let untrue = first_untrue(&frames[1..], &truth);
            assert_eq!(untrue, None, "{}\nexpected {truth:x?}", show(captured, frames));
        }
    }
}
