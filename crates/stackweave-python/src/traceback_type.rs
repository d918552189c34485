//! `Traceback` as the interpreter sees it: a type made by hand, and functions that it calls.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use pyo3::{IntoPyObjectExt, ffi};
use stackweave_core::StackId;

use crate::called_back::guarded;
use crate::symbolizing::json_of;
use crate::traceback_object::{self, Traceback};
use crate::type_object::{self, slot};

/// What a method or getter without arguments does.
type Unary = for<'py> fn(&Traceback<'py>) -> PyResult<Bound<'py, PyAny>>;

/// # Safety
/// Called by the interpreter with a traceback.
unsafe fn answer(object: *mut ffi::PyObject, body: Unary) -> *mut ffi::PyObject {
    guarded(ptr::null_mut(), |py| {
        // SAFETY: passed on to the caller.
        let traceback = unsafe { Traceback::from_self(py, object) };
        body(&traceback).map(Bound::into_ptr)
    })
}

macro_rules! called_by_interpreter {
    ($($name:ident($($argument:ty)?): $body:expr;)+) => {$(
        /// # Safety
        /// Called by the interpreter with a traceback.
        unsafe extern "C" fn $name(object: *mut ffi::PyObject $(, _: $argument)?) -> *mut ffi::PyObject {
            // SAFETY: passed on to the caller.
            unsafe { answer(object, $body) }
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
    summary(*mut ffi::PyObject): |traceback| traceback.shown_by("summary");
    format_list(*mut ffi::PyObject): |traceback| traceback.shown_by("format");
    to_json(*mut ffi::PyObject): |traceback| {
        let frames = traceback.frames()?;
        json_of(&frames)?.into_bound_py_any(traceback.as_any().py())
    };
    reduce(*mut ffi::PyObject): |traceback| traceback.reduce();
    copy(*mut ffi::PyObject): |traceback| Ok(traceback.as_any().clone());
    str(): |traceback| traceback.shown_by("text");
    repr(): |traceback| traceback.repr()?.into_bound_py_any(traceback.as_any().py());
}

/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: passed on to the caller.
    guarded(-1, |py| unsafe { Traceback::from_self(py, object) }.hash())
}

/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn length(object: *mut ffi::PyObject) -> ffi::Py_ssize_t {
    guarded(-1, |py| {
        // SAFETY: passed on to the caller.
        let frames = unsafe { Traceback::from_self(py, object) }.frames()?;
        Ok(frames.len().cast_signed())
    })
}

/// Whether there are frames; without resolving them.
///
/// # Safety
/// Called by the interpreter with a traceback.
unsafe extern "C" fn is_true(object: *mut ffi::PyObject) -> c_int {
    guarded(-1, |py| {
        // SAFETY: passed on to the caller.
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
        // SAFETY: passed on to the caller.
        let (traceback, other) = unsafe { (Traceback::from_self(py, object), Bound::from_borrowed_ptr(py, other)) };
        let is_wanted = operator == ffi::Py_EQ || operator == ffi::Py_NE;
        let answer = match Traceback::from_object(&other).filter(|_| is_wanted) {
            Some(other) => (traceback.is_same(&other)? == (operator == ffi::Py_EQ)).into_bound_py_any(py)?,
            None => py.NotImplemented().into_bound(py),
        };
        Ok(answer.into_ptr())
    })
}

const DOC: &CStr = c"A captured stack. Names are looked up when they are first asked for.

Equal stacks are equal. len() counts the frames, and looks their names up, since one place in native code
can be several frames. A pickle holds the frames; what comes out of one in another process has no stack_id, and equals
what has the same frames and no stack_id.";

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
        getter(c"stop_reason", get_stop_reason, c"Why the stack ends where it does: \"end of stack\" if it is whole."),
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
            c"summary($self, /)\n--\n\nThe frames as a traceback.StackSummary, outermost first.",
        ),
        method(
            c"format",
            format_list,
            none,
            c"format($self, /)\n--\n\nA string for each frame, as traceback.format_list gives.",
        ),
        method(c"to_json", to_json, none, c"to_json($self, /)\n--\n\nA list of objects, innermost first, as JSON."),
        method(c"__reduce__", reduce, none, c"__reduce__($self, /)\n--\n\nFor pickle: the frames with their names."),
        method(c"__copy__", copy, none, c"__copy__($self, /)\n--\n\nItself: a traceback never changes."),
        method(c"__deepcopy__", copy, one, c"__deepcopy__($self, memo, /)\n--\n\nItself: a traceback never changes."),
        ffi::PyMethodDef::zeroed(),
    ]
}

/// Adds the type to the module. It is made once, however often the module is imported.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static MADE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MADE.get_or_try_init(module.py(), || make_type(module.py()))?;
    module.setattr("Traceback", made)
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
    let made = unsafe { type_object::make(py, c"stackweave.Traceback", traceback_object::size(), slots)? };
    // SAFETY: as the slots say; the reference is given away for good.
    unsafe { traceback_object::set_type(made.clone().into_ptr().cast()) };
    Ok(made.unbind())
}
