//! A profile function that does nothing, for the script `tools.py`, which loads this library into Python.

use std::ffi::{c_int, c_void};

/// Does nothing. `PyEval_SetProfile` calls it.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_empty_hook(
    _object: *mut c_void,
    _frame: *mut c_void,
    _what: c_int,
    _argument: *mut c_void,
) -> c_int {
    0
}
