//! An audit hook that flushes recordings before the program replaces itself by exec, and counts the programs that it starts.
//!
//! No exit handler runs before an exec, so only an audit hook can notice it. The interpreter calls the hook for all audit events, so it
//! compares a few bytes and returns. An audit hook can't be removed.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::{interpreter_symbols, started_programs};

type Hook = unsafe extern "C" fn(*const c_char, *mut ffi::PyObject, *mut c_void) -> c_int;
type AddHook = unsafe extern "C" fn(Hook, *mut c_void) -> c_int;

const EXEC: &CStr = c"os.exec";

/// Installs the hook, once in a process. Without audit hooks, an exec loses the events since the last flush.
pub(super) fn install(py: Python<'_>) {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the signature is that of the headers of 3.10 to 3.15.
    let Some(add) = (unsafe { interpreter_symbols::function::<AddHook>(c"PySys_AddAuditHook") }) else { return };
    // SAFETY: the hook is a function of this library, which is never unloaded.
    if unsafe { add(hook, ptr::null_mut()) } != 0 {
        // Another hook has rejected this one, which is not an error of the program.
        drop(PyErr::take(py));
    }
}

/// # Safety
/// Called by the interpreter.
unsafe extern "C" fn hook(event: *const c_char, arguments: *mut ffi::PyObject, _data: *mut c_void) -> c_int {
    // SAFETY: the interpreter passes the event as a C string.
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
    let flushed = py.import("stackweave._recorders.process_hooks").and_then(|module| module.call_method0("flush_all"));
    // An error must not affect the program.
    drop(flushed);
}
