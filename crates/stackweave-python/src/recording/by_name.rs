//! Functions of the interpreter that are in no limited API, looked up by name.

use core::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The function of this name; `None` where the interpreter keeps its names to itself.
///
/// # Safety
/// `F` is a function pointer, with the signature that the function has in every version that has it.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: no handle means all that was loaded for everybody; the name is a C string.
    let address = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // SAFETY: both are one pointer in size; the caller vouches for the signature.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy(&address) })
}
