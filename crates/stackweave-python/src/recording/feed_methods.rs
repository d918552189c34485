//! Adds the functions that record events to `Feed` as methods.

use core::ffi::CStr;

use pyo3::ffi;
use pyo3::prelude::*;

use super::feed::Feed;
use super::{feed_functions, span_functions};

const BEGIN: &CStr = c"begin($self, name, /)
--

Begins a span on the calling thread, inside the spans that are open there.";

const END: &CStr = c"end($self, /)
--

Ends the innermost open span of the calling thread.";

const SPAN: &CStr = c"span($self, name, /, *, stack=False, **details)
--

Returns a span for a with statement or as a decorator.

stack records the stack at its beginning. Details are stored as JSON; values that are not JSON become strings.";

const INSTANT: &CStr = c"instant($self, name, /, *, stack=True, **details)
--

Records an instant. Details are stored as JSON; values that are not JSON become strings.";

const COUNTER: &CStr = c"counter($self, name, value, /)
--

Records the current value of a counter.";

const TRACEBACK: &CStr = c"traceback($self, traceback=None, /, *, weight=1)
--

Records a sample with this weight: the stack of a Traceback, or the stack of the caller.";

const ALLOCATION: &CStr = c"allocation($self, address, size, /, *, stack=True)
--

Records that a block of this size was allocated at this address.";

const FREE: &CStr = c"free($self, address, /)
--

Records that the block at this address was freed.";

/// Adds the methods to the type.
pub(super) fn add_to(py: Python<'_>) -> PyResult<()> {
    use ffi::PyMethodDefPointer as Pointer;
    let (one, none, fast) = (ffi::METH_O, ffi::METH_NOARGS, ffi::METH_FASTCALL);
    let keywords = fast | ffi::METH_KEYWORDS;
    let methods = [
        (c"begin", Pointer { PyCFunction: feed_functions::begin }, one, BEGIN),
        (c"end", Pointer { PyCFunction: feed_functions::end }, none, END),
        (c"span", Pointer { PyCFunctionFastWithKeywords: span_functions::span }, keywords, SPAN),
        (c"instant", Pointer { PyCFunctionFastWithKeywords: feed_functions::instant }, keywords, INSTANT),
        (c"counter", Pointer { PyCFunctionFast: feed_functions::counter }, fast, COUNTER),
        (c"traceback", Pointer { PyCFunctionFastWithKeywords: feed_functions::traceback }, keywords, TRACEBACK),
        (c"allocation", Pointer { PyCFunctionFastWithKeywords: feed_functions::allocation }, keywords, ALLOCATION),
        (c"free", Pointer { PyCFunction: feed_functions::free }, one, FREE),
    ];
    let feed = py.get_type::<Feed>();
    for (name, function, flags, doc) in methods {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: function,
            ml_flags: flags,
            ml_doc: doc.as_ptr(),
        }));
        // SAFETY: the definition is never freed, and its functions take instances of this type.
        let method: Bound<'_, PyAny> =
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(feed.as_type_ptr(), definition))? };
        feed.setattr(name.to_string_lossy(), method)?;
    }
    Ok(())
}
