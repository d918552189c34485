//! Creates types without PyO3: see [`traceback_object`](crate::traceback_object).

use core::ffi::{CStr, c_int, c_void};
use core::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

/// Returns a slot of a type.
pub(crate) const fn slot(slot: c_int, function: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc: function }
}

/// Creates an immutable type that only this module can instantiate. It is never freed.
///
/// # Safety
/// The slots fit instances of `size` bytes, and the objects that they point to are never freed.
pub(crate) unsafe fn make<'py>(
    py: Python<'py>,
    name: &'static CStr,
    size: usize,
    mut slots: Vec<ffi::PyType_Slot>,
) -> PyResult<Bound<'py, PyAny>> {
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: c_int::try_from(size)?,
        itemsize: 0,
        flags: u32::try_from(
            ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION | ffi::Py_TPFLAGS_IMMUTABLETYPE,
        )?,
        slots: slots.leak().as_mut_ptr(),
    };
    // SAFETY: the description is complete, and the caller guarantees the slots.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec)) }
}
