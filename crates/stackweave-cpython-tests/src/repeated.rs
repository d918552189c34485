//! Many walks at one place, while other threads do as they like.

use crate::sources::{PLAIN, REPLAYING, Stack, walk};
use crate::walks::DEPTH;

/// Walks so often at this place, in turn along the last stack and frame by frame. How many walks were not as the first.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_differing_repeats(count: u64) -> u64 {
    let mut expected = Stack::with_room(DEPTH);
    let walked = walk(PLAIN, &mut expected);
    expected.truncate(walked.len);
    let mut stack = Stack::with_room(walked.len + 1);
    let differs = |round: &u64| {
        let way = if round.is_multiple_of(2) { REPLAYING } else { PLAIN };
        walk(way, &mut stack) != walked
            || stack.frames[..walked.len] != expected.frames
            || stack.activations[..walked.len] != expected.activations
    };
    (0..count).filter(differs).count() as u64
}

/// Bytes of memory that this process occupies.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("the kernel says it");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second number");
    pages * 4096
}
