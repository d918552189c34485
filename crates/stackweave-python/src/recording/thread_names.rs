//! Records the names of Python threads, each with the thread's first event.
//!
//! Hot file: no allocation and no lock, except for a thread's first event in a recording. The GIL is held.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_recording::Recorder;

use super::feed::Feed;

/// The number of recordings that one thread can use in turn before names are recorded repeatedly.
const RECORDINGS: usize = 4;

thread_local! {
    /// The serial numbers of the recordings that have this thread's name, by serial number modulo `RECORDINGS`.
    static NAMED: Cell<[u32; RECORDINGS]> = const { Cell::new([0; RECORDINGS]) };
}

/// Returns a new serial number for a recording of this process.
pub(super) fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Records the name of the calling thread, unless the recording has it.
#[inline]
pub(super) fn record_once(feed: &Feed) {
    let serial = feed.serial();
    let is_named = NAMED.try_with(|named| named.get()[serial as usize % RECORDINGS] == serial);
    if is_named == Ok(false) {
        record_name(feed, serial);
    }
}

#[cold]
fn record_name(feed: &Feed, serial: u32) {
    NAMED.with(|named| {
        let mut serials = named.get();
        serials[serial as usize % RECORDINGS] = serial;
        named.set(serials);
    });
    // SAFETY: the interpreter is calling a method of the recording, so this thread is attached.
    let py = unsafe { Python::assume_attached() };
    // A thread without a name is identified by its number.
    if let (Ok(recorder), Ok(Some(name))) = (feed.recorder(), name_of_this_thread(py)) {
        recorder.name_thread(&name);
    }
}

/// Returns the thread's name without running Python code: see `json.rs`. Only the private attributes of `threading` can be read in
/// this way, and without creating a dummy thread. The strings here are not interned by PyO3, because it releases the GIL for that,
/// and after a fork at that point the child would wait forever.
pub(crate) fn name_of_this_thread(py: Python<'_>) -> PyResult<Option<String>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(threading) = modules.get_item("threading") else { return Ok(None) };
    let threads = threading.getattr("_active")?;
    // SAFETY: may be called at any time.
    let own: u64 = unsafe { ffi::PyThread_get_thread_ident() };
    let Some(thread) = threads.cast::<PyDict>()?.get_item(own)? else { return Ok(None) };
    thread.getattr("_name")?.extract().map(Some)
}

/// Records the names of all threads that `threading` knows, which may include threads without events. Other threads have their
/// names in the kernel.
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
        // A thread that is starting has no number yet.
        if let (Ok(tid), Ok(name)) = (thread.getattr("_native_id")?.extract(), thread.getattr("_name")?.extract()) {
            known.push((tid, name));
        }
    }
    Ok(known)
}
