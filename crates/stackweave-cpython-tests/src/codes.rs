//! Reads code objects.

use std::ffi::c_char;
use std::ptr::null;

use stackweave_cpython::{CodePointer, Interpreter};

use crate::walks::lasting;

/// Returns name, qualified name, file name and first line, one per line; null if it is not a code object.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_describe(code: u64) -> *const c_char {
    let interpreter = Interpreter::find().expect("it is supported");
    // SAFETY: the script holds a reference.
    unsafe { interpreter.read_code(CodePointer::new(code)) }.map_or(null(), |info| {
        let qualname = info.qualname.as_deref().unwrap_or("-");
        lasting(&format!("{}\n{qualname}\n{}\n{}", info.name, info.filename, info.first_line))
    })
}

/// Returns the line of an instruction; zero if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_line(code: u64, instruction: u32) -> u32 {
    let interpreter = Interpreter::find().expect("it is supported");
    // SAFETY: the script holds a reference.
    let info = unsafe { interpreter.read_code(CodePointer::new(code)) };
    info.and_then(|info| info.position(instruction).line).unwrap_or(0)
}
