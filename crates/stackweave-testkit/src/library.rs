//! Shared libraries that tests load and unload.

use std::ffi::{CString, c_int, c_void};

/// A library loaded by `dlopen`; dropping it unloads it.
#[derive(Debug)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads the library, binding its calls when they are first made. Returns `None` if it cannot be found.
    pub fn open(path: &str) -> Option<Self> {
        Self::open_with(path, libc::RTLD_LAZY | libc::RTLD_LOCAL)
    }

    /// Loads the library as [`Library::open`] does, and offers its symbols to libraries that are loaded later.
    pub fn open_for_all(path: &str) -> Option<Self> {
        Self::open_with(path, libc::RTLD_LAZY | libc::RTLD_GLOBAL)
    }

    fn open_with(path: &str, mode: c_int) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: the path is a C string. The libraries of the tests do nothing harmful when they are loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), mode) };
        (!handle.is_null()).then(|| Self(handle))
    }

    /// Returns the address of the symbol; null if there is none.
    pub fn symbol(&self, name: &str) -> *mut c_void {
        let Ok(name) = CString::new(name) else { return std::ptr::null_mut() };
        // SAFETY: the handle is open, the name is a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is open; every call into the library has returned.
        unsafe { libc::dlclose(self.0) };
    }
}
