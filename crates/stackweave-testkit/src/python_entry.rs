//! Functions that this crate's shared library offers to a Python interpreter that loads it.

use std::ffi::{CString, c_char};

use crate::oracles::SIGNAL_SAFE;
use crate::stack_checker::StackChecker;

/// Captures here and compares with glibc and libgcc. Returns null if they agree, otherwise a description of the
/// difference.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_testkit_compare() -> *const c_char {
    let mut checker = StackChecker::new(4096);
    checker.check_here("inside Python", SIGNAL_SAFE);
    match checker.verdict() {
        Ok(_) => std::ptr::null(),
        Err(message) => CString::new(message).map_or(c"unprintable".as_ptr(), |text| text.into_raw().cast_const()),
    }
}

/// Returns the number of frames on this thread's stack.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_testkit_depth() -> usize {
    let mut checker = StackChecker::new(4096);
    checker.check_here("inside Python", &[]);
    checker.frames()
}
