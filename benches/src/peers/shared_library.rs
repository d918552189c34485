//! Libraries loaded at run time, so that the build does not need them.

use std::ffi::{CStr, OsStr, c_void};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::machine;

/// A library that stays loaded until the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedLibrary(*mut c_void);

pub(crate) fn open(name: &CStr) -> Result<SharedLibrary, String> {
    // SAFETY: the name is a C string; the library's initialisers are trusted like those of any dependency.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(last_error()) } else { Ok(SharedLibrary(handle)) }
}

impl SharedLibrary {
    pub(crate) fn symbol(self, name: &CStr) -> Result<*const c_void, String> {
        // SAFETY: the handle stays open, and the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if address.is_null() { Err(last_error()) } else { Ok(address) }
    }
}

fn last_error() -> String {
    // SAFETY: the call takes no arguments, and its string is copied before this thread calls the loader again.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "unknown loader error".to_owned();
    }
    // SAFETY: the pointer is not null, so it is a C string.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

/// Describes the file that holds `symbol`, with the version of its Debian package if there is one:
/// neither libgcc nor libunwind reports its own version.
pub(super) fn describe(symbol: *const c_void, package: &str) -> String {
    let file = file_of(symbol).and_then(|path| fs::canonicalize(path).ok());
    let name = file.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let version = machine::first_line_of("dpkg-query", &["-W", "-f=${Version}", package]);
    format!("{version} ({})", name.unwrap_or_else(|| "file unknown".to_owned()))
}

fn file_of(symbol: *const c_void) -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is writable, and any address is allowed.
    let found = unsafe { libc::dladdr(symbol, info.as_mut_ptr()) };
    // SAFETY: all-zero bytes are a valid `Dl_info`, and `dladdr` leaves it valid.
    let info = unsafe { info.assume_init() };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader owns the C string, and keeps it as long as the module is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
