//! Our capture, called as a Rust program calls it, for the C side of the benchmarks.

use std::ffi::{CString, c_uint};
use std::mem;
use std::sync::Arc;

use stackweave_capture::{CaptureRequest, CaptureStart, StackId, capture, register_source, stacks};
use stackweave_cpython::PythonSource;

const PYTHON: c_uint = 1;
const NATIVE: c_uint = 2;

/// Registers Python as a source of frames until the process ends, or returns why that fails. The caller holds the GIL.
pub(super) fn install() -> Result<(), CString> {
    let source = PythonSource::install().map_err(|why| CString::new(why.to_string()).unwrap_or_default())?;
    let registered = register_source(Arc::new(*source)).ok_or_else(|| c"installed twice".to_owned())?;
    mem::forget(registered);
    Ok(())
}

/// Returns the id of the calling thread's stack, or 0.
pub(super) unsafe extern "C" fn capture_parts(parts: c_uint) -> usize {
    let request = CaptureRequest {
        python: parts & PYTHON != 0,
        native: parts & NATIVE != 0,
        script: false,
        skip: 0,
        limit: usize::MAX,
        start: CaptureStart::Caller,
    };
    capture(&request).stack.map_or(0, |stack| stack.get() as usize)
}

/// Returns how many frames a stack has. `stack` is a result of [`capture_parts`].
pub(super) fn frames(stack: usize) -> usize {
    let stack = u32::try_from(stack).ok().and_then(StackId::new);
    stack.map_or(0, |stack| stacks().len(stack) as usize)
}
