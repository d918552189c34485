//! Stacks that are almost equal to the last one: reused frames must be correct.

use stackweave_testkit::fixtures::{call_through, sw_aba_p, sw_aba_q, sw_aba_root, sw_swapped_buffers};
use stackweave_testkit::oracles::libgcc::function_start;
use stackweave_testkit::oracles::{ALL, SIGNAL_SAFE};
use stackweave_testkit::random::Random;
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::subject;
use stackweave_testkit::tree::{
    CALL_ON_WAY_DOWN, CALL_ON_WAY_UP, EQUAL_FUNCTIONS, FUNCTIONS, FramePointers, find_known, walk,
};
use stackweave_unwind::{CodeAddress, StopReason};

const BUILDS: [FramePointers; 2] = [FramePointers::Omitted, FramePointers::Kept];

#[test]
fn equal_frames_with_different_callers_are_distinguished() {
    let [p, q] = [sw_aba_p as *const () as u64, sw_aba_q as *const () as u64];
    let mut checker = StackChecker::new(4096);
    let mut frames = vec![CodeAddress::default(); 4096];
    let mut random = Random::new(1);
    let orders: [&mut dyn FnMut(usize) -> bool; 4] =
        [&mut |round| round % 2 == 0, &mut |round| round % 2 == 1, &mut |round| round % 3 == 0, &mut |_| {
            random.bits() & 1 == 0
        }];
    for order in orders {
        for round in 0..1000 {
            let through_q = order(round);
            let mut check = || {
                let captured = subject::capture(&mut frames, 0);
                let functions = frames[..captured.len].iter().map(|&frame| function_start(frame));
                let (mut saw_p, mut saw_q) = (0, 0);
                for function in functions {
                    saw_p += u32::from(function == p);
                    saw_q += u32::from(function == q);
                }
                assert_eq!((saw_p, saw_q), if through_q { (0, 1) } else { (1, 0) }, "round {round}");
                checker.check_here("P or Q below X", if round % 50 == 0 { ALL } else { SIGNAL_SAFE });
            };
            call_through(&mut check, |callback, data| {
                // SAFETY: the fixture gets a callback with its own data.
                unsafe { sw_aba_root(i32::from(through_q), callback, data) };
            });
        }
    }
    checker.expect_agreement(8000);
}

#[test]
fn frames_that_moved_between_unchanged_frames_are_found() {
    let mut checker = StackChecker::new(4096);
    call_through(&mut || checker.check_here("swapped rooms", SIGNAL_SAFE), |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_swapped_buffers(1000, callback, data) };
    });
    checker.expect_agreement(2000);
}

/// Walks random paths, each sharing a random part of the previous one, and checks every capture.
fn walk_random_paths(seed: u64, rounds: usize, functions: u8, longest: usize) {
    let mut random = Random::new(seed);
    let mut checker = StackChecker::new(1024);
    let mut frames = vec![CodeAddress::default(); 1024];
    let mut path: Vec<u8> = Vec::new();
    for round in 0..rounds {
        let kept = random.below(path.len() + 1);
        path.truncate(if random.below(8) == 0 { 0 } else { kept });
        let length = path.len() + 1 + random.below(longest - path.len().min(longest - 1));
        while path.len() < length {
            let mut step = random.byte_below(functions);
            step |= if random.below(4) == 0 { CALL_ON_WAY_DOWN } else { 0 };
            step |= if random.below(4) == 0 { CALL_ON_WAY_UP } else { 0 };
            path.push(step);
        }
        let build = BUILDS[random.below(2)];
        walk(build, &path, &mut |known| {
            let captured = subject::capture(&mut frames, 0);
            let ours = &frames[..captured.len];
            let wrong = captured.stop != StopReason::EndOfStack || find_known(ours, known).is_none();
            let truth: Vec<_> = known.iter().rev().map(|&address| CodeAddress::return_address(address)).collect();
            checker.record_comparison("random path", (ours, captured.stop), &truth, wrong.then_some(0));
            if random.below(4) == 0 {
                checker.check_here("random path", if round % 64 == 0 { ALL } else { SIGNAL_SAFE });
            }
        });
    }
    checker.expect_agreement(rounds);
}

#[test]
fn random_stacks_of_varied_frames_are_correct() {
    walk_random_paths(2, 3000, FUNCTIONS, 40);
}

#[test]
fn random_stacks_of_equal_frames_are_correct() {
    walk_random_paths(3, 3000, EQUAL_FUNCTIONS, 12);
    walk_random_paths(4, 1000, 2, 60);
}
