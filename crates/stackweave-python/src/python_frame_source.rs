//! Frame sources that are written in Python.
//!
//! The function that Python calls to capture runs their callables before the capture, never during it. So a capture in an
//! allocator, in a signal handler or on a thread without the GIL has none of their frames.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_capture::{Capture, CaptureRequest};
use stackweave_core::{
    BlobId, CodeId, FrameSource, RawFrame, RawFrameKind, SourceKind, SourceLocation, SourceStop, SourceWalk,
    SourceWalkResult, StackPointer, write_location,
};

use crate::errors::Error;
use crate::keywords::type_name;
use crate::python_location::{intern_location, interned_location, location_of, location_parts};
use crate::python_source;
use crate::registration::{CallbackKind, PyRegistration};

/// The number of exceptions that callables have raised.
pub(crate) static ERRORS: AtomicU64 = AtomicU64::new(0);

/// The registered sources. Locked only briefly, with the GIL held.
static SOURCES: Mutex<SourceRegistry> =
    Mutex::new(SourceRegistry { active: Vec::new(), idle: Vec::new(), last_number: 0 });
/// The number of active sources.
static ACTIVE_COUNT: AtomicUsize = AtomicUsize::new(0);

struct SourceRegistry {
    active: Vec<PythonFrameSource>,
    /// Slots without a callable, for reuse: a process has few slots, and can't free them.
    idle: Vec<Arc<SourceSlot>>,
    last_number: u64,
}

#[derive(Clone)]
struct PythonFrameSource {
    number: u64,
    callable: Arc<Callable>,
    slot: Arc<SourceSlot>,
}

struct Callable {
    function: Py<PyAny>,
    runs_in: Option<CodeId>,
    has_failed: AtomicBool,
}

/// Returns whether any source is active.
#[inline]
pub(crate) fn any() -> bool {
    ACTIVE_COUNT.load(Ordering::Relaxed) != 0
}

fn sources() -> MutexGuard<'static, SourceRegistry> {
    SOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an interpreter whose frames are part of captured stacks.
