//! The Python object of a traceback, which has 32 bytes and is created and freed directly.
//!
//! The type is not created with PyO3: the garbage collector tracks PyO3's objects, and freeing one takes two more calls, which costs
//! more than a capture. A traceback has no references that could form a cycle.
//!
//! Hot file: allocates only the object, takes no lock.

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
    /// The tuple of frames after they were first requested; null before.
    frames: AtomicPtr<ffi::PyObject>,
    /// The stack of this process. None if the traceback comes from another process, or if there was no memory for the stack.
    pub(crate) stack: Option<StackId>,
    /// The reason why the stack is incomplete.
    pub(crate) stop: Option<Stop>,
}

const SIZE: usize = size_of::<TracebackObject>();
const _: () = assert!(SIZE <= 32, "a kept traceback needs little memory");

/// The type of all tracebacks, which is set when the module is imported and never freed.
static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Sets the type of tracebacks.
///
/// # Safety
/// The type was created with [`size`] and [`dealloc`], without the garbage collector, and is never freed.
pub(crate) unsafe fn set_type(type_object: *mut ffi::PyTypeObject) {
    TYPE.store(type_object, Ordering::Release);
}

/// Returns the size of an instance in bytes.
pub(crate) const fn size() -> usize {
    SIZE
}

/// Creates the traceback of a captured stack. Returns null with an exception set if there is no memory.
///
/// # Safety
/// The calling thread holds the GIL, and the module has been imported.
#[inline]
pub(crate) unsafe fn captured(capture: &Capture) -> *mut ffi::PyObject {
    // SAFETY: guaranteed by the caller.
    unsafe { allocate(capture.stack, capture.stop(), ptr::null_mut()) }
}

/// # Safety
/// The calling thread holds the GIL, and the module has been imported. `frames` is null or an owned tuple.
#[inline]
unsafe fn allocate(stack: Option<StackId>, stop: Option<Stop>, frames: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the memory has the size of the type, and every field is written before the object is visible.
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
    // SAFETY: `allocate` created the instance, and no reference to it is left. Its reference to the type is released last.
    unsafe {
        let type_object = ffi::Py_TYPE(object);
        ffi::Py_XDECREF((*object.cast::<TracebackObject>()).frames.load(Ordering::Relaxed));
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(type_object.cast());
    }
}

/// Creates a traceback of a stack of this process.
pub(crate) fn of_stack(py: Python<'_>, stack: Option<StackId>, stop: Option<Stop>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, and called by functions of the module only.
    unsafe { Bound::from_owned_ptr_or_err(py, allocate(stack, stop, ptr::null_mut())) }
}

/// Creates a traceback of a stack of another process.
pub(crate) fn of_frames(frames: Bound<'_, PyTuple>, stop: Option<Stop>) -> PyResult<Bound<'_, PyAny>> {
    let py = frames.py();
    // SAFETY: as for `of_stack`, with an owned tuple.
    unsafe { Bound::from_owned_ptr_or_err(py, allocate(None, stop, frames.into_ptr())) }
}

/// A reference to a traceback.
#[derive(Clone)]
pub(crate) struct Traceback<'py>(Bound<'py, PyAny>);

impl<'py> Traceback<'py> {
    /// Wraps the `self` that the interpreter passes to a function of the type.
    ///
    /// # Safety
    /// The object is a traceback.
    pub(crate) unsafe fn from_self(py: Python<'py>, object: *mut ffi::PyObject) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { Bound::from_borrowed_ptr(py, object) })
    }

    /// Returns the object as a traceback, if it is one.
    pub(crate) fn from_object(object: &Bound<'py, PyAny>) -> Option<Self> {
        let is_traceback = object.get_type_ptr() == TYPE.load(Ordering::Relaxed);
        is_traceback.then(|| Self(object.clone()))
    }

    pub(crate) fn as_any(&self) -> &Bound<'py, PyAny> {
        &self.0
    }

    pub(crate) fn object(&self) -> &TracebackObject {
        // SAFETY: the type was checked, and the reference keeps the object alive; only `frames` changes, atomically.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// Returns the frames, if they were requested before.
    pub(crate) fn known_frames(&self) -> Option<Bound<'py, PyTuple>> {
        let frames = self.object().frames.load(Ordering::Acquire);
        // SAFETY: null or a tuple, which lives as long as the traceback.
        unsafe { Bound::from_borrowed_ptr_or_opt(self.0.py(), frames).map(|frames| frames.cast_into_unchecked()) }
    }

    /// Stores the frames, unless another thread was first. Returns the stored frames.
    pub(crate) fn keep_frames(&self, frames: Bound<'py, PyTuple>) -> Bound<'py, PyTuple> {
        let owned = frames.clone().into_ptr();
        let stored = self.object().frames.compare_exchange(ptr::null_mut(), owned, Ordering::AcqRel, Ordering::Acquire);
        if stored.is_ok() {
            return frames;
        }
        // SAFETY: the reference that was not stored.
        drop(unsafe { Bound::from_owned_ptr(self.0.py(), owned) });
        self.known_frames().unwrap_or(frames)
    }
}
