//! A program that replaces itself: what it recorded is written first. Programs that it starts are counted.
//!
//! Nothing runs at the end of such a program, so the interpreter is asked to say when it comes. It says much else through the
//! same hook, which therefore compares a few bytes and returns; it can't be removed.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::{by_name, started_programs};

type Hook = unsafe extern "C" fn(*const c_char, *mut ffi::PyObject, *mut c_void) -> c_int;
type AddHook = unsafe extern "C" fn(Hook, *mut c_void) -> c_int;

const EXEC: &CStr = c"os.exec";

/// Once in a process. Where there is no such hook, what was recorded since the last flush is lost with the program.
pub(super) fn install(py: Python<'_>) {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the signature is that of the headers of 3.10 to 3.15.
    let Some(add) = (unsafe { by_name::function::<AddHook>(c"PySys_AddAuditHook") }) else { return };
    // SAFETY: the hook is a function of this library, which is never unloaded.
    if unsafe { add(hook, ptr::null_mut()) } != 0 {
        // Another hook does not want it: no error of the program's.
        drop(PyErr::take(py));
    }
}

/// # Safety
/// Called by the interpreter.
unsafe extern "C" fn hook(event: *const c_char, arguments: *mut ffi::PyObject, _data: *mut c_void) -> c_int {
    // SAFETY: the interpreter names the event by a C string.
    let event = unsafe { CStr::from_ptr(event) };
    if event == EXEC {
        flush_all();
    } else if started_programs::EVENTS.contains(&event) {
        // SAFETY: the interpreter is calling, with a tuple that lives until this returns, or null.
        unsafe { started_programs::count(arguments) };
    }
    0
}

#[cold]
fn flush_all() {
    // SAFETY: the interpreter is calling.
    let py = unsafe { Python::assume_attached() };
    let flushed = py.import("stackweave._hooks").and_then(|module| module.call_method0("flush_all"));
    // The program goes on as if nothing had happened.
    drop(flushed);
}
