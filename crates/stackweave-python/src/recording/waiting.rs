//! Waiting for the writer, while other threads run Python.

use core::ffi::c_int;
use std::sync::OnceLock;

use pyo3::ffi;

use super::by_name;

/// A recording that waits until the writer has made room does so without the GIL.
pub(super) fn let_python_run() {
    // Looked up now: a thread that has to wait may be anywhere.
    holds_gil();
    stackweave_recording::set_waiter(wait);
}

/// Called by a thread that records, in the middle of nothing of ours but its own buffer.
fn wait(wait: &mut dyn FnMut()) {
    if !holds_gil() {
        return wait();
    }
    // A trace does not end in the middle of an event.
    let before = stackweave_trace::mark_waiting(true);
    // SAFETY: this thread holds the GIL, gives it away, and takes it again.
    unsafe {
        let state = ffi::PyEval_SaveThread();
        wait();
        ffi::PyEval_RestoreThread(state);
    }
    stackweave_trace::mark_waiting(before);
}

/// Whether the calling thread holds the GIL. No, where that is not to be known: it then waits as it is, since the writer
/// does not need the GIL either.
fn holds_gil() -> bool {
    type Check = unsafe extern "C" fn() -> c_int;
    static CHECK: OnceLock<Option<Check>> = OnceLock::new();
    // SAFETY: the signature is that of the headers of 3.10 to 3.15; it may be called on any thread.
    CHECK.get_or_init(|| unsafe { by_name::function(c"PyGILState_Check") }).is_some_and(|check| unsafe { check() } != 0)
}
