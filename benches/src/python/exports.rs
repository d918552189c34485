//! The functions that the benchmark's Python scripts call in this library, which each interpreter loads.
//!
//! The C code in `c/python/` does the work. The functions are here because a library exports only what Rust names.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem;
use std::ptr;

use super::ours;
use crate::peers::shared_library;

/// Captures the calling thread's stack and keeps nothing. Returns the number of frames, or, for ours, the id.
type CaptureParts = unsafe extern "C" fn(parts: c_uint) -> usize;
type Unwind = unsafe extern "C" fn(buffer: *mut *mut c_void, max: c_int) -> c_int;

unsafe extern "C" {
    static mut bench_torch_way_unwind: Option<Unwind>;

    fn bench_python_bind() -> *const c_char;
    fn bench_new_probe() -> *mut c_void;
    fn bench_new_torch_way() -> *mut c_void;
    fn bench_new_timed(callable: *mut c_void) -> *mut c_void;
    fn bench_take_timed_ns() -> f64;
    fn bench_python_nothing(parts: c_uint) -> usize;
    fn bench_torch_way_capture(parts: c_uint) -> usize;
    fn bench_torch_capture(parts: c_uint) -> usize;
    fn bench_torch_bind(library: *const c_char) -> c_int;
    fn bench_capsule_len(capsule: *mut c_void) -> usize;
    fn bench_probe_select(capture: CaptureParts, parts: c_uint);
    fn bench_probe_result() -> usize;
    fn bench_time_each(capture: CaptureParts, parts: c_uint, repetitions: usize, nanoseconds: *mut f64) -> usize;
}

const OURS: usize = 1;

/// Returns the contender that captures from C, by the number that `library.py` gives it.
fn contender(number: usize) -> CaptureParts {
    match number {
        OURS => ours::capture_parts,
        2 => bench_torch_way_capture,
        3 => bench_torch_capture,
        _ => bench_python_nothing,
    }
}

fn frames(number: usize, result: usize) -> usize {
    if number == OURS { ours::frames(result) } else { result }
}

/// Looks up Python's API. Returns null, or the name of a function that this Python does not export.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_python_bind() -> *const c_char {
    // SAFETY: the call looks up symbols, and only stores them.
    unsafe { bench_python_bind() }
}

/// Returns a new function object, by which Python calls the selected contender.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_new_probe() -> *mut c_void {
    // SAFETY: the caller is Python, which holds the GIL through `PyDLL`, after binding.
    unsafe { bench_new_probe() }
}

/// Returns a new function object, by which Python captures the way torch does.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_new_torch_way() -> *mut c_void {
    // SAFETY: as for the probe.
    unsafe { bench_new_torch_way() }
}

/// Returns a new function object that times calls of another.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_new_timed(callable: *mut c_void) -> *mut c_void {
    // SAFETY: as for the probe; the caller passes an object.
    unsafe { bench_new_timed(callable) }
}

/// Returns the mean wall-clock nanoseconds of the calls that were timed since the last query.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_take_timed_ns() -> f64 {
    // SAFETY: the GIL, held by the caller and in timed calls, guards the samples.
    unsafe { bench_take_timed_ns() }
}

/// Gives an unwinder to the peer that captures the way torch does. Returns 0 if libunwind is not installed.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_torch_way_unwinds() -> c_int {
    let symbol = shared_library::open(c"libunwind.so.8").and_then(|library| library.symbol(c"unw_backtrace"));
    let Ok(symbol) = symbol else { return 0 };
    // SAFETY: libunwind's function of this name has this signature; scripts call this once, before any capture.
    unsafe { bench_torch_way_unwind = Some(mem::transmute::<*const c_void, Unwind>(symbol)) };
    1
}

/// Looks up torch's capture in its loaded library. Returns 0 if it was found.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_torch_bind(library: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string.
    unsafe { bench_torch_bind(library) }
}

/// Initialises our capture. Returns null, or the reason why it failed. The caller holds the GIL.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_install_ours() -> *const c_char {
    // The reason is never freed: the process reads it, and then ends.
    ours::install().map_or_else(|why| why.into_raw().cast_const(), |()| ptr::null())
}

/// Returns how many frames a traceback has that the peer made which captures the way torch does.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_torch_way_len(capsule: *mut c_void) -> usize {
    // SAFETY: the caller holds the GIL and passes what the function object returned.
    unsafe { bench_capsule_len(capsule) }
}

/// Selects the contender and the parts that the probe captures from now on.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_select(number: usize, parts: c_uint) {
    // SAFETY: the call only stores its arguments; the GIL, held by every caller and by the probe, guards them.
    unsafe { bench_probe_select(contender(number), parts) };
}

/// Returns how many frames the probe's last capture has. `number` is the contender that made it.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_probe_frames(number: usize) -> usize {
    // SAFETY: the call reads a number that the GIL guards.
    frames(number, unsafe { bench_probe_result() })
}

/// Captures `repetitions` times, and stores the wall-clock nanoseconds of each. Returns the frames of the last capture.
#[unsafe(no_mangle)]
unsafe extern "C" fn stackweave_bench_time_each(
    number: usize,
    parts: c_uint,
    repetitions: usize,
    samples: *mut f64,
) -> usize {
    // SAFETY: every contender may be called on a Python thread, with or without the GIL; the caller passes memory for
    // `repetitions` samples.
    let result = unsafe { bench_time_each(contender(number), parts, repetitions, samples) };
    frames(number, result)
}
