//! The contract of the functions: buffers, limits, stack pointers, counters.

use stackweave_testkit::fixtures::{call_through, sw_recurse};
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::signals::{SignalStack, in_handler};
use stackweave_testkit::stack::same_root_side;
use stackweave_testkit::subject;
use stackweave_testkit::tree::{FUNCTIONS, FramePointers, walk};
use stackweave_unwind::{CodeAddress, StackPointer, StopReason};

const LIMIT: usize = 512;

fn at_depth(depth: u32, action: &mut dyn FnMut()) {
    call_through(action, |callback, data| {
        // SAFETY: the fixture gets a callback with its own data.
        unsafe { sw_recurse(depth, callback, data) };
    });
}

#[test]
fn the_first_frame_is_the_caller_of_capture() {
    #[inline(never)]
    fn caller(frames: &mut [CodeAddress]) -> usize {
        subject::capture(frames, 0).len
    }
    let mut frames = [CodeAddress::default(); LIMIT];
    assert!(caller(&mut frames) > 1);
    assert_eq!(libgcc::function_start(frames[0]), caller as *const () as u64);
    assert!(!frames[0].is_exact());
}

#[test]
fn stack_pointers_increase_and_return_addresses_are_below_them() {
    let path: Vec<u8> = (0..FUNCTIONS).collect();
    for build in [FramePointers::Omitted, FramePointers::Kept] {
        walk(build, &path, &mut |_| {
            let mut frames = [CodeAddress::default(); LIMIT];
            let mut pointers = [StackPointer::default(); LIMIT];
            let captured = subject::capture_with_stack_pointers(&mut frames, &mut pointers, 0);
            assert_eq!(captured.stop, StopReason::EndOfStack);
            let pointers = &pointers[..captured.len];
            assert!(pointers.windows(2).all(|pair| pair[0] < pair[1]), "{pointers:x?}");
            for (frame, pointer) in frames[..captured.len].iter().zip(pointers).skip(1) {
                let slot: *const u64 = std::ptr::with_exposed_provenance(usize::try_from(pointer.0 - 8).unwrap());
                // SAFETY: the slot is in this thread's stack, above this frame.
                assert_eq!(unsafe { slot.read() }, frame.address());
            }
        });
    }
}

#[test]
fn stack_pointers_equal_libgccs() {
    at_depth(30, &mut || {
        let (mut ours, mut expected_pointers) = ([StackPointer::default(); LIMIT], [StackPointer::default(); LIMIT]);
        let (mut frames, mut expected) = ([CodeAddress::default(); LIMIT], [CodeAddress::default(); LIMIT]);
        let captured = subject::capture_with_stack_pointers(&mut frames, &mut ours, 0);
        let known = libgcc::capture(&mut expected, &mut expected_pointers, 0);
        let same = same_root_side(&frames[..captured.len], &expected[..known.len]);
        assert!(same.is_ok(), "{}", same.unwrap_err());
        assert_eq!(ours[..captured.len], expected_pointers[..known.len]);
    });
}

#[test]
fn stack_pointers_through_a_signal_handler_equal_libgccs() {
    let (mut ours, mut expected_pointers) =
        (vec![StackPointer::default(); LIMIT], vec![StackPointer::default(); LIMIT]);
    let (mut frames, mut expected) = (vec![CodeAddress::default(); LIMIT], vec![CodeAddress::default(); LIMIT]);
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let mut counts = (0, 0);
        in_handler(stack, &mut |_| {
            counts.0 = subject::capture_with_stack_pointers(&mut frames, &mut ours, 0).len;
            counts.1 = libgcc::capture(&mut expected, &mut expected_pointers, 0).len;
        });
        assert_eq!(frames[1..counts.0], expected[1..counts.1]);
        assert_eq!(ours[..counts.0], expected_pointers[..counts.1]);
    }
}

/// Captures with each of the given skips and limits, all from one call site.
fn captures(settings: &[(usize, usize)]) -> Vec<(Vec<CodeAddress>, StopReason)> {
    let mut results = Vec::new();
    for &(skip, limit) in settings {
        let mut frames = vec![CodeAddress::default(); limit];
        let captured = subject::capture(&mut frames, skip);
        frames.truncate(captured.len);
        results.push((frames, captured.stop));
    }
    results
}

