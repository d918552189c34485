//! The modules of this process, for the resolution of names.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use stackweave_core::{BuildId, Module, ModuleList};

use crate::platform::loaded_objects::visit_and_wait;

/// Returns the loaded modules that have code. Modules without code are in no stack: data, and the object with
/// thread-local words, which is in no file.
pub(crate) fn modules() -> ModuleList {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: the callback has the right signature, and `modules` outlives the call.
    let is_complete = unsafe { visit_and_wait(add, (&raw mut modules).cast()) };
    // Only try to lock: in a forked child, a thread that it does not have may hold the lock.
    let mut last = LAST.try_lock().ok();
    if !is_complete {
        return last.and_then(|last| last.clone()).unwrap_or_default();
    }
    let modules = ModuleList::new(modules);
    if let Some(last) = &mut last {
        **last = Some(modules.clone());
    }
    modules
}

/// The result of the last call, for callers while the loader's list is locked.
static LAST: Mutex<Option<ModuleList>> = Mutex::new(None);

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, modules: *mut c_void) -> c_int {
    // SAFETY: the loader passes valid data, and `modules` is the variable above.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
    // SAFETY: the loader keeps its headers valid while the callback runs.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let address = |header: &libc::Elf64_Phdr| info.dlpi_addr.wrapping_add(header.p_vaddr);
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(address).min();
    let end = loaded().map(|header| address(header).wrapping_add(header.p_memsz)).max();
    let has_code = loaded().any(|header| header.p_flags & libc::PF_X != 0);
    if let Some((start, end)) = start.zip(end).filter(|_| has_code) {
        let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
        let build_id = notes.map(|header| bytes(address(header), header.p_memsz)).find_map(build_id_in);
        let path = path_of(info, modules.is_empty());
        modules.push(Module { path, build_id, bias: info.dlpi_addr, start, end });
    }
    0
}

/// Returns the path of a module: the loader's name for libraries, and the executable for the program itself, which
/// comes first and has no name.
fn path_of(info: &libc::dl_phdr_info, is_first: bool) -> PathBuf {
    if info.dlpi_name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: the loader keeps the string while the module is loaded.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    match name {
        b"" if is_first => std::env::current_exe().unwrap_or_default(),
        b"" | b"linux-vdso.so.1" => PathBuf::from("[vdso]"),
        name => PathBuf::from(OsStr::from_bytes(name)),
    }
}

/// Returns the bytes of a loaded segment.
fn bytes(address: u64, length: u64) -> &'static [u8] {
    let pointer = core::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: a segment of a module that remains loaded while the loader's callback runs; the bytes are used only
    // there.
    unsafe { core::slice::from_raw_parts(pointer, length as usize) }
}

/// Returns the build id in a module's notes.
fn build_id_in(mut notes: &[u8]) -> Option<BuildId> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let [name_size, size, kind] = [0, 4, 8].map(|at| notes.get(at..at + 4).and_then(<[u8]>::first_chunk));
        let (name_size, size) = (u32::from_le_bytes(*name_size?) as usize, u32::from_le_bytes(*size?) as usize);
        let content = 12usize.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let id = notes.get(content..content.checked_add(size)?)?;
        if u32::from_le_bytes(*kind?) == GNU_BUILD_ID && notes.get(12..12 + name_size) == Some(b"GNU\0") {
            return BuildId::new(id);
        }
        notes = notes.get(content.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_its_c_library_are_listed() {
        let modules = modules();
        let here = this_program_and_its_c_library_are_listed as *const () as u64;
        let (_, program) = modules.find(here).unwrap();
        assert_eq!(program.path, std::env::current_exe().unwrap());
        let strlen = (libc::strlen as unsafe extern "C" fn(*const i8) -> usize) as *const () as u64;
        let (_, library) = modules.find(strlen).unwrap();
        assert!(library.name().starts_with("libc.so") || library.name().starts_with("libc-"), "{library:?}");
        assert_eq!(library.build_id.as_ref().map(|id| id.as_bytes().len()), Some(20));
        assert!(modules.as_slice().iter().any(|module| module.name() == "[vdso]"), "{modules:?}");
    }

    #[test]
    fn a_list_that_another_thread_keeps_locked_does_not_block() {
        unsafe extern "C" fn query_in_other_thread(_: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || sender.send(modules()));
            // SAFETY: the variable below.
            unsafe { *found.cast() = receiver.recv_timeout(core::time::Duration::from_secs(60)).ok() };
            1
        }
        crate::platform::unload_watch::kind();
        let known = modules();
        let mut found: Option<ModuleList> = None;
        // SAFETY: the callback has the right signature, and `found` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(query_in_other_thread), (&raw mut found).cast()) };
        assert_eq!(found.map(|found| found.as_slice().len()), Some(known.as_slice().len()));
    }

    #[test]
    fn malformed_notes_have_no_build_id() {
        let note = [4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0, 1, 2, 3, 0];
        assert_eq!(build_id_in(&note), BuildId::new(&[1, 2, 3]));
        for length in 0..19 {
            assert_eq!(build_id_in(&note[..length]), None);
        }
        assert_eq!(build_id_in(&[0xff; 64]), None);
    }
}
