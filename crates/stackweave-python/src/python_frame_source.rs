//! Frame sources that are written in Python.
//!
//! Their callables run before the capture, by the function that Python has called for it, and never inside one: a capture
//! in an allocator, in a signal handler or on a thread without the GIL finds nothing of theirs.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_capture::{Capture, Request};
use stackweave_core::{
    BlobId, CodeId, FrameSource, RawFrame, RawFrameKind, SourceKind, SourceLocation, SourceStop, SourceWalk,
    SourceWalked, StackPointer, write_place,
};

use crate::errors::Error;
use crate::keywords::type_name;
use crate::python_place::{intern_place, interned_place, location_of, place_words};
use crate::python_source;
use crate::registration::{Kind, Registration};

/// Exceptions out of callables.
pub(crate) static ERRORS: AtomicU64 = AtomicU64::new(0);

/// Those that are asked. Locked with the GIL held, and for a moment only.
static SOURCES: Mutex<Sources> = Mutex::new(Sources { asked: Vec::new(), idle: Vec::new(), last_number: 0 });
/// How many are asked.
static ASKED: AtomicUsize = AtomicUsize::new(0);

struct Sources {
    asked: Vec<Source>,
    /// What has a number of the captures' own, and no callable: those numbers are few and are not given back.
    idle: Vec<Arc<Numbered>>,
    last_number: u64,
}

#[derive(Clone)]
struct Source {
    number: u64,
    callable: Arc<Callable>,
    numbered: Arc<Numbered>,
}

struct Callable {
    function: Py<PyAny>,
    runs_in: Option<CodeId>,
    has_failed: AtomicBool,
}

/// Whether any is asked.
#[inline]
pub(crate) fn any() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

fn sources() -> MutexGuard<'static, Sources> {
    SOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an interpreter whose frames belong into captured stacks.
///
/// source() is called by capture() and current_stack_id(), on the thread that captures. It returns the frames of its
/// program on this thread, innermost first, as (name, filename, line). They stand just inside the innermost Python frame that
/// runs runs_in, a function or its code: the loop of the interpreter; or else innermost of all. A capture inside source()
/// does not call it again.
#[pyfunction]
#[pyo3(signature = (source, *, runs_in=None))]
pub(crate) fn register_frame_source(
    source: &Bound<'_, PyAny>,
    runs_in: Option<&Bound<'_, PyAny>>,
) -> PyResult<Registration> {
    if !source.is_callable() {
        return Err(PyTypeError::new_err(format!("source must be callable; {} is not", type_name(source))));
    }
    let runs_in = runs_in.map(python_source::code_id_of).transpose()?.flatten();
    let callable = Callable { function: source.clone().unbind(), runs_in, has_failed: AtomicBool::new(false) };
    let idle = sources().idle.pop();
    let numbered = idle.map_or_else(Numbered::register, Ok)?;
    let mut sources = sources();
    sources.last_number += 1;
    let number = sources.last_number;
    sources.asked.push(Source { number, callable: Arc::new(callable), numbered });
    ASKED.store(sources.asked.len(), Ordering::Relaxed);
    Ok(Registration { kind: Kind::FrameSource, number })
}

pub(crate) fn remove(number: u64) {
    let mut sources = sources();
    let Some(place) = sources.asked.iter().position(|source| source.number == number) else { return };
    let removed = sources.asked.remove(place);
    sources.idle.push(Arc::clone(&removed.numbered));
    ASKED.store(sources.asked.len(), Ordering::Relaxed);
    // Dropping the callable may run anything: not with the lock held.
    drop(sources);
    drop(removed);
}