#[test]
fn skip_drops_exactly_the_first_frames() {
    at_depth(20, &mut || {
        let results = captures(&[(0, LIMIT), (1, LIMIT), (7, LIMIT), (20, LIMIT), (10_000, LIMIT)]);
        let whole = &results[0].0;
        assert!(whole.len() > 25);
        for (result, skip) in results.iter().zip([0, 1, 7, 20]) {
            assert_eq!(result.0, whole[skip..]);
            assert_eq!(result.1, StopReason::EndOfStack);
        }
        assert!(results[4].0.is_empty(), "more is skipped than there is");
        assert_eq!(results[4].1, StopReason::EndOfStack);
    });
}

#[test]
fn a_short_buffer_contains_a_correct_prefix() {
    at_depth(20, &mut || {
        let results = captures(&[(0, LIMIT), (0, 1), (0, 2), (0, 10), (5, 10)]);
        let whole = &results[0].0;
        for (result, (skip, limit)) in results[1..].iter().zip([(0, 1), (0, 2), (0, 10), (5, 10)]) {
            assert_eq!(result.0, whole[skip..skip + limit]);
            assert_eq!(result.1, StopReason::DepthLimit);
        }
    });
}

#[test]
fn a_buffer_of_exactly_the_right_length_contains_the_complete_stack() {
    let whole = captures(&[(0, LIMIT)]).remove(0).0.len();
    let results = captures(&[(0, whole), (0, whole - 1)]);
    assert_eq!((results[0].0.len(), results[0].1), (whole, StopReason::EndOfStack));
    assert_eq!((results[1].0.len(), results[1].1), (whole - 1, StopReason::DepthLimit));
}

#[test]
fn the_shorter_of_two_buffers_is_the_limit() {
    at_depth(20, &mut || {
        let (mut frames, mut pointers) = ([CodeAddress::default(); LIMIT], [StackPointer::default(); 9]);
        let captured = subject::capture_with_stack_pointers(&mut frames, &mut pointers, 0);
        assert_eq!((captured.len, captured.stop), (9, StopReason::DepthLimit));
        assert_eq!(frames[9], CodeAddress::default(), "written beyond the limit");
    });
}

#[test]
fn an_empty_buffer_is_not_written_to() {
    assert_eq!(subject::capture(&mut [], 0).len, 0);
    assert_eq!(subject::capture(&mut [], 3).len, 0);
    assert_eq!(subject::capture_with_stack_pointers(&mut [], &mut [], 0).len, 0);
    // SAFETY: the context is that of the handler that runs.
    in_handler(SignalStack::Normal, &mut |context| unsafe {
        assert_eq!(subject::capture_from_context(context, &mut [], 0).len, 0);
    });
}

#[test]
fn skip_from_a_context_drops_the_interrupted_frame_first() {
    let mut frames = vec![CodeAddress::default(); LIMIT];
    let mut skipped = vec![CodeAddress::default(); LIMIT];
    let mut counts = (0, 0);
    // SAFETY: the context is that of the handler that runs.
    in_handler(SignalStack::Normal, &mut |context| unsafe {
        counts.0 = subject::capture_from_context(context, &mut frames, 0).len;
        counts.1 = subject::capture_from_context(context, &mut skipped, 2).len;
    });
    assert!(counts.0 > 3 && frames[0].is_exact());
    assert_eq!(frames[2..counts.0], skipped[..counts.1]);
}

#[test]
fn counters_count_frames_and_stops() {
    if subject::is_libgcc() {
        return;
    }
    let before = stackweave_unwind::stats();
    let mut frames = [CodeAddress::default(); LIMIT];
    let mut taken = 0;
    for _ in 0..100 {
        taken += subject::capture(&mut frames, 0).len as u64;
        subject::capture(&mut frames[..2], 0);
    }
    let after = stackweave_unwind::stats();
    let frames_counted = (after.hits + after.misses) - (before.hits + before.misses);
    assert!(frames_counted + 200 >= taken, "{frames_counted} frames counted, {taken} taken");
    assert!(after.hits > before.hits);
    let stops = |reason: StopReason| after.stops[reason as usize] - before.stops[reason as usize];
    assert!(stops(StopReason::EndOfStack) >= 100, "{after:?}");
    assert!(stops(StopReason::DepthLimit) >= 100, "{after:?}");
}
