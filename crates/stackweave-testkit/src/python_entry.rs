//! What the shared form of this crate offers to a Python interpreter that loads it.

use std::ffi::{CString, c_char};

use crate::ledger::Ledger;
use crate::oracles::SIGNAL_SAFE;

/// Captures here and compares with glibc and libgcc. Null when they agree, else the difference in words.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_testkit_compare() -> *const c_char {
    let mut ledger = Ledger::new(4096);
    ledger.check_here("inside Python", SIGNAL_SAFE);
    match ledger.verdict() {
        Ok(_) => std::ptr::null(),
        Err(message) => CString::new(message).map_or(c"unprintable".as_ptr(), |text| text.into_raw().cast_const()),
    }
}

/// How many frames this thread's stack has here.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_testkit_depth() -> usize {
    let mut ledger = Ledger::new(4096);
    ledger.check_here("inside Python", &[]);
    ledger.frames()
}
