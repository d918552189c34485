//! A span as Python holds it: 48 bytes, made and freed without a detour, as a traceback is.
//!
//! It has no state of its own: it can be entered again, inside itself and on several threads at once.
//!
//! Hot file: allocates the object and nothing else, takes no lock.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use stackweave_core::RawFrame;

/// The memory of a span. It is not known to the garbage collector: a recording refers to no span.
#[repr(C)]
pub(super) struct SpanObject {
    base: ffi::PyObject,
    /// The recording: an owned reference to a `Feed`.
    pub(super) feed: *mut ffi::PyObject,
    /// What there is to say about it, as JSON: owned `bytes`, or null.
    pub(super) details: *mut ffi::PyObject,
    pub(super) frame: RawFrame,
    pub(super) how: How,
}

/// What happens at its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How {
    /// The stack is captured.
    pub(super) stack: bool,
    /// Nobody complains when nothing can be recorded.
    pub(super) quiet: bool,
}

const SIZE: usize = size_of::<SpanObject>();
const _: () = assert!(SIZE <= 48, "a span is made for each use");

/// The type of all spans, from the import of the module on; the process keeps one reference for good.
static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Makes this the type of spans.
///
/// # Safety
/// It was made with [`size`], [`dealloc`], and without the garbage collector, and is never freed.
pub(super) unsafe fn set_type(made: *mut ffi::PyTypeObject) {
    TYPE.store(made, Ordering::Release);
}

/// Bytes of an instance.
pub(super) const fn size() -> usize {
    SIZE
}

/// A span of this recording; null with an exception set if there is no memory.
///
/// # Safety
/// The calling thread holds the GIL. `feed` is a `Feed`; `details` is null or owned `bytes`, which are taken over.
#[inline]
pub(super) unsafe fn allocate(
    feed: *mut ffi::PyObject,
    frame: RawFrame,
    details: *mut ffi::PyObject,
    how: How,
) -> *mut ffi::PyObject {
    // SAFETY: the memory is of the size that the type says, and every field is written before anybody sees it.
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
        (&raw mut (*object).how).write(how);
        ffi::PyObject_Init(object.cast(), TYPE.load(Ordering::Relaxed))
    }
}

/// Frees a span whose last reference is gone.
///
/// # Safety
/// Called by the interpreter, with an instance of the type.
pub(super) unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the instance was made by `allocate`, and nobody refers to it any more. It holds a reference to its type, which
    // goes last; what goes before may run any code, and finds the span gone.
    unsafe {
        let type_object = ffi::Py_TYPE(object);
        let SpanObject { feed, details, .. } = *object.cast::<SpanObject>();
        ffi::PyObject_Free(object.cast());
        ffi::Py_XDECREF(details);
        ffi::Py_DECREF(feed);
        ffi::Py_DECREF(type_object.cast());
    }
}
