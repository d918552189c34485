//! The feeding functions as methods of `Feed`.

use core::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

use super::feed::Feed;
use super::feeding;

const BEGIN: &CStr = c"begin($self, name, /)
--

Something of this name begins on the calling thread, inside what has begun there before and not ended yet.";

const END: &CStr = c"end($self, /)
--

What began last on the calling thread ends.";

const SPAN: &CStr = c"span($self, name, /, *, stack=False, **details)
--

Something of this name that takes time: for a with statement, or as a decorator.

stack records where it begins. Details are kept as JSON; values that are not JSON become strings.";

const INSTANT: &CStr = c"instant($self, name, /, *, stack=True, **details)
--

Something of this name happens now. Details are kept as JSON; values that are not JSON become strings.";

const COUNTER: &CStr = c"counter($self, name, value, /)
--

The quantity of this name has this value from now on.";

const TRACEBACK: &CStr = c"traceback($self, traceback=None, /, *, weight=1)
--

Records a stack, which counts as much as weight says: a Traceback, or the stack of the caller.";

const ALLOCATION: &CStr = c"allocation($self, address, size, /, *, stack=True)
--

Memory of this size was taken at this address.";

const FREE: &CStr = c"free($self, address, /)
--

The memory at this address was given back.";

/// Adds the methods to the type.
pub(super) fn add_to(py: Python<'_>) -> PyResult<()> {
    use ffi::PyMethodDefPointer as Pointer;
    let (one, none, fast) = (ffi::METH_O, ffi::METH_NOARGS, ffi::METH_FASTCALL);
    let keywords = fast | ffi::METH_KEYWORDS;
    let methods = [
        (c"begin", Pointer { PyCFunction: feeding::begin }, one, BEGIN),
        (c"end", Pointer { PyCFunction: feeding::end }, none, END),
        (c"span", Pointer { PyCFunctionFastWithKeywords: feeding::span }, keywords, SPAN),
        (c"instant", Pointer { PyCFunctionFastWithKeywords: feeding::instant }, keywords, INSTANT),
        (c"counter", Pointer { PyCFunctionFast: feeding::counter }, fast, COUNTER),
        (c"traceback", Pointer { PyCFunctionFastWithKeywords: feeding::traceback }, keywords, TRACEBACK),
        (c"allocation", Pointer { PyCFunctionFastWithKeywords: feeding::allocation }, keywords, ALLOCATION),
        (c"free", Pointer { PyCFunction: feeding::free }, one, FREE),
    ];
    let feed = py.get_type::<Feed>();
    for (name, function, flags, doc) in methods {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: function,
            ml_flags: flags,
            ml_doc: doc.as_ptr(),
        }));
        // SAFETY: the definition lives for ever, and its functions take instances of this type.
        let method: Bound<'_, PyAny> =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(feed.as_type_ptr(), definition))? };
        feed.setattr(name.to_string_lossy(), method)?;
    }
    Ok(())
}
