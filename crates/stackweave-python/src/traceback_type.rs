//! The Python type `Traceback`, which is created without PyO3, and the functions that the interpreter calls.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use pyo3::{IntoPyObjectExt, ffi};
use stackweave_core::StackId;

use crate::callback_guard::guarded;
use crate::symbolizing::json_of;
use crate::traceback_object::{self, Traceback};
use crate::type_object::{self, slot};

/// The body of a method or getter without arguments.
type Unary = for<'py> fn(&Traceback<'py>) -> PyResult<Bound<'py, PyAny>>;

/// Calls the body of a method or getter.
///
/// # Safety
/// Called by the interpreter with a traceback.
unsafe fn call_unary(object: *mut ffi::PyObject, body: Unary) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: guaranteed by the caller.
        let traceback = unsafe { Traceback::from_self(py, object) };
        body(&traceback).map(Bound::into_ptr)
    })
}

macro_rules! called_by_interpreter {
    ($($name:ident($($argument:ty)?): $body:expr;)+) => {$(
        /// # Safety
        /// Called by the interpreter with a traceback.
        unsafe extern "C" fn $name(object: *mut ffi::PyObject $(, _: $argument)?) -> *mut ffi::PyObject {
            // SAFETY: guaranteed by the caller.
            unsafe { call_unary(object, $body) }
        }
    )+};
}

called_by_interpreter! {
    get_frames(*mut c_void): |traceback| traceback.frames().map(Bound::into_any);
    get_stop_reason(*mut c_void): |traceback| {
        Ok(PyString::intern(traceback.as_any().py(), traceback.stop_reason()).into_any())
    };
    get_stack_id(*mut c_void): |traceback| {
        traceback.object().stack.map(StackId::get).into_bound_py_any(traceback.as_any().py())
    };
    summary(*mut ffi::PyObject): |traceback| traceback.format_with("summary");
    format_list(*mut ffi::PyObject): |traceback| traceback.format_with("format");
    to_json(*mut ffi::PyObject): |traceback| {
        let frames = traceback.frames()?;
        json_of(&frames)?.into_bound_py_any(traceback.as_any().py())
    };
    reduce(*mut ffi::PyObject): |traceback| traceback.reduce();
    copy(*mut ffi::PyObject): |traceback| Ok(traceback.as_any().clone());
    str(): |traceback| traceback.format_with("text");
    repr(): |traceback| traceback.repr()?.into_bound_py_any(traceback.as_any().py());
}

/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: guaranteed by the caller.
    guarded(-1, |py| unsafe { Traceback::from_self(py, object) }.hash())
}

/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn length(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    guarded(-1, |py| {
        // SAFETY: guaranteed by the caller.
        let frames = unsafe { Traceback::from_self(py, object) }.frames()?;
        Ok(frames.len().cast_signed())
    })
}

/// Returns whether there are frames, without resolving them.
///
/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn is_true(object: *mut ffi::PyObject) -> c_int {
    guarded(-1, |py| {
        // SAFETY: guaranteed by the caller.
        let traceback = unsafe { Traceback::from_self(py, object) };
        let has_frames = match traceback.object().stack {
            Some(stack) => stack != StackId::EMPTY,
            None => !traceback.frames()?.is_empty(),
        };
        Ok(has_frames.into())
    })
}

/// # Safety
/// Called by the interpreter with a traceback and any object.
unsafe extern "C" fn compare(
    object: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    operator: c_int,
) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: guaranteed by the caller.
        let (traceback, other) = unsafe { (Traceback::from_self(py, object), Bound::from_borrowed_ptr(py, other)) };
        let is_supported = operator == ffi::Py_EQ || operator == ffi::Py_NE;
        let result = match Traceback::from_object(&other).filter(|_| is_supported) {
            Some(other) => (traceback.is_same(&other)? == (operator == ffi::Py_EQ)).into_bound_py_any(py)?,
            None => py.NotImplemented().into_bound(py),
        };
        Ok(result.into_ptr())
    })
}

const DOC: &CStr = c"A captured stack. Names are looked up when they are first accessed.

Tracebacks with equal stacks are equal. len() looks up the names to count the frames, because one address of native code can
have several frames. A pickle contains the frames. A traceback that was unpickled in another process has no stack_id, and equals
tracebacks with the same frames and no stack_id.

>>> traceback = stackweave.capture(native=False)
>>> traceback.frames[0].name
'<module>'";

fn getters() -> [ffi::PyGetSetDef; 4] {
    let getter = |name: &'static CStr, get: ffi::getter, doc: &'static CStr| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: doc.as_ptr(),
        closure: ptr::null_mut(),
    };
    [
        getter(c"frames", get_frames, c"The frames, innermost first."),
        getter(c"stop_reason", get_stop_reason, c"Why the stack ends: \"end of stack\" if it is complete."),
        getter(c"stack_id", get_stack_id, c"The number of the stack in this process."),
        ffi::PyGetSetDef::default(),
    ]
}

fn methods() -> [ffi::PyMethodDef; 7] {
    let method = |name: &'static CStr, function: ffi::PyCFunction, flags, doc: &'static CStr| ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    };
    let (none, one) = (ffi::METH_NOARGS, ffi::METH_O);
    [
        method(
            c"summary",
            summary,
            none,
            c"summary($self, /)\n--\n\nReturns the frames as a traceback.StackSummary, outermost first.",
        ),
        method(
            c"format",
            format_list,
            none,
            c"format($self, /)\n--\n\nReturns a string for each frame, as traceback.format_list does.",
        ),
        method(
            c"to_json",
            to_json,
            none,
            c"to_json($self, /)\n--\n\nReturns a JSON list of objects, innermost frame first.",
        ),
        method(
            c"__reduce__",
            reduce,
            none,
            c"__reduce__($self, /)\n--\n\nReturns the pickled form: the frames with their names.",
        ),
        method(c"__copy__", copy, none, c"__copy__($self, /)\n--\n\nReturns the traceback itself, which is immutable."),
        method(
            c"__deepcopy__",
            copy,
            one,
            c"__deepcopy__($self, memo, /)\n--\n\nReturns the traceback itself, which is immutable.",
        ),
        ffi::PyMethodDef::zeroed(),
    ]
}

/// Adds the type to the module. It is created once, even if the module is imported again.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static TYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let type_object = TYPE.get_or_try_init(module.py(), || make_type(module.py()))?;
    module.setattr("Traceback", type_object)
}

fn make_type(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let slots = vec![
        slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, traceback_object::dealloc as *mut c_void),
        slot(ffi::Py_tp_getset, Box::leak(Box::new(getters())).as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, Box::leak(Box::new(methods())).as_mut_ptr().cast()),
        slot(ffi::Py_tp_hash, hash as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_str, str as *mut c_void),
        slot(ffi::Py_sq_length, length as *mut c_void),
        slot(ffi::Py_nb_bool, is_true as *mut c_void),
    ];
    // SAFETY: the slots are those of a `Traceback`, and static or leaked.
    let created = unsafe { type_object::make(py, c"stackweave.Traceback", traceback_object::size(), slots)? };
    // SAFETY: the type has these slots, and the reference is never released.
    unsafe { traceback_object::set_type(created.clone().into_ptr().cast()) };
    Ok(created.unbind())
}
