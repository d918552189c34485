//! Where the originals are, and which functions are led at all.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

use crate::platform::interpose::Function;

/// A function that is there, and the slots that are its.
#[derive(Clone, Copy, Debug)]
pub(super) struct Led {
    /// With the zero at its end.
    pub(super) name: &'static [u8],
    pub(super) hook: u64,
    /// What the loader puts into a slot.
    pub(super) definition: u64,
    /// A program that is not position-independent may lend a function its own address: a stub that calls through the
    /// program's slot. 0: it does not.
    pub(super) stub: u64,
    /// Whether the allocator's own calls of it are not the program's.
    pub(super) is_mapping: bool,
    /// Whether it allocates or frees blocks.
    pub(super) is_block: bool,
}

/// What is to be led.
#[derive(Clone, Debug)]
pub(super) struct Definitions {
    led: Vec<Led>,
    /// How their names begin, each once: nearly all symbols of a large module are told apart by these.
    beginnings: Vec<[u8; 4]>,
    /// An address in the module that is the allocator, unless that is the C library.
    pub(super) allocator: u64,
    /// An address in this module.
    pub(super) own: u64,
    /// An address in the loader, which is left alone.
    pub(super) loader: u64,
}

impl Definitions {
    /// The function whose name is the first of these strings.
    pub(super) fn named(&self, strings: &[u8]) -> Option<&Led> {
        self.beginnings.contains(strings.first_chunk()?).then_some(())?;
        self.led.iter().find(|function| strings.starts_with(function.name))
    }
}

/// Finds the originals, and tells each function's `original`.
pub(super) fn find(functions: &[Function], more: &[Function]) -> Definitions {
    let malloc = lookup(c"malloc");
    let allocator = malloc.map_or(0, |malloc| malloc.definition);
    let c_library = lookup(c"gnu_get_libc_version").map_or(0, |found| found.definition);
    let is_c_librarys = module_of(allocator) == module_of(c_library);
    let of_memory = functions.iter().filter_map(|function| led(function, allocator, true));
    let of_loader = more.iter().filter_map(|function| led(function, allocator, false));
    let led: Vec<Led> = of_memory.chain(of_loader).collect();
    let mut beginnings: Vec<[u8; 4]> = led.iter().filter_map(|function| function.name.first_chunk().copied()).collect();
    beginnings.sort_unstable();
    beginnings.dedup();
    // SAFETY: dlsym with a literal name.
    let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) }.addr() as u64;
    let loader = if loader == 0 { loader_by_kernel() } else { loader };
    Definitions {
        led,
        beginnings,
        allocator: if is_c_librarys { 0 } else { allocator },
        own: find as *const () as u64,
        loader,
    }
}

fn led(function: &Function, allocator: u64, is_memory: bool) -> Option<Led> {
    let found = lookup(function.name)?;
    function.original.store(found.definition as usize, Ordering::Release);
    let name = function.name.to_bytes_with_nul();
    // The language's own operators call `malloc`, where they are counted; an allocator's do not.
    let is_operator = [b"_Zn".as_slice(), b"_Zd"].iter().any(|prefix| name.starts_with(prefix));
    if is_operator && module_of(found.definition) != module_of(allocator) {
        return None;
    }
    let is_mapping = [b"mmap\0".as_slice(), b"mmap64\0", b"munmap\0", b"mremap\0"].contains(&name);
    let (hook, is_block) = (function.hook as u64, is_memory && !is_mapping);
    Some(Led { name, hook, definition: found.definition, stub: found.stub, is_mapping, is_block })
}

#[derive(Clone, Copy)]
struct Found {
    definition: u64,
    stub: u64,
}

fn lookup(name: &CStr) -> Option<Found> {
    // SAFETY: dlsym with a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    if !is_stub(address) {
        return Some(Found { definition: address.addr() as u64, stub: 0 });
    }
    let definition = definition_in_libraries(name)?;
    Some(Found { definition, stub: address.addr() as u64 })
}

/// Whether it is the address that a program lends to a function which it does not define.
fn is_stub(address: *const c_void) -> bool {
    const RTLD_DL_SYMENT: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: c_int) -> c_int;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    let mut entry: *mut c_void = ptr::null_mut();
    // SAFETY: all pointers are to locals of the right types.
    let found = unsafe { dladdr1(address, info.as_mut_ptr(), &raw mut entry, RTLD_DL_SYMENT) };
    // SAFETY: on success `entry` points to the symbol table's entry, if there is one.
    found != 0 && !entry.is_null() && unsafe { (*entry.cast::<libc::Elf64_Sym>()).st_shndx } == 0
}

/// The first library that defines it, in the order in which they were loaded: that in which slots are bound.
fn definition_in_libraries(name: &CStr) -> Option<u64> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `names` is what is given below.
        let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<std::ffi::CString>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: a string that the loader keeps while the module is loaded.
            names.push(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
        }
        0
    }
    let mut names: Vec<std::ffi::CString> = Vec::new();
    // SAFETY: the callback fits and `names` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut names).cast()) };
    names.iter().filter(|library| !library.is_empty()).find_map(|library| definition_in(library, name))
}

fn definition_in(library: &CStr, name: &CStr) -> Option<u64> {
    // SAFETY: a library that is loaded already, by the loader's own name for it.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is open, the name is a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: the handle is open.
    unsafe { libc::dlclose(handle) };
    // A library's dependencies are searched, too: those come when it is their turn.
    let is_its_own = !address.is_null() && !is_stub(address) && path_of(address).is_some_and(|path| path == library);
    is_its_own.then(|| address.addr() as u64)
}

fn path_of<'a>(address: *const c_void) -> Option<&'a CStr> {
    let info = dladdr(address)?;
    // SAFETY: a string that the loader keeps while the module is loaded.
    (!info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) })
}

/// Returns the path of the module that holds an address.
pub(super) fn module_path(address: u64) -> Option<String> {
    let path = path_of(ptr::without_provenance(address as usize))?;
    Some(path.to_string_lossy().into_owned())
}

fn dladdr(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is only compared; `info` is filled in on success.
    (unsafe { libc::dladdr(address, info.as_mut_ptr()) } != 0).then(|| unsafe { info.assume_init() })
}

fn module_of(address: u64) -> Option<usize> {
    dladdr(ptr::without_provenance(address as usize)).map(|info| info.dli_fbase.addr())
}

fn loader_by_kernel() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_BASE) }
}

/// Keeps this module loaded for ever: hooks may have been copied.
pub(super) fn pin_this_module() {
    let Some(path) = path_of(find as *const c_void) else { return };
    // SAFETY: this module, by the loader's own name for it, is loaded already.
    unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
}
