//! Our capture as a Rust program calls it, for the C side of the benchmarks.

use std::ffi::c_uint;

use stackweave_capture::{Request, StackId, Start, capture, stacks};

const PYTHON: c_uint = 1;
const NATIVE: c_uint = 2;

/// The id of the calling thread's stack, or 0.
pub(super) unsafe extern "C" fn capture_parts(parts: c_uint) -> usize {
    let request = Request {
        python: parts & PYTHON != 0,
        native: parts & NATIVE != 0,
        script: false,
        skip: 0,
        limit: usize::MAX,
        start: Start::Caller,
    };
    capture(&request).stack.map_or(0, |stack| stack.get() as usize)
}

/// How many frames the stack has that [`capture_parts`] returned.
pub(super) fn frames(stack: usize) -> usize {
    let stack = u32::try_from(stack).ok().and_then(StackId::new);
    stack.map_or(0, |stack| stacks().len(stack) as usize)
}
