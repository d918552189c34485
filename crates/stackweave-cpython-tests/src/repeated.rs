//! Many walks at one place, while other threads run.

use crate::sources::{CheckedStack, PLAIN, REPLAYING, walk};
use crate::walks::DEPTH;

/// Walks `count` times, alternating between replay and plain walks. Returns how many results differ from the first.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_differing_repeats(count: u64) -> u64 {
    let mut expected = CheckedStack::with_capacity(DEPTH);
    let walked = walk(PLAIN, &mut expected);
    expected.truncate(walked.len);
    let mut stack = CheckedStack::with_capacity(walked.len + 1);
    let differs = |round: &u64| {
        let kind = if round.is_multiple_of(2) { REPLAYING } else { PLAIN };
        walk(kind, &mut stack) != walked
            || stack.frames[..walked.len] != expected.frames
            || stack.activations[..walked.len] != expected.activations
    };
    (0..count).filter(differs).count() as u64
}

/// Returns the resident size of this process in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("the kernel provides it");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second number");
    pages * 4096
}
