//! The dynamic loader: finds the module that contains an address.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::platform::cfi::{Table, TableSection};
use crate::platform::loaded_objects::visit_loaded_objects;

/// A loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedObject {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its unwind entries, if it has any.
    pub(crate) table: Option<Table<'static>>,
}

/// `_dl_find_object`, if the C library has it.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks up `_dl_find_object`. May be called repeatedly and concurrently: every call finds the same.
pub(crate) fn prepare() {
    if cfg!(target_env = "gnu") && !cfg!(target_feature = "crt-static") {
        // SAFETY: dlsym with a literal name.
        let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        FIND_OBJECT.store(find, Ordering::Relaxed);
    }
}

/// Returns the module that holds `pc`.
pub(crate) fn find_module(pc: u64) -> Option<LoadedObject> {
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    if find.is_null() {
        return find_by_iteration(pc);
    }
    // SAFETY: the symbol has this type in every C library that defines it.
    let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(find) };
    let mut object = MaybeUninit::<DlFindObject>::uninit();
    // SAFETY: the address is only compared; `object` is large enough for the result.
    if unsafe { find(ptr::without_provenance_mut(pc as usize), object.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: initialised on success.
    let object = unsafe { object.assume_init() };
    let (start, end) = (object.start.addr() as u64, object.end.addr() as u64);
    let module = LoadedObject { start, end, table: None };
    if object.unwind_header.is_null() {
        return Some(module);
    }
    // SAFETY: the module is loaded, its first page contains its program headers if it begins with an ELF header,
    // and the link map's first field is the load bias.
    let segments = unsafe { Segments::of_image(object.start, *object.link_map) };
    match segments {
        Some(segments) => Some(LoadedObject { table: segments.table(object.unwind_header.addr() as u64), ..module }),
        None => find_by_iteration(pc),
    }
}

/// `_dl_find_object` of glibc 2.35 and later: lock-free and async-signal-safe.
type FindObject = unsafe extern "C" fn(*mut c_void, *mut DlFindObject) -> c_int;

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct DlFindObject {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    link_map: *const u64,
    unwind_header: *mut c_void,
    reserved: [u64; 7],
}

/// A module's program headers.
struct Segments {
    headers: *const libc::Elf64_Phdr,
    count: usize,
    bias: u64,
}

impl Segments {
    /// Returns the program headers in the first page of a loaded image.
    ///
    /// # Safety
    /// `image` is the start of a loaded module whose first page is readable.
    unsafe fn of_image(image: *const c_void, bias: u64) -> Option<Self> {
        const FIRST_PAGE: u64 = 4096;
        // SAFETY: the header is in the first page.
        let header = unsafe { &*image.cast::<libc::Elf64_Ehdr>() };
        let size = u64::from(header.e_phnum) * size_of::<libc::Elf64_Phdr>() as u64;
        let fits = header.e_phoff.checked_add(size).is_some_and(|end| end <= FIRST_PAGE);
        if header.e_ident[..4] != *b"\x7fELF" || !fits || header.e_phoff % 8 != 0 {
            return None;
        }
        // SAFETY: still in the first page.
        let headers = unsafe { image.byte_add(header.e_phoff as usize) }.cast();
        Some(Self { headers, count: usize::from(header.e_phnum), bias })
    }

    fn iter(&self) -> impl Iterator<Item = &libc::Elf64_Phdr> {
        // SAFETY: the constructor guarantees pointer and count, and the module is loaded.
        unsafe { core::slice::from_raw_parts(self.headers, self.count) }.iter()
    }

    /// Returns the address range of the loadable segment that contains `address`.
    fn holding(&self, address: u64) -> Option<(u64, u64)> {
        self.iter().filter(|header| header.p_type == libc::PT_LOAD).find_map(|header| {
            let start = self.bias.wrapping_add(header.p_vaddr);
            (address.wrapping_sub(start) < header.p_memsz).then_some((start, header.p_filesz))
        })
    }

    fn table(&self, unwind_header: u64) -> Option<Table<'static>> {
        let (address, length) = self.holding(unwind_header)?;
        let pointer = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the file's part of a loaded segment is mapped and readable while the module is loaded; the table
        // is dropped when any module is unloaded.
        let bytes = unsafe { core::slice::from_raw_parts(pointer, length as usize) };
        Table::from_header(TableSection { bytes, address }, unwind_header).ok()
    }
}

/// Finds the module in C libraries without `_dl_find_object`. Takes the loader's lock.
#[cold]
fn find_by_iteration(pc: u64) -> Option<LoadedObject> {
    struct Wanted {
        pc: u64,
        module: Option<LoadedObject>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, size: usize, wanted: *mut c_void) -> c_int {
        debug_assert!(size >= offset_of!(libc::dl_phdr_info, dlpi_adds));
        // SAFETY: the loader passes valid data, and `wanted` is the variable below.
        let (info, wanted) = unsafe { (&*info, &mut *wanted.cast::<Wanted>()) };
        let segments = Segments { headers: info.dlpi_phdr, count: usize::from(info.dlpi_phnum), bias: info.dlpi_addr };
        if segments.holding(wanted.pc).is_none() {
            return 0;
        }
        let loads = || segments.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loads().map(|header| segments.bias.wrapping_add(header.p_vaddr)).min();
        let end = loads().map(|header| segments.bias.wrapping_add(header.p_vaddr + header.p_memsz)).max();
        let header = segments.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
        let table = header.and_then(|header| segments.table(segments.bias.wrapping_add(header.p_vaddr)));
        wanted.module = start.zip(end).map(|(start, end)| LoadedObject { start, end, table });
        1
    }
    let mut wanted = Wanted { pc, module: None };
    // SAFETY: the callback has the right signature, and `wanted` outlives the call.
    let is_answered = unsafe { visit_loaded_objects(visit, (&raw mut wanted).cast()) };
    wanted.module.filter(|_| is_answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_of_a_function() -> u64 {
        (libc::strlen as unsafe extern "C" fn(*const i8) -> usize) as *const c_void as u64
    }

    #[test]
    fn both_functions_find_the_same_module() {
        prepare();
        for pc in [address_of_a_function(), find_module as *const c_void as u64] {
            let (fast, slow) = (find_module(pc).unwrap(), find_by_iteration(pc).unwrap());
            assert!(fast.start <= slow.start && fast.end >= slow.end, "{fast:x?} {slow:x?}");
            assert!(fast.table.is_some());
            assert_eq!(fast.table.map(|table| table.section.address), slow.table.map(|table| table.section.address));
        }
        assert!(find_module(0x1000).is_none());
        assert!(find_by_iteration(0x1000).is_none());
    }
}
