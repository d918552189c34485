//! Finds the interpreter's functions by name: this crate is linked against no Python, so one build serves all.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

/// A handle for lookups of names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolLookup(*mut c_void);

// SAFETY: the handle is a token for the loader, which accepts it from any thread; it is never closed.
unsafe impl Send for SymbolLookup {}
// SAFETY: as above.
unsafe impl Sync for SymbolLookup {}

/// A function of every version: it identifies a library as the interpreter.
const MARK: &CStr = c"PyGILState_GetThisThreadState";

impl SymbolLookup {
    /// Finds the interpreter of this process: in the executable, in a library with global symbols, or in a `libpython3`
    /// that was loaded with local symbols.
    pub(crate) fn find() -> Option<Self> {
        let global = Self(libc::RTLD_DEFAULT);
        if global.address(MARK).is_some() {
            return Some(global);
        }
        let mut found = Self(ptr::null_mut());
        // SAFETY: the callback gets a `SymbolLookup` that outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(open_if_python), (&raw mut found).cast()) };
        (!found.0.is_null()).then_some(found)
    }

    /// Returns the address of a symbol; `None` if there is no such name.
    pub(crate) fn address(self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is `RTLD_DEFAULT` or never closed, the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// Returns the function of that name.
    ///
    /// # Safety
    /// `F` is a function pointer, with the signature that the function has in every version in which it exists.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.address(name)?;
        // SAFETY: both are one pointer in size; the caller vouches for the signature.
        Some(unsafe { core::mem::transmute_copy(&address) })
    }
}

/// Opens the module if it is a `libpython3`, and ends the search.
///
/// # Safety
/// `info` is what the loader passes, `found` points to a `SymbolLookup`.
unsafe extern "C" fn open_if_python(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid structure.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: the loader's names are C strings.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if !file.starts_with(b"libpython3") {
        return 0;
    }
    // SAFETY: the library is loaded already; its handle is never closed, so it stays.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    let symbols = SymbolLookup(handle);
    if handle.is_null() || symbols.address(MARK).is_none() {
        return 0;
    }
    // SAFETY: `find` passes its own variable.
    unsafe { *found.cast::<SymbolLookup>() = symbols };
    1
}
