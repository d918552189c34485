//! Adds the functions that record phases to `Feed` as methods. Their names begin with an underscore, because only `Timing` exports
//! them.

use core::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

use super::phase_functions;
use crate::recording::Feed;

const PUSH: &CStr = c"push($self, /, name, filename='', lineno=0, **attributes)
--

Begins a phase on the calling thread, inside the phases that are open there.

attributes are stored as JSON; values that are not JSON become strings. bytecode_count and inline_depth describe a compiled
function.";

const POP: &CStr = c"pop($self, /, *, failed=False, **attributes)
--

Ends the innermost open phase of the calling thread, and adds attributes to it.

If no phase is open, the call is only counted: see problems().";

const PHASE: &CStr = c"phase($self, /, name, filename='', lineno=0, **attributes)
--

Returns a phase for a with statement or as a decorator. The arguments are those of push().

If an exception leaves the phase, it is recorded and the phase has failed. Phases that are still open inside it end with it and are
counted: see problems().";

const RUN: &CStr = c"run($self, /, name, filename='', lineno=0, **attributes)
--

Returns a phase as phase() does, which has its own row in reports, with its attributes: one compilation, one query.";

/// Adds the methods to the type.
pub(super) fn add_to(py: Python<'_>) -> PyResult<()> {
    type Function = unsafe extern "C" fn(
        *mut ffi::PyObject,
        *const *mut ffi::PyObject,
        ffi::Py_ssize_t,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    let methods: [(&CStr, Function, &CStr); 4] = [
        (c"push", phase_functions::push, PUSH),
        (c"pop", phase_functions::pop, POP),
        (c"phase", phase_functions::phase, PHASE),
        (c"run", phase_functions::run, RUN),
    ];
    let feed = py.get_type::<Feed>();
    for (name, function, doc) in methods {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        }));
        // SAFETY: the definition is never freed, and its functions take instances of this type.
        let method: Bound<'_, PyAny> =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(feed.as_type_ptr(), definition))? };
        feed.setattr(format!("_{}", name.to_string_lossy()), method)?;
    }
    Ok(())
}
