//! Looks up functions of the interpreter that are not in the limited API.

use core::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Returns the function with this name; `None` if the interpreter does not export it.
///
/// # Safety
/// `F` is a function pointer with the signature of the function in all versions.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a null handle searches the global scope; the name is a C string.
    let address = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // SAFETY: both have the size of a pointer; the caller guarantees the signature.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy(&address) })
}
