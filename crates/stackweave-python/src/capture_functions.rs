//! `capture` and `current_stack_id`, which are fast enough for every call and every allocation.
//!
//! Hot file: allocates only the returned object, takes no lock.

use core::ffi::CStr;
use core::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_capture::{Capture, CaptureRequest, StackId};

use crate::callback_guard::guarded;
use crate::keywords;
use crate::python_frame_source;
use crate::traceback_object;

const CAPTURE: &CStr = c"capture($module, /, *, python=True, native=True, script=True, skip=0, limit=None)
--

Captures the stack of the calling thread, starting with the calling Python function.

skip omits that many innermost frames, limit keeps at most that many. Names are looked up when they are first accessed.

>>> stackweave.capture(native=False).frames[0].name
'<module>'";

const CURRENT_STACK_ID: &CStr =
    c"current_stack_id($module, /, *, python=True, native=True, script=True, skip=0, limit=None)
--

Returns the number of the stack that capture() would capture. Equal stacks have equal numbers, on all threads.

Returns 0 if there is no memory for a new stack. traceback_of() returns the traceback of a number.

>>> len({stackweave.current_stack_id(native=False) for _ in range(3)})
1";

/// Adds both functions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add(module, c"capture", CAPTURE, capture)?;
    add(module, c"current_stack_id", CURRENT_STACK_ID, current_stack_id)
}

fn add(
    module: &Bound<'_, PyModule>,
    name: &'static CStr,
    doc: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
) -> PyResult<()> {
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    let module_name = module.name()?;
    // SAFETY: the definition is never freed; the function keeps references to the module and its name.
    let function: Bound<'_, PyAny> = unsafe {
        let function = ffi::PyCFunction_NewEx(definition, module.as_ptr(), module_name.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), function)?
    };
    module.setattr(name.to_string_lossy(), function)
}

/// # Safety
/// Called by the interpreter.
unsafe extern "C" fn capture(
    _module: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the arguments come from the interpreter.
    match unsafe { keywords::read("capture", values, positional, names) } {
        Ok(request) => match captured(&request) {
            // SAFETY: the interpreter calls a function of the module, so the GIL is held.
            Ok(capture) => unsafe { traceback_object::captured(&capture) },
            Err(error) => raise(error),
        },
        Err(error) => raise(error),
    }
}

/// # Safety
/// Called by the interpreter.
unsafe extern "C" fn current_stack_id(
    _module: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the arguments come from the interpreter.
    match unsafe { keywords::read("current_stack_id", values, positional, names) } {
        Ok(request) => match captured(&request) {
            // SAFETY: the interpreter is calling, so the GIL is held.
            Ok(capture) => unsafe { ffi::PyLong_FromUnsignedLong(capture.stack.map_or(0, StackId::get).into()) },
            Err(error) => raise(error),
        },
        Err(error) => raise(error),
    }
}

/// Captures a stack, with the frames of the sources that are written in Python.
#[inline]
pub(crate) fn captured(request: &CaptureRequest) -> PyResult<Capture> {
    if request.script && python_frame_source::any() {
        return python_frame_source::capture_with_frames(request);
    }
    Ok(stackweave_capture::capture(request))
}

#[cold]
fn raise(error: PyErr) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |_| Err(error))
}
