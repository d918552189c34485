//! Names for captured addresses, looked up after the capture.

use core::ffi::{CStr, c_void};
use std::path::Path;

use stackweave_unwind::CodeAddress;

/// What one frame is called and where it lies.
#[derive(Clone, Debug)]
pub struct FrameName {
    /// The demangled function, where the module's symbols tell.
    pub function: Option<String>,
    /// The file name of the module and the offset in it.
    pub place: String,
}

/// Looks a captured address up.
pub fn name_of(address: CodeAddress) -> FrameName {
    FrameName { function: function_of(address), place: place_of(address) }
}

fn function_of(address: CodeAddress) -> Option<String> {
    // `resolve` takes every address for a return address, and looks up the byte before it.
    let after = (address.lookup() + 1) as *mut c_void;
    let mut outermost = None;
    // Inlined functions come first; the last one owns the frame.
    backtrace::resolve(after, |symbol| outermost = symbol.name().map(|name| format!("{name:#}")));
    outermost
}

fn place_of(address: CodeAddress) -> String {
    let address = address.address();
    let unknown = || format!("{address:#x}");
    // SAFETY: `Dl_info` is plain pointers, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address, and `info` is writable.
    if unsafe { libc::dladdr(address as *const c_void, &raw mut info) } == 0 || info.dli_fname.is_null() {
        return unknown();
    }
    // SAFETY: a non-null `dli_fname` is the loader's own string of a module that is still loaded: its code is running.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    let Some(file) = Path::new(&*path).file_name() else { return unknown() };
    format!("{}+{:#x}", file.display(), address - info.dli_fbase as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn well_known() {
        core::hint::black_box(());
    }

    #[test]
    fn names_a_function_of_this_program() {
        let name = name_of(CodeAddress::instruction_pointer(well_known as fn() as usize as u64));
        assert!(name.function.unwrap().ends_with("well_known"));
        assert!(name.place.contains("+0x"));
    }

    #[test]
    fn an_address_of_no_module_stays_a_number() {
        let name = name_of(CodeAddress::return_address(0x10));
        assert_eq!(name.function, None);
        assert_eq!(name.place, "0x10");
    }
}
