//! The names of Python's threads: each is told with the thread's first event.
//!
//! Hot file: no allocation and no lock but for a thread's first event in a recording. The GIL is held.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::Recorder;

use super::feed::Feed;

/// Recordings that are fed in turn by one thread; more are asked about again and again.
const RECORDINGS: usize = 4;

thread_local! {
    /// The recordings that know this thread's name, by the rest of their number.
    static TOLD: Cell<[u32; RECORDINGS]> = const { Cell::new([0; RECORDINGS]) };
}

/// A number that no recording of this process had before.
pub(super) fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Tells the name of the calling thread, unless that was done.
#[inline]
pub(super) fn tell(feed: &Feed) {
    let serial = feed.serial();
    let is_told = TOLD.try_with(|told| told.get()[serial as usize % RECORDINGS] == serial);
    if is_told == Ok(false) {
        tell_now(feed, serial);
    }
}

#[cold]
fn tell_now(feed: &Feed, serial: u32) {
    TOLD.with(|told| {
        let mut serials = told.get();
        serials[serial as usize % RECORDINGS] = serial;
        told.set(serials);
    });
    // SAFETY: the interpreter is calling a method of the recording.
    let py = unsafe { Python::assume_attached() };
    // Without a name a thread is still known by its number.
    if let (Ok(recorder), Ok(Some(name))) = (feed.recorder(), name_of_this_thread(py)) {
        recorder.name_thread(&name);
    }
}

/// The name, without running any code of Python's: see `json.rs`. What `threading` keeps privately is the one place that
/// can be asked so, and that makes no thread up. The strings here are not interned by PyO3: it gives the GIL away for that,
/// and a fork in between would leave the child waiting for ever.
pub(crate) fn name_of_this_thread(py: Python<'_>) -> PyResult<Option<String>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(threading) = modules.get_item("threading") else { return Ok(None) };
    let threads = threading.getattr("_active")?;
    // SAFETY: may be called at any time.
    let own: u64 = unsafe { ffi::PyThread_get_thread_ident() };
    let Some(thread) = threads.cast::<PyDict>()?.get_item(own)? else { return Ok(None) };
    thread.getattr("_name")?.extract().map(Some)
}

/// Names all threads that `threading` knows now, which may not feed the recording at all. What can't be named has the name that the
/// system knows.
pub(crate) fn name_threads(py: Python<'_>, recorder: &Recorder) {
    for (tid, name) in known_threads(py).unwrap_or_default() {
        recorder.name_other_thread(tid, &name);
    }
}

fn known_threads(py: Python<'_>) -> PyResult<Vec<(u32, String)>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(threading) = modules.get_item("threading") else { return Ok(Vec::new()) };
    let threads = threading.getattr("_active")?;
    let mut known = Vec::new();
    for thread in threads.cast::<PyDict>()?.values() {
        // A thread that is just beginning has no number yet.
        if let (Ok(tid), Ok(name)) = (thread.getattr("_native_id")?.extract(), thread.getattr("_name")?.extract()) {
            known.push((tid, name));
        }
    }
    Ok(known)
}
