//! Captures in signal handlers, of whatever was interrupted.

use std::ffi::{c_long, c_void};
use std::hint::black_box;
use std::time::{Duration, Instant};

use stackweave_testkit::fixtures::{
    Caller, Leaf, call_through, sw_asm_bare, sw_asm_frame_pointer, sw_asm_misleading_rbp, sw_bare_busy_leaf,
    sw_bare_call, sw_bare_leaf, sw_call_caller, sw_call_leaf, sw_recurse, sw_sort,
};
use stackweave_testkit::ledger::Ledger;
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::signals::{SignalStack, Ticker, in_handler, with_handlers};
use stackweave_testkit::stack::describe;
use stackweave_testkit::subject;
use stackweave_testkit::truth::{Known, first_untrue, is_whole, outward_from_here};
use stackweave_unwind::{Captured, CodeAddress, StopReason};

const STACKS: [SignalStack; 2] = [SignalStack::Normal, SignalStack::Alternate];

fn handler_shows_the_interrupted_code(stack: SignalStack) {
    let mut ledger = Ledger::new(4096);
    let mut first = CodeAddress::default();
    let mut raise = || {
        // SAFETY: the context is that of the handler that runs.
        in_handler(stack, &mut |context| unsafe {
            ledger.check_in_handler("raised signal", context);
            subject::capture_from_context(context, std::slice::from_mut(&mut first), 0);
        });
    };
    call_through(&mut raise, |callback, data| {
        for depth in [0, 1, 50, 500] {
            // SAFETY: the fixture gets a callback with its own data.
            unsafe { sw_recurse(depth, callback, data) };
        }
    });
    ledger.expect_right(12);
    assert!(first.is_exact(), "{first:?} is the interrupted instruction");
}

#[test]
fn signal_handler_on_the_normal_stack_shows_the_interrupted_code() {
    handler_shows_the_interrupted_code(SignalStack::Normal);
}

#[test]
fn signal_handler_on_the_alternate_stack_shows_the_interrupted_code() {
    handler_shows_the_interrupted_code(SignalStack::Alternate);
}

#[test]
fn handler_that_interrupts_a_handler_shows_both_interrupted_frames() {
    for (inner, outer) in [(STACKS[0], STACKS[1]), (STACKS[1], STACKS[0]), (STACKS[0], STACKS[0])] {
        let mut ledger = Ledger::new(4096);
        let mut exact_frames = 0;
        let mut frames = vec![CodeAddress::default(); 4096];
        // SAFETY: the context is that of the handler that runs.
        let mut innermost = |context: *mut c_void| unsafe {
            ledger.check_in_handler("handler in a handler", context);
            let captured = subject::capture(&mut frames, 0);
            exact_frames = frames[..captured.len].iter().filter(|frame| frame.is_exact()).count();
        };
        with_handlers(&[libc::SIGUSR2], inner, &mut innermost, || {
            in_handler(outer, &mut |_| {
                // SAFETY: the signal has a handler.
                unsafe { libc::raise(libc::SIGUSR2) };
            });
        });
        ledger.expect_right(3);
        assert_eq!(exact_frames, 2);
    }
}

/// Sorts, formats and allocates until the handler has seen enough, or the time is up.
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
fn timer_signals_anywhere_in_busy_code_show_the_whole_stack() {
    const ENOUGH: usize = 600;
    for stack in STACKS {
        let mut ledger = Ledger::new(4096);
        let ledger_at: *mut Ledger = &raw mut ledger;
        // SAFETY: the context is that of the handler that runs; the ledger is looked at elsewhere only for its count.
        let mut sample = |context: *mut c_void| unsafe { (*ledger_at).check_in_handler("timer signal", context) };
        with_handlers(&[libc::SIGALRM], stack, &mut sample, || {
            let _ticker = Ticker::start(libc::SIGALRM, 500);
            // SAFETY: as above.
            keep_busy(&|| unsafe { (*ledger_at).checks() } >= ENOUGH);
        });
        ledger.expect_right(ENOUGH);
    }
}

fn show(captured: Captured, frames: &[CodeAddress]) -> String {
    let lines: Vec<_> = frames.iter().map(|frame| describe(*frame)).collect();
    format!("{captured:?}\n{}", lines.join("\n"))
}

/// Calls back through `caller`, which has no unwind tables, and returns what was captured and what is true.
fn capture_through(caller: Caller) -> (Captured, Vec<CodeAddress>, Vec<Known>) {
    let mut result = None;
    let mut truth = Vec::new();
    let mut frames = vec![CodeAddress::default(); 512];
    let mut check = || {
        // libgcc ends at the first frame without a table: its last frame is that one.
        let mut inside = [CodeAddress::default(); 64];
        let known = libgcc::capture(&mut inside, &mut [], 0);
        truth.push(Known::Within(libgcc::function_start(inside[0])));
        truth.extend(inside[1..known.len].iter().map(|&frame| Known::Exactly(frame)));
        result = Some(subject::capture(&mut frames, 0));
    };
    let outward = outward_from_this_call(&mut check, caller);
    truth.push(Known::Within(sw_call_caller as *const () as u64));
    truth.extend(outward);
    let captured = result.expect("the fixture calls back");
    frames.truncate(captured.len);
    (captured, frames, truth)
}

#[inline(never)]
fn outward_from_this_call(check: &mut dyn FnMut(), caller: Caller) -> Vec<Known> {
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
        assert!(is_whole(&frames, &truth), "{}\nexpected {truth:x?}", show(captured, &frames));
    }
    assert_eq!(first_untrue(&frames, &truth), None, "{}", show(captured, &frames));
}

#[test]
fn code_without_tables_and_frame_pointer_gives_no_wrong_frame() {
    for caller in [sw_asm_bare as Caller, sw_bare_call, sw_asm_misleading_rbp] {
        let (captured, frames, truth) = capture_through(caller);
        assert!(captured.len >= 3, "{}", show(captured, &frames));
        let untrue = first_untrue(&frames, &truth);
        assert_eq!(untrue, None, "{}\nexpected {truth:x?}", show(captured, &frames));
    }
}

#[inline(never)]
fn interrupt_leaf(leaf: Leaf, truth: &mut Vec<Known>) -> c_long {
    truth.push(Known::Within(sw_call_leaf as *const () as u64));
    truth.extend(outward_from_here());
    // SAFETY: the leaf traps once, which has a handler.
    unsafe { sw_call_leaf(leaf, 5) }
}

#[test]
fn leaf_without_tables_interrupted_by_a_signal_gives_no_wrong_frame() {
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