///
/// capture() and current_stack_id() call source() on the capturing thread. It returns the frames of its program on this thread,
/// innermost first, as (name, filename, line). They are placed just inside the innermost Python frame that runs runs_in, the
/// function or code of the interpreter's loop; without runs_in they are the innermost frames. A capture in source() does not call
/// it again.
///
/// >>> with stackweave.register_frame_source(lambda: [("query", "shop.sql", 3)]):
/// ...     [frame.name for frame in stackweave.capture().frames if frame.kind == "script"]
/// ['query']
#[pyfunction]
#[pyo3(signature = (source, *, runs_in=None))]
pub(crate) fn register_frame_source(
    source: &Bound<'_, PyAny>,
    runs_in: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyRegistration> {
    if !source.is_callable() {
        return Err(PyTypeError::new_err(format!("source must be callable; {} is not", type_name(source))));
    }
    let runs_in = runs_in.map(python_source::code_id_of).transpose()?.flatten();
    let callable = Callable { function: source.clone().unbind(), runs_in, has_failed: AtomicBool::new(false) };
    let idle = sources().idle.pop();
    let slot = idle.map_or_else(SourceSlot::register, Ok)?;
    let mut sources = sources();
    sources.last_number += 1;
    let number = sources.last_number;
    sources.active.push(PythonFrameSource { number, callable: Arc::new(callable), slot });
    ACTIVE_COUNT.store(sources.active.len(), Ordering::Relaxed);
    Ok(PyRegistration { kind: CallbackKind::FrameSource, number })
}

pub(crate) fn remove(number: u64) {
    let mut sources = sources();
    let Some(index) = sources.active.iter().position(|source| source.number == number) else { return };
    let removed = sources.active.remove(index);
    sources.idle.push(Arc::clone(&removed.slot));
    ACTIVE_COUNT.store(sources.active.len(), Ordering::Relaxed);
    // Dropping the callable may run any code, so the lock must not be held here.
    drop(sources);
    drop(removed);
}

/// Captures a stack with the frames that the callables return.
#[cold]
pub(crate) fn capture_with_frames(request: &CaptureRequest) -> PyResult<Capture> {
    thread_local! {
        static IS_CALLING: Cell<bool> = const { Cell::new(false) };
    }
    if IS_CALLING.replace(true) {
        return Ok(stackweave_capture::capture(request));
    }
    let active = sources().active.clone();
    let call_all = |py: Python<'_>| active.iter().map(|source| source.call(py)).collect();
    // SAFETY: the interpreter has called the capture function, so this thread is attached.
    let offers: PyResult<Vec<OfferedFrames>> = unsafe { Python::attach_unchecked(call_all) };
    IS_CALLING.set(false);
    let offers = offers?;
    Ok(with_offers(&offers, || stackweave_capture::capture(request)))
}

impl PythonFrameSource {
    /// Calls the callable. Its exceptions are counted, and the first is reported, but they don't fail the capture. An exception
    /// that is not an `Exception`, such as `KeyboardInterrupt`, does.
    fn call(&self, py: Python<'_>) -> PyResult<OfferedFrames> {
        let Callable { function, runs_in, has_failed } = &*self.callable;
        let frames = words_of(function.bind(py)).or_else(|error| {
            if !error.is_instance_of::<PyException>(py) {
                return Err(error);
            }
            ERRORS.fetch_add(1, Ordering::Relaxed);
            if !has_failed.swap(true, Ordering::Relaxed) {
                error.write_unraisable(py, Some(function.bind(py)));
            }
            Ok(Vec::new())
        })?;
        Ok(OfferedFrames { slot: Arc::as_ptr(&self.slot), runs_in: *runs_in, frames })
    }
}

fn words_of(function: &Bound<'_, PyAny>) -> PyResult<Vec<BlobId>> {
    let mut words = Vec::new();
    for location in function.call0()?.try_iter()? {
        let word = intern_location(&location_of(&location?)?);
        words.push(word.ok_or_else(|| Error::other("no memory for a new frame"))?);
    }
    Ok(words)
}

/// The frames of one source in one capture.
struct OfferedFrames {
    slot: *const SourceSlot,
    runs_in: Option<CodeId>,
    frames: Vec<BlobId>,
}

/// The thread whose capture may use `OFFERS`, or 0. Only that thread reads `OFFERS`.
static OFFERED_TO: AtomicU64 = AtomicU64::new(0);
static OFFERS: AtomicPtr<Vec<OfferedFrames>> = AtomicPtr::new(ptr::null_mut());

/// Runs a capture that may use the offered frames. The GIL is held throughout, so no other thread changes `OFFERS`.
fn with_offers(offers: &Vec<OfferedFrames>, capture: impl FnOnce() -> Capture) -> Capture {
    OFFERS.store(ptr::from_ref(offers).cast_mut(), Ordering::Relaxed);
    OFFERED_TO.store(this_thread(), Ordering::Release);
    let capture = capture();
    OFFERED_TO.store(0, Ordering::Release);
    capture
}

fn this_thread() -> u64 {
    // SAFETY: may be called on any thread; it only reads the id of the thread.
    unsafe { ffi::PyThread_get_thread_ident() }
}

/// The registration of a source in the capture crate.
struct SourceSlot;

impl SourceSlot {
    fn register() -> PyResult<Arc<Self>> {
        let slot = Arc::new(Self);
        let registered = stackweave_capture::register_source(Arc::<Self>::clone(&slot));
        let registered = registered.ok_or_else(|| Error::other("too many frame sources are registered"))?;
        std::mem::forget(registered);
        Ok(slot)
    }
}

impl FrameSource for SourceSlot {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        let mut walked = SourceWalkResult::default();
        if walk.in_signal_handler || OFFERED_TO.load(Ordering::Acquire) != this_thread() {
            return walked;
        }
        // SAFETY: this thread is inside `with_offers`, which keeps them alive.
        let offers = unsafe { &*OFFERS.load(Ordering::Relaxed) };
        let Some(offer) = offers.iter().find(|offer| ptr::eq(offer.slot, self)) else { return walked };
        walked.len = offer.frames.len().min(walk.frames.len());
        for (slot, frame) in walk.frames.iter_mut().zip(&offer.frames) {
            *slot = RawFrame::script(walk.source, frame.get().into());
        }
        walk.activations[..walked.len].fill(StackPointer(0));
        if walked.len < offer.frames.len() {
            walked.stop = SourceStop::DepthLimit;
        }
        walked.inside = offer.runs_in;
        walked
    }

    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return None };
        interned_location(BlobId::new(u32::try_from(word).ok()?)?)
    }

    fn write(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return write!(out, "{frame:?}") };
        match u32::try_from(word).ok().and_then(BlobId::new).and_then(location_parts) {
            Some((name, filename, line)) => write_location(out, &filename, line, &name),
            None => write!(out, "{frame:?}"),
        }
    }
}
