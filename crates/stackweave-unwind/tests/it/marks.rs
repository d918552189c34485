//! Stacks that were captured before: their marks and frames, compared with whole walks by libgcc.

use std::collections::HashMap;

use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::random::Random;
use stackweave_testkit::tree::{CALL_ON_WAY_DOWN, CALL_ON_WAY_UP, FUNCTIONS, FramePointers, walk};
use stackweave_unwind::{CodeAddress, StackMark, StackPointer, StopReason, capture_mark, write_last_stack};

const LIMIT: usize = 1024;
const BUILDS: [FramePointers; 2] = [FramePointers::Omitted, FramePointers::Kept];

type Stack = (Vec<CodeAddress>, Vec<StackPointer>);

/// Compares captures with whole walks, and remembers the stack of each mark.
struct MarkChecker {
    frames: Vec<CodeAddress>,
    stack_pointers: Vec<StackPointer>,
    expected: Stack,
    stacks: HashMap<StackMark, Stack>,
    marks: HashMap<Stack, StackMark>,
    repeated: usize,
    captures: usize,
}

impl MarkChecker {
    fn new() -> Self {
        Self {
            frames: vec![CodeAddress::default(); LIMIT],
            stack_pointers: vec![StackPointer::default(); LIMIT],
            expected: (vec![CodeAddress::default(); LIMIT], vec![StackPointer::default(); LIMIT]),
            stacks: HashMap::new(),
            marks: HashMap::new(),
            repeated: 0,
            captures: 0,
        }
    }

    #[inline(never)]
    fn check_here(&mut self, limit: usize) {
        let (captured, mark) = capture_mark(limit, 0);
        let (frames, stack_pointers) = (&mut self.frames[..captured.len], &mut self.stack_pointers[..captured.len]);
        assert!(write_last_stack(mark, frames, stack_pointers, 0));
        let all = libgcc::capture(&mut self.expected.0, &mut self.expected.1, 0).len;
        let is_cut = all > limit;
        assert_eq!(captured.stop, if is_cut { StopReason::DepthLimit } else { StopReason::EndOfStack });
        assert_eq!(captured.len, all.min(limit));
        // The first frame is at another call.
        assert_eq!(frames[1..], self.expected.0[1..captured.len], "capture {}", self.captures);
        assert_eq!(*stack_pointers, self.expected.1[..captured.len], "capture {}", self.captures);
        self.captures += 1;
        if !mark.may_repeat() || is_cut {
            return;
        }
        let stack = (frames.to_vec(), stack_pointers.to_vec());
        self.repeated += usize::from(self.stacks.contains_key(&mark));
        assert_eq!(*self.stacks.entry(mark).or_insert_with(|| stack.clone()), stack, "one mark, two stacks");
        assert_eq!(*self.marks.entry(stack).or_insert(mark), mark, "one stack, two marks");
    }
}

/// Returns random paths, many of which begin with a part of another.
fn random_paths(random: &mut Random, count: usize, functions: u8, longest: usize) -> Vec<(FramePointers, Vec<u8>)> {
    let mut paths: Vec<(FramePointers, Vec<u8>)> = Vec::new();
    while paths.len() < count {
        let build = BUILDS[random.below(2)];
        let mut path = match random.below(3) {
            0 => Vec::new(),
            _ if paths.is_empty() => Vec::new(),
            _ => {
                let mut other = paths[random.below(paths.len())].1.clone();
                other.truncate(random.below(other.len() + 1));
                other
            }
        };
        for _ in 0..=random.below(longest) {
            let mut step = random.byte_below(functions);
            step |= if random.below(4) == 0 { CALL_ON_WAY_DOWN } else { 0 };
            step |= if random.below(4) == 0 { CALL_ON_WAY_UP } else { 0 };
            path.push(step);
        }
        paths.push((build, path));
    }
    paths
}

/// Captures along the paths, each several times, in a random order.
fn capture_along(seed: u64, count: usize, functions: u8, longest: usize) -> MarkChecker {
    let mut random = Random::new(seed);
    let mut checker = MarkChecker::new();
    let paths = random_paths(&mut random, count, functions, longest);
    for _ in 0..10 * count {
        let (build, path) = &paths[random.below(count)];
        let limit = if random.below(8) == 0 { 1 + random.below(40) } else { LIMIT };
        for _ in 0..=random.below(3) {
            walk(*build, path, &mut |_| checker.check_here(limit));
        }
    }
    checker
}

#[test]
fn marks_stand_for_one_stack_each() {
    let checker = capture_along(1, 60, FUNCTIONS, 30);
    assert!(checker.repeated > checker.captures / 2, "{} of {}", checker.repeated, checker.captures);
    let checker = capture_along(2, 400, 3, 8);
    assert!(checker.repeated > checker.captures / 2, "{} of {}", checker.repeated, checker.captures);
}

/// The memory for stacks is limited: these need more.
#[test]
fn more_stacks_than_can_be_remembered_are_captured_correctly() {
    let checker = capture_along(3, 1500, FUNCTIONS, 60);
    assert!(checker.captures > 50_000, "{}", checker.captures);
}

#[inline(never)]
fn capture_elsewhere() {
    std::hint::black_box(capture_mark(LIMIT, 0));
}

#[test]
fn a_mark_of_another_stack_writes_nothing() {
    let (captured, mark) = capture_mark(LIMIT, 0);
    let mut frames = vec![CodeAddress::default(); captured.len];
    let mut stack_pointers = vec![StackPointer::default(); captured.len];
    assert!(write_last_stack(mark, &mut frames, &mut stack_pointers, 0));
    capture_elsewhere();
    let before = frames.clone();
    assert!(!write_last_stack(mark, &mut frames, &mut stack_pointers, 0));
    assert_eq!(frames, before);
    assert!(!write_last_stack(StackMark::default(), &mut frames, &mut stack_pointers, 0));
}
