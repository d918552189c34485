//! What tells of phases, as methods of `Feed`. Their names begin with a line there: they are those of `Timing` only.

use core::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

use super::feeding;
use crate::recording::Feed;

const PUSH: &CStr = c"push($self, /, name, filename='', line=0, **attributes)
--

A phase begins on the calling thread, inside what is open there.

attributes are kept as JSON; values that are not JSON become strings. bytecode_count and inline_depth are those of a
function that is looked at.";

const POP: &CStr = c"pop($self, /, *, failed=False, **attributes)
--

What began last on the calling thread ends; attributes are added to what is known about it.

If nothing is open, that is counted, and nothing else happens: see problems().";

const FRAME: &CStr = c"frame($self, /, name, filename='', line=0, **attributes)
--

A phase, for a with statement or as a decorator. The rest is as for push().

An exception that leaves it is told of, and the phase has failed. What was begun in it and not ended is ended with it, and
counted: see problems().";

const RUN: &CStr = c"run($self, /, name, filename='', line=0, **attributes)
--

A phase as of frame() that is told of in a row of its own, with its attributes: one compilation, one query.";

/// Adds the methods to the type.
pub(super) fn add_to(py: Python<'_>) -> PyResult<()> {
    type Function = unsafe extern "C" fn(
        *mut ffi::PyObject,
        *const *mut ffi::PyObject,
        ffi::Py_ssize_t,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    let methods: [(&CStr, Function, &CStr); 4] = [
        (c"push", feeding::push, PUSH),
        (c"pop", feeding::pop, POP),
        (c"frame", feeding::frame, FRAME),
        (c"run", feeding::run, RUN),
    ];
    let feed = py.get_type::<Feed>();
    for (name, function, doc) in methods {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        }));
        // SAFETY: the definition lives for ever, and its functions take instances of this type.
        let method: Bound<'_, PyAny> =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(feed.as_type_ptr(), definition))? };
        feed.setattr(format!("_{}", name.to_string_lossy()), method)?;
    }
    Ok(())
}
