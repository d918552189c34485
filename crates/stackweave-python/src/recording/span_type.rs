//! The Python type `Span`, which is created without PyO3, and the functions that the interpreter calls.

use core::ffi::{CStr, c_void};
use core::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::span_functions::{begin_span, end_span};
use super::span_object::{self, SpanObject, SpanOptions};
use crate::callback_guard::guarded;
use crate::type_object::{self, slot};

const DOC: &CStr = c"A named span, created by Recording.span().

In a with statement it begins and ends with the block. As a decorator it begins and ends with each call, and with each step of a
generator, a coroutine or an asynchronous generator, because other code runs between the steps.

>>> with stackweave.Recorder(\"out.swv\") as recorder, recorder.span(\"load\"):
...     main()
>>> recorder.recording.top(1)[0].name
'load'";

/// # Safety
/// Called by the interpreter with a span.
unsafe extern "C" fn enter(object: *mut ffi::PyObject, _nothing: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: guaranteed by the caller. The result is a new reference.
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
    // SAFETY: guaranteed by the caller.
    unsafe {
        end_span(&*object.cast::<SpanObject>());
        none()
    }
}

/// Returns a new reference to None.
///
/// # Safety
/// The calling thread holds the GIL.
pub(super) unsafe fn none() -> *mut ffi::PyObject {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}

/// Decorates a function: the Python part wraps it with a span that ignores errors.
///
/// # Safety
/// Called by the interpreter with a span, a tuple and null or a dict.
unsafe extern "C" fn call(
    object: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: guaranteed by the caller; the new span gets its own reference to the details.
        let (decorating_span, arguments, keywords) = unsafe {
            let span = &*object.cast::<SpanObject>();
            ffi::Py_XINCREF(span.details);
            let options = SpanOptions { ignore_errors: true, ..span.options };
            let decorating_span = span_object::allocate(span.feed, span.frame, span.details, options);
            let decorating_span: Bound<'_, PyAny> = Bound::from_owned_ptr_or_err(py, decorating_span)?;
            let arguments = Bound::from_borrowed_ptr(py, arguments);
            (decorating_span, arguments, Bound::from_borrowed_ptr_or_opt(py, keywords))
        };
        let decorate =
            py.import("stackweave._recorders.native_callbacks")?.getattr("decorate")?.call1((decorating_span,))?;
        let keywords = keywords.map(Bound::cast_into).transpose()?;
        decorate.call(arguments.cast_into::<pyo3::types::PyTuple>()?, keywords.as_ref()).map(Bound::into_ptr)
    })
}

/// # Safety
/// Called by the interpreter with a span.
unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: guaranteed by the caller.
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
            ml_doc: c"__enter__($self, /)\n--\n\nBegins the span.".as_ptr(),
        },
        ffi::PyMethodDef {
            ml_name: c"__exit__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: exit },
            ml_flags: ffi::METH_FASTCALL,
            ml_doc: c"__exit__($self, kind, error, traceback, /)\n--\n\nEnds the span.".as_ptr(),
        },
        ffi::PyMethodDef::zeroed(),
    ]
}

/// Adds the type to the module. It is created once, even if the module is imported again.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let type_object = TYPE.get_or_try_init(module.py(), || make_type(module.py()))?;
    module.setattr("Span", type_object)
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
    let created = unsafe { type_object::make(py, c"stackweave.Span", span_object::size(), slots)? };
    // SAFETY: the type has these slots, and the reference is never released.
    unsafe { span_object::set_type(created.clone().into_ptr().cast()) };
    Ok(created.unbind())
}
