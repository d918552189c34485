//! Ids of random native stacks, each compared with a whole walk by libgcc.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up must fail it")]

use std::collections::HashMap;

use stackweave_capture::{CaptureRequest, RawFrame, StackId, capture, stacks};
use stackweave_core::CodeAddress;
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::random::Random;
use stackweave_testkit::tree::{CALL_ON_WAY_DOWN, CALL_ON_WAY_UP, FUNCTIONS, FramePointers, walk};

struct IdChecker {
    expected: Vec<CodeAddress>,
    ids: HashMap<Vec<RawFrame>, StackId>,
    captures: usize,
}

impl IdChecker {
    #[inline(never)]
    fn check_here(&mut self, skip: usize, limit: usize) {
        let request = CaptureRequest { python: false, script: false, skip, limit, ..CaptureRequest::default() };
        let id = capture(&request).stack.unwrap();
        let all = libgcc::capture(&mut self.expected, &mut [], 0).len;
        let end = skip.saturating_add(limit).min(all);
        let expected: Vec<_> =
            self.expected[skip.min(end)..end].iter().map(|address| RawFrame::native(*address)).collect();
        let frames: Vec<_> = stacks().frames(id).collect();
        assert_eq!(frames.len(), expected.len(), "capture {}", self.captures);
        // The first frame is at another call.
        let first = usize::from(skip == 0).min(frames.len());
        assert_eq!(frames[first..], expected[first..], "capture {}", self.captures);
        assert_eq!(*self.ids.entry(frames).or_insert(id), id, "one stack, two ids");
        self.captures += 1;
    }
}

/// Captures along random paths, which repeat, and change a little or much from one to the next.
fn check_paths(seed: u64, count: usize, functions: u8, longest: usize) {
    let mut random = Random::new(seed);
    let mut checker = IdChecker { expected: vec![CodeAddress::default(); 1024], ids: HashMap::new(), captures: 0 };
    let mut paths = vec![vec![0_u8]];
    while paths.len() < count {
        let mut path = paths[random.below(paths.len())].clone();
        path.truncate(random.below(path.len() + 1));
        for _ in 0..=random.below(longest) {
            let flags = [0, 0, CALL_ON_WAY_DOWN, CALL_ON_WAY_UP, CALL_ON_WAY_DOWN | CALL_ON_WAY_UP];
            path.push(random.byte_below(functions) | random.pick(&flags));
        }
        paths.push(path);
    }
    for _ in 0..8 * count {
        let build = random.pick(&[FramePointers::Omitted, FramePointers::Kept]);
        let (skip, limit) =
            if random.below(6) == 0 { (random.below(9), 1 + random.below(50)) } else { (0, usize::MAX) };
        let path = &paths[random.below(count)];
        for _ in 0..=random.below(3) {
            walk(build, path, &mut |_| checker.check_here(skip, limit));
        }
    }
    assert!(checker.captures > 10 * count, "{}", checker.captures);
}

#[test]
fn every_id_has_the_frames_of_a_whole_walk() {
    check_paths(1, 50, FUNCTIONS, 40);
    check_paths(2, 300, 3, 8);
    check_paths(3, 600, FUNCTIONS, 20);
}
