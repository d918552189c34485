//! The Python object of a span, which has 48 bytes and is created and freed directly, as a traceback is.
//!
//! It has no state, so it can be entered recursively and on several threads at once.
//!
//! Hot file: allocates only the object, takes no lock.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use stackweave_core::RawFrame;

/// The memory of a span. The garbage collector does not track it, because a recording has no references to spans.
#[repr(C)]
pub(super) struct SpanObject {
    base: ffi::PyObject,
    /// The recording: an owned reference to a `Feed`.
    pub(super) feed: *mut ffi::PyObject,
    /// The details as JSON: owned `bytes`, or null.
    pub(super) details: *mut ffi::PyObject,
    pub(super) frame: RawFrame,
    pub(super) options: SpanOptions,
}

/// The options of a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpanOptions {
    /// Whether the stack is captured.
    pub(super) stack: bool,
    /// Whether errors are ignored when the event can't be recorded.
    pub(super) ignore_errors: bool,
}

const SIZE: usize = size_of::<SpanObject>();
const _: () = assert!(SIZE <= 48, "a span is created for each use");

/// The type of all spans, which is set when the module is imported and never freed.
static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Sets the type of spans.
///
/// # Safety
/// The type was created with [`size`] and [`dealloc`], without the garbage collector, and is never freed.
pub(super) unsafe fn set_type(type_object: *mut ffi::PyTypeObject) {
    TYPE.store(type_object, Ordering::Release);
}

/// Returns the size of an instance in bytes.
pub(super) const fn size() -> usize {
    SIZE
}

/// Creates a span of a recording. Returns null with an exception set if there is no memory.
///
/// # Safety
/// The calling thread holds the GIL. `feed` is a `Feed`; `details` is null or owned `bytes`, which the span takes over.
#[inline]
pub(super) unsafe fn allocate(
    feed: *mut ffi::PyObject,
    frame: RawFrame,
    details: *mut ffi::PyObject,
    options: SpanOptions,
) -> *mut ffi::PyObject {
    // SAFETY: the memory has the size of the type, and every field is written before the object is visible.
    unsafe {
        let object: *mut SpanObject = ffi::PyObject_Malloc(SIZE).cast();
        if object.is_null() {
            ffi::Py_XDECREF(details);
            return ffi::PyErr_NoMemory();
        }
        ffi::Py_INCREF(feed);
        (&raw mut (*object).feed).write(feed);
        (&raw mut (*object).details).write(details);
        (&raw mut (*object).frame).write(frame);
        (&raw mut (*object).options).write(options);
        ffi::PyObject_Init(object.cast(), TYPE.load(Ordering::Relaxed))
    }
}

/// Frees a span whose last reference is gone.
///
/// # Safety
/// Called by the interpreter, with an instance of the type.
pub(super) unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: `allocate` created the instance, and no reference to it is left. Its reference to the type is released last. Releasing
    // the others may run any code, so the span is freed before.
    unsafe {
        let type_object = ffi::Py_TYPE(object);
        let SpanObject { feed, details, .. } = *object.cast::<SpanObject>();
        ffi::PyObject_Free(object.cast());
        ffi::Py_XDECREF(details);
        ffi::Py_DECREF(feed);
        ffi::Py_DECREF(type_object.cast());
    }
}