/// Captures with the frames that the callables give.
#[cold]
pub(crate) fn capture_with_frames(request: &Request) -> PyResult<Capture> {
    thread_local! {
        static IS_ASKING: Cell<bool> = const { Cell::new(false) };
    }
    if IS_ASKING.replace(true) {
        return Ok(stackweave_capture::capture(request));
    }
    let asked = sources().asked.clone();
    let ask_all = |py: Python<'_>| asked.iter().map(|source| source.ask(py)).collect();
    // SAFETY: the interpreter calls for captures.
    let offers: PyResult<Vec<Offer>> = unsafe { Python::attach_unchecked(ask_all) };
    IS_ASKING.set(false);
    let offers = offers?;
    Ok(offering(&offers, || stackweave_capture::capture(request)))
}

impl Source {
    /// What the callable says. Its exceptions are counted, and the first is reported, but do not fail the capture; what is
    /// no `Exception`, as the user's interrupt, does.
    fn ask(&self, py: Python<'_>) -> PyResult<Offer> {
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
        Ok(Offer { to: Arc::as_ptr(&self.numbered), runs_in: *runs_in, frames })
    }
}

fn words_of(function: &Bound<'_, PyAny>) -> PyResult<Vec<BlobId>> {
    let mut words = Vec::new();
    for place in function.call0()?.try_iter()? {
        let word = intern_place(&location_of(&place?)?);
        words.push(word.ok_or_else(|| Error::other("no memory for a new frame"))?);
    }
    Ok(words)
}

/// The frames of one source in one capture.
struct Offer {
    to: *const Numbered,
    runs_in: Option<CodeId>,
    frames: Vec<BlobId>,
}

/// The thread whose offers can be taken now; 0: none. Only the thread itself looks at `OFFERS` then.
static OFFERED_ON: AtomicU64 = AtomicU64::new(0);
static OFFERS: AtomicPtr<Vec<Offer>> = AtomicPtr::new(ptr::null_mut());

/// Captures while the offers can be taken. The GIL is held throughout, so no other thread offers meanwhile.
fn offering(offers: &Vec<Offer>, capture: impl FnOnce() -> Capture) -> Capture {
    OFFERS.store(ptr::from_ref(offers).cast_mut(), Ordering::Relaxed);
    OFFERED_ON.store(this_thread(), Ordering::Release);
    let capture = capture();
    OFFERED_ON.store(0, Ordering::Release);
    capture
}

fn this_thread() -> u64 {
    // SAFETY: may be called on any thread; asks the C library, which only reads.
    unsafe { ffi::PyThread_get_thread_ident() }
}

/// What captures know of a source.
struct Numbered;

impl Numbered {
    fn register() -> PyResult<Arc<Self>> {
        let numbered = Arc::new(Self);
        let registered = stackweave_capture::register_source(Arc::<Self>::clone(&numbered));
        let registered = registered.ok_or_else(|| Error::other("too many frame sources are registered"))?;
        std::mem::forget(registered);
        Ok(numbered)
    }
}

impl FrameSource for Numbered {
    fn kind(&self) -> SourceKind {
        SourceKind::Script
    }

    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalked {
        let mut walked = SourceWalked::default();
        if walk.in_signal_handler || OFFERED_ON.load(Ordering::Acquire) != this_thread() {
            return walked;
        }
        // SAFETY: this thread is inside `offering`, which keeps them alive.
        let offers = unsafe { &*OFFERS.load(Ordering::Relaxed) };
        let Some(offer) = offers.iter().find(|offer| ptr::eq(offer.to, self)) else { return walked };
        walked.len = offer.frames.len().min(walk.frames.len());
        for (place, frame) in walk.frames.iter_mut().zip(&offer.frames) {
            *place = RawFrame::script(walk.source, frame.get().into());
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
        interned_place(BlobId::new(u32::try_from(word).ok()?)?)
    }

    fn write(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
        let RawFrameKind::Script { word, .. } = frame.kind() else { return write!(out, "{frame:?}") };
        match u32::try_from(word).ok().and_then(BlobId::new).and_then(place_words) {
            Some((name, filename, line)) => write_place(out, &filename, line, &name),
            None => write!(out, "{frame:?}"),
        }
    }
}
