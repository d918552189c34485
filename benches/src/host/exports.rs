//! The functions by which the host captures when it does not use ours. This library exports them.

use std::ffi::{c_uint, c_void};

unsafe extern "C" {
    fn bench_torch_way_gather(parts: c_uint) -> *mut c_void;
    fn bench_torch_way_len(traceback: *const c_void) -> usize;
    fn bench_torch_way_drop(traceback: *mut c_void);
    fn bench_torch_capture(parts: c_uint) -> usize;
}

const WOVEN: c_uint = 3;

/// Captures a traceback the way torch does, which takes the GIL.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_host_torch_way_capture() -> usize {
    // SAFETY: the script has bound Python, and given the peer its unwinder.
    unsafe { bench_torch_way_gather(WOVEN) }.expose_provenance()
}

/// Returns how many frames a traceback has.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_host_torch_way_len(traceback: usize) -> usize {
    // SAFETY: the caller passes what was captured, and not dropped yet.
    unsafe { bench_torch_way_len(std::ptr::with_exposed_provenance(traceback)) }
}

/// Drops a traceback the way torch does: its references wait for the next thread that holds the GIL.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_host_torch_way_drop(traceback: usize) {
    // SAFETY: the host drops each traceback once.
    unsafe { bench_torch_way_drop(std::ptr::with_exposed_provenance_mut(traceback)) };
}

/// Captures and drops a traceback with torch's own code. Returns how many frames it had.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_host_torch_capture() -> usize {
    // SAFETY: the script has found torch's function.
    unsafe { bench_torch_capture(WOVEN) }
}

/// Does nothing: `stackweave_bench_host_torch_capture` has already dropped the traceback.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_host_torch_drop(_frames: usize) {}
