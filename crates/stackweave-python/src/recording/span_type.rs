//! `Span` as the interpreter sees it: a type made by hand, and functions that it calls.

use core::ffi::{CStr, c_void};
use core::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::feeding::{begin_span, end_span};
use super::span_object::{self, How, SpanObject};
use crate::called_back::guarded;
use crate::type_object::{self, slot};

const DOC: &CStr = c"Something that takes time, of a name. Made by Recording.span().

In a with statement it begins and ends with the block. As a decorator it does so with each call, and with each step of a
generator, a coroutine or an asynchronous generator: between its steps others run.";

/// # Safety
/// Called by the interpreter with a span.
unsafe extern "C" fn enter(object: *mut ffi::PyObject, _nothing: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: passed on to the caller. The caller gets a reference of its own.
    unsafe {
        if !begin_span(&*object.cast::<SpanObject>()) {
            return ptr::null_mut();
        }
        ffi::Py_INCREF(object);
        object
    }
}

/// # Safety
/// Called by the interpreter with a span.
unsafe extern "C" fn exit(
    object: *mut ffi::PyObject,
    _values: *mut *mut ffi::PyObject,
    _count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: passed on to the caller.
    unsafe {
        end_span(&*object.cast::<SpanObject>());
        none()
    }
}

/// # Safety
/// The calling thread holds the GIL.
pub(super) unsafe fn none() -> *mut ffi::PyObject {
    // SAFETY: passed on to the caller; a reference for who gets it.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}

/// As a decorator: the Python part makes the function, around a span that never complains.
///
/// # Safety
/// Called by the interpreter with a span, a tuple and null or a dict.
unsafe extern "C" fn call(
    object: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: passed on to the caller; the details are given a reference for the new span.
        let (quiet, arguments, keywords) = unsafe {
            let span = &*object.cast::<SpanObject>();
            ffi::Py_XINCREF(span.details);
            let how = How { quiet: true, ..span.how };
            let quiet = span_object::allocate(span.feed, span.frame, span.details, how);
            let quiet: Bound<'_, PyAny> = Bound::from_owned_ptr_or_err(py, quiet)?;
            let arguments = Bound::from_borrowed_ptr(py, arguments);
            (quiet, arguments, Bound::from_borrowed_ptr_or_opt(py, keywords))
        };
        let decorate = py.import("stackweave._feeding")?.getattr("decorate")?.call1((quiet,))?;
        let keywords = keywords.map(Bound::cast_into).transpose()?;
        decorate.call(arguments.cast_into::<pyo3::types::PyTuple>()?, keywords.as_ref()).map(Bound::into_ptr)
    })
}

/// # Safety
/// Called by the interpreter with a span.
unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: passed on to the caller.
        let frame = unsafe { &*object.cast::<SpanObject>() }.frame;
        let name = stackweave_store::locate_label(frame).map(|label| label.name).unwrap_or_default();
        Ok(pyo3::types::PyString::new(py, &format!("<stackweave.Span {name:?}>")).into_any().into_ptr())
    })
}

fn methods() -> [ffi::PyMethodDef; 3] {
    [
        ffi::PyMethodDef {
            ml_name: c"__enter__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: enter },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: c"__enter__($self, /)\n--\n\nIt begins.".as_ptr(),
        },
        ffi::PyMethodDef {
            ml_name: c"__exit__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: exit },
            ml_flags: ffi::METH_FASTCALL,
            ml_doc: c"__exit__($self, kind, error, traceback, /)\n--\n\nIt ends.".as_ptr(),
        },
        ffi::PyMethodDef::zeroed(),
    ]
}

/// Adds the type to the module. It is made once, however often the module is imported.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static MADE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MADE.get_or_try_init(module.py(), || make_type(module.py()))?;
    module.setattr("Span", made)
}

fn make_type(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let slots = vec![
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, span_object::dealloc as *mut c_void),
        slot(ffi::Py_tp_methods, Box::leak(Box::new(methods())).as_mut_ptr().cast()),
        slot(ffi::Py_tp_call, call as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
    ];
    // SAFETY: the slots are those of a `Span`, and static or leaked.
    let made = unsafe { type_object::make(py, c"stackweave.Span", span_object::size(), slots)? };
    // SAFETY: as the slots say; the reference is given away for good.
    unsafe { span_object::set_type(made.clone().into_ptr().cast()) };
    Ok(made.unbind())
}
