//! Checks the activation addresses: each is inside the stack of one native frame, in order.

use std::ffi::c_char;
use std::fmt::Write;
use std::ptr::null;

use stackweave_cpython::{Interpreter, PythonFrame};
use stackweave_unwind::{CodeAddress, StackPointer, capture_with_stack_pointers};

use crate::walks::{DEPTH, lasting};

/// Compares with the native stack. Returns null if each activation has its own native frame, else a description of the
/// fault.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_misplaced_activations() -> *const c_char {
    let mut python = vec![PythonFrame::default(); DEPTH];
    let walked = Interpreter::find().expect("it is supported").walk(&mut python);
    let mut addresses = vec![CodeAddress::default(); DEPTH];
    let mut stack_pointers = vec![StackPointer::default(); DEPTH];
    let captured = capture_with_stack_pointers(&mut addresses, &mut stack_pointers, 0);
    let mut faults = String::new();
    let entries: Vec<_> = python[..walked.len].iter().filter(|frame| frame.is_entry).collect();
    let mut native = Vec::new();
    for entry in &entries {
        let holder = stack_pointers[..captured.len]
            .windows(2)
            .position(|pair| (pair[0].0..pair[1].0).contains(&entry.activation));
        match holder {
            Some(index) => native.push(index),
            None => _ = writeln!(faults, "{entry:?} is in no native frame"),
        }
    }
    if !native.windows(2).all(|pair| pair[0] < pair[1]) {
        let _ = writeln!(faults, "activations out of order, or two in one native frame: {native:?}");
    }
    if entries.is_empty() {
        let _ = writeln!(faults, "no frame was entered by native code");
    }
    if faults.is_empty() { null() } else { lasting(&faults) }
}
