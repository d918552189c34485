//! Single-steps through code: at each instruction, a capture contains the complete chain of frames.

use std::ffi::{c_int, c_long, c_void};
use std::hint::black_box;

use stackweave_testkit::fixtures::{
    LAZY, LazyCalls, call_through, sw_asm_stepped, sw_call_leaf, sw_sort, sw_stepped_frames, sw_trap_off, sw_trap_on,
    sw_with_invalid_rbp,
};
use stackweave_testkit::library::Library;
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::signals::{SignalStack, with_handlers};
use stackweave_testkit::stack::describe;
use stackweave_testkit::stepping::{StepOracle, step_through};
use stackweave_testkit::truth::{KnownFrame, first_untrue, outward_from_here};
use stackweave_testkit::{modules, subject};
use stackweave_unwind::{CodeAddress, StopReason};

const STACKS: [SignalStack; 2] = [SignalStack::Normal, SignalStack::Alternate];

#[test]
fn lazy_binding_through_the_loader_keeps_the_complete_chain() {
    for stack in STACKS {
        let library = Library::open(LAZY).expect("the fixture was built");
        let symbol = library.symbol("sw_lazy_calls");
        // SAFETY: the symbol is that function of the fixture.
        let calls = unsafe { std::mem::transmute::<*mut c_void, LazyCalls>(symbol) };
        let steps = step_through(stack, StepOracle::Libgcc, &mut || {
            // SAFETY: the fixture reads a C string.
            black_box(unsafe { calls(c"123".as_ptr()) });
        });
        steps.checker.expect_agreement(steps.total);
        let (in_library, in_loader) = (steps.within("liblazy.so"), steps.within("ld-linux"));
        assert!(in_library > 30, "{in_library} steps in the lazily bound library");
        assert!(in_loader > 1000, "{in_loader} steps in the loader");
    }
}

#[test]
fn libc_functions_keep_the_complete_chain() {
    let mut buffer = [0_u8; 128];
    let steps = step_through(SignalStack::Normal, StepOracle::Libgcc, &mut || {
        // SAFETY: the buffer has the given size, and the format matches the arguments.
        unsafe {
            let format = c"%d %s %.3f %p";
            let text = c"text".as_ptr();
            libc::snprintf(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), 42 as c_int, text, 2.5, text);
        }
    });
    steps.checker.expect_agreement(steps.total);
    assert!(steps.within("libc.so") > 1000, "{steps:?}");
}

#[test]
fn qsort_and_its_callback_keep_the_complete_chain() {
    let steps = step_through(SignalStack::Alternate, StepOracle::Libgcc, &mut || {
        call_through(&mut || (), |callback, data| {
            // SAFETY: the fixture gets a callback with its own data.
            black_box(unsafe { sw_sort(callback, data) });
        });
    });
    steps.checker.expect_agreement(steps.total);
    assert!(steps.within("libc.so") > 1000, "{} steps", steps.within("libc.so"));
}

#[test]
fn the_vdso_keeps_the_complete_chain() {
    let vdso = modules::named("linux-vdso").expect("the kernel maps a vDSO");
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    for stack in STACKS {
        let steps = step_through(stack, StepOracle::Libgcc, &mut || {
            for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC_COARSE] {
                // SAFETY: `time` is valid memory for a time.
                unsafe { libc::clock_gettime(clock, &raw mut time) };
            }
        });
        steps.checker.expect_agreement(steps.total);
        let within = steps.within(&vdso.path);
        assert!(within > 20, "{within} steps in the vDSO");
    }
}

#[test]
fn realigned_and_alloca_frames_keep_the_complete_chain() {
    for stack in STACKS {
        let steps = step_through(stack, StepOracle::Libgcc, &mut || {
            // SAFETY: the fixture has no preconditions.
            black_box(unsafe { sw_stepped_frames() });
        });
        steps.checker.expect_agreement(steps.total);
        assert!(steps.total > 300, "{} steps", steps.total);
    }
}

#[test]
fn a_rule_that_reads_through_an_invalid_register_does_not_fault() {
    if subject::is_libgcc() {
        return;
    }
    for stack in STACKS {
        let steps = step_through(stack, StepOracle::KnownFrames, &mut || {
            // SAFETY: the fixture calls the function, which has no preconditions.
            black_box(unsafe { sw_with_invalid_rbp(sw_stepped_frames) });
        });
        steps.checker.expect_agreement(steps.total);
        assert!(steps.total > 300, "{} steps", steps.total);
    }
}

#[test]
fn a_capture_can_be_interrupted_at_every_instruction() {
    let mut frames = vec![CodeAddress::default(); 256];
    let mut results = Vec::with_capacity(8);
    let steps = step_through(SignalStack::Alternate, StepOracle::Libgcc, &mut || {
        for _ in 0..3 {
            results.push(subject::capture(&mut frames, 0));
        }
    });
    steps.checker.expect_agreement(steps.total);
    assert!(steps.total > 100);
    for captured in results {
        assert_eq!(captured.stop, StopReason::EndOfStack);
        assert!(captured.len > 5);
    }
}

#[inline(never)]
fn step_leaf(truth: &mut Vec<KnownFrame>) -> c_long {
    truth.push(KnownFrame::Within(sw_call_leaf as *const () as u64));
    truth.extend(outward_from_here());
    // SAFETY: SIGTRAP has a handler; the leaf only computes.
    unsafe {
        sw_trap_on();
        let result = sw_call_leaf(sw_asm_stepped, 5);
        sw_trap_off();
        result
    }
}

#[test]
fn code_without_tables_leads_to_no_wrong_frame_at_any_instruction() {
    const STEPS: usize = 64;
    let leaf = sw_asm_stepped as *const () as u64;
    for stack in STACKS {
        let mut captures = vec![[CodeAddress::default(); 256]; STEPS];
        let mut results = Vec::with_capacity(STEPS);
        let mut on_step = |context: *mut c_void| {
            let Some(frames) = captures.get_mut(results.len()) else { return };
            // SAFETY: the context is that of the handler that runs.
            results.push(unsafe { subject::capture_from_context(context, frames, 0) });
        };
        let mut truth = Vec::with_capacity(512);
        with_handlers(&[libc::SIGTRAP], stack, &mut on_step, || {
            step_leaf(&mut truth);
        });
        let mut in_leaf = 0;
        for (frames, captured) in captures.iter().zip(&results) {
            let frames = &frames[..captured.len];
            assert!(frames[0].is_exact());
            if !(leaf..leaf + 32).contains(&frames[0].address()) {
                continue;
            }
            in_leaf += 1;
            let lines: Vec<_> = frames.iter().map(|frame| describe(*frame)).collect();
            let at = frames[0].address() - leaf;
            assert_eq!(first_untrue(&frames[1..], &truth), None, "at +{at}: {captured:?}\n{}", lines.join("\n"));
        }
        assert_eq!(in_leaf, 8, "instructions of the leaf");
    }
    assert_eq!(libgcc::function_start(CodeAddress::instruction_pointer(leaf)), 0, "the leaf has a table");
}
