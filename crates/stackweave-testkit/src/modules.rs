//! The objects that the loader has mapped, by address.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// One loaded object.
#[derive(Clone, Debug)]
pub struct MappedObject {
    /// Its path; empty for the program itself.
    pub path: String,
    /// The difference between its addresses in memory and in its file.
    pub bias: u64,
    /// From its first to its last mapped byte.
    pub range: Range<u64>,
    /// Its executable segments.
    pub code: Vec<Range<u64>>,
    /// Its segments that hold `.eh_frame_hdr` and, behind it, `.eh_frame`.
    pub eh_frame_hdr: Option<Range<u64>>,
    /// All mapped segments.
    pub segments: Vec<Range<u64>>,
}

impl MappedObject {
    /// Returns whether the address is in this object.
    pub fn contains(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| segment.contains(&address))
    }
}

/// Returns every object that is loaded now.
pub fn loaded() -> Vec<MappedObject> {
    let mut modules = Vec::new();
    // SAFETY: the callback gets the vector that it expects, and does not call the loader.
    unsafe { libc::dl_iterate_phdr(Some(take_module), (&raw mut modules).cast()) };
    modules
}

/// Returns the object whose path contains `name`.
pub fn named(name: &str) -> Option<MappedObject> {
    loaded().into_iter().find(|module| module.path.contains(name))
}

unsafe extern "C" fn take_module(info: *mut libc::dl_phdr_info, _: usize, modules: *mut c_void) -> c_int {
    // SAFETY: `loaded` passes its vector; the loader passes valid information for the length of this call.
    let (modules, info) = unsafe { (&mut *modules.cast::<Vec<MappedObject>>(), &*info) };
    // SAFETY: the loader's name is a C string, its header table has `dlpi_phnum` entries.
    let (path, headers) = unsafe {
        (CStr::from_ptr(info.dlpi_name), std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let at = |header: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        start..start + header.p_memsz
    };
    let load = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let segments: Vec<_> = load().map(at).collect();
    let (Some(start), Some(end)) =
        (segments.iter().map(|range| range.start).min(), segments.iter().map(|range| range.end).max())
    else {
        return 0;
    };
    modules.push(MappedObject {
        path: path.to_string_lossy().into_owned(),
        bias: info.dlpi_addr,
        range: start..end,
        code: load().filter(|header| header.p_flags & libc::PF_X != 0).map(at).collect(),
        eh_frame_hdr: headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(at),
        segments,
    });
    0
}
