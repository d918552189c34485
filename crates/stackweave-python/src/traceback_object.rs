//! A traceback as Python holds it: 32 bytes, made and freed without a detour.
//!
//! The type is made by hand and not by PyO3: a class of PyO3's is known to the garbage collector and is freed through two
//! more calls, which costs more than a whole capture. A traceback refers to nothing that could refer back to it.
//!
//! Hot file: allocates the object and nothing else, takes no lock.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use stackweave_capture::{Capture, Stop};
use stackweave_core::StackId;

/// The memory of a traceback.
#[repr(C)]
pub(crate) struct TracebackObject {
    base: ffi::PyObject,
    /// Its frames, a tuple, once they have been asked for; null before.
    frames: AtomicPtr<ffi::PyObject>,
    /// Which stack of this process it is. None if it is another's, or if there was no memory for it.
    pub(crate) stack: Option<StackId>,
    /// Why it is not whole.
    pub(crate) stop: Option<Stop>,
}

const SIZE: usize = size_of::<TracebackObject>();
const _: () = assert!(SIZE <= 32, "a held traceback takes little memory");

/// The type of all tracebacks, from the import of the module on; the process keeps one reference for good.
static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Makes this the type of tracebacks.
///
/// # Safety
/// It was made with [`size`], [`dealloc`], and without the garbage collector, and is never freed.
pub(crate) unsafe fn set_type(made: *mut ffi::PyTypeObject) {
    TYPE.store(made, Ordering::Release);
}

/// Bytes of an instance.
pub(crate) const fn size() -> usize {
    SIZE
}

/// A traceback of a captured stack; null with an exception set if there is no memory.
///
/// # Safety
/// The calling thread holds the GIL, and the module has been imported.
#[inline]
pub(crate) unsafe fn captured(capture: &Capture) -> *mut ffi::PyObject {
    // SAFETY: passed on to the caller.
    unsafe { allocate(capture.stack, capture.stop(), ptr::null_mut()) }
}

/// # Safety
/// The calling thread holds the GIL, and the module has been imported. `frames` is null or an owned tuple.
#[inline]
unsafe fn allocate(stack: Option<StackId>, stop: Option<Stop>, frames: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the memory is of the size that the type says, and every field is written before anybody sees it.
    unsafe {
        let object: *mut TracebackObject = ffi::PyObject_Malloc(SIZE).cast();
        if object.is_null() {
            return ffi::PyErr_NoMemory();
        }
        (&raw mut (*object).frames).write(AtomicPtr::new(frames));
        (&raw mut (*object).stack).write(stack);
        (&raw mut (*object).stop).write(stop);
        ffi::PyObject_Init(object.cast(), TYPE.load(Ordering::Relaxed))
    }
}

/// Frees a traceback whose last reference is gone.
///
/// # Safety
/// Called by the interpreter, with an instance of the type.
pub(crate) unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the instance was made by `allocate`, and nobody refers to it any more. It holds a reference to its type, which
    // goes last.
    unsafe {
        let type_object = ffi::Py_TYPE(object);
        ffi::Py_XDECREF((*object.cast::<TracebackObject>()).frames.load(Ordering::Relaxed));
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(type_object.cast());
    }
}

/// A traceback of this process.
pub(crate) fn of_stack(py: Python<'_>, stack: Option<StackId>, stop: Option<Stop>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, and whoever calls this is a function of the module.
    unsafe { Bound::from_owned_ptr_or_err(py, allocate(stack, stop, ptr::null_mut())) }
}

/// A traceback whose stack this process does not know.
pub(crate) fn of_frames(frames: Bound<'_, PyTuple>, stop: Option<Stop>) -> PyResult<Bound<'_, PyAny>> {
    let py = frames.py();
    // SAFETY: as for `of_stack`, with an owned tuple.
    unsafe { Bound::from_owned_ptr_or_err(py, allocate(None, stop, frames.into_ptr())) }
}

/// A reference that is known to be a traceback's.
#[derive(Clone)]
pub(crate) struct Traceback<'py>(Bound<'py, PyAny>);

impl<'py> Traceback<'py> {
    /// The `self` that the interpreter passes to a function of the type.
    ///
    /// # Safety
    /// It is a traceback.
    pub(crate) unsafe fn from_self(py: Python<'py>, object: *mut ffi::PyObject) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { Bound::from_borrowed_ptr(py, object) })
    }

    /// This object, if it is a traceback.
    pub(crate) fn from_object(object: &Bound<'py, PyAny>) -> Option<Self> {
        let is_traceback = object.get_type_ptr() == TYPE.load(Ordering::Relaxed);
        is_traceback.then(|| Self(object.clone()))
    }

    pub(crate) fn as_any(&self) -> &Bound<'py, PyAny> {
        &self.0
    }

    pub(crate) fn object(&self) -> &TracebackObject {
        // SAFETY: the type was checked, and the reference keeps the object alive; only `frames` ever changes, atomically.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// The frames, if they are known already.
    pub(crate) fn known_frames(&self) -> Option<Bound<'py, PyTuple>> {
        let frames = self.object().frames.load(Ordering::Acquire);
        // SAFETY: null or a tuple, which lives as long as the traceback.
        unsafe { Bound::from_borrowed_ptr_or_opt(self.0.py(), frames).map(|frames| frames.cast_into_unchecked()) }
    }

    /// Keeps the frames, unless another thread was first; its frames are given back then.
    pub(crate) fn keep_frames(&self, frames: Bound<'py, PyTuple>) -> Bound<'py, PyTuple> {
        let owned = frames.clone().into_ptr();
        let kept = self.object().frames.compare_exchange(ptr::null_mut(), owned, Ordering::AcqRel, Ordering::Acquire);
        if kept.is_ok() {
            return frames;
        }
        // SAFETY: the reference that was not stored.
        drop(unsafe { Bound::from_owned_ptr(self.0.py(), owned) });
        self.known_frames().unwrap_or(frames)
    }
}
