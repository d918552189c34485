//! Waits for the writer without the GIL, so that other threads can run Python.

use core::ffi::c_int;
use std::sync::OnceLock;

use pyo3::ffi;

use super::interpreter_symbols;

/// Makes recording threads release the GIL while they wait for a buffer.
pub(super) fn release_gil_while_waiting() {
    // Look up the function now, because a waiting thread may be at any point.
    holds_gil();
    stackweave_recording::set_waiter(wait);
}

/// Waits without the GIL. The caller is a recording thread that holds nothing of this library except its own buffer.
fn wait(wait: &mut dyn FnMut()) {
    if !holds_gil() {
        return wait();
    }
    // A trace must not end in the middle of an event.
    let before = stackweave_trace::mark_waiting(true);
    // SAFETY: this thread holds the GIL; it releases it and takes it again.
    unsafe {
        let state = ffi::PyEval_SaveThread();
        wait();
        ffi::PyEval_RestoreThread(state);
    }
    stackweave_trace::mark_waiting(before);
}

/// Returns whether the calling thread holds the GIL. If that is unknown, returns false: the thread then waits with the GIL,
/// which is safe because the writer does not need it.
fn holds_gil() -> bool {
    type Check = unsafe extern "C" fn() -> c_int;
    static CHECK: OnceLock<Option<Check>> = OnceLock::new();
    // SAFETY: the signature is that of the headers of 3.10 to 3.15; it may be called on any thread.
    CHECK
        .get_or_init(|| unsafe { interpreter_symbols::function(c"PyGILState_Check") })
        .is_some_and(|check| unsafe { check() } != 0)
}
