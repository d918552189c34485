//! Finds the originals, and decides which functions are hooked.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

use crate::platform::interpose::HookFunction;

/// A function that exists, and what its slots may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct HookedFunction {
    /// Includes the zero at its end.
    pub(super) name: &'static [u8],
    pub(super) hook: u64,
    /// The address that the loader writes to a slot.
    pub(super) definition: u64,
    /// The address that a program which is not position-independent lends to the function: a stub that calls through
    /// the program's slot. 0: there is none.
    pub(super) stub: u64,
    /// Whether calls by the allocator itself are not the program's.
    pub(super) is_mapping: bool,
    /// Whether it allocates or frees blocks.
    pub(super) is_block: bool,
}

/// The functions to hook.
#[derive(Clone, Debug)]
pub(super) struct HookTable {
    functions: Vec<HookedFunction>,
    /// The beginnings of their names, each once: they exclude nearly all symbols of a large module.
    beginnings: Vec<[u8; 4]>,
    /// An address in the allocator's module, unless that is the C library.
    pub(super) allocator: u64,
    /// An address in this module.
    pub(super) own: u64,
    /// An address in the loader, which is never hooked.
    pub(super) loader: u64,
}

impl HookTable {
    /// Returns the function whose name is the first of these strings.
    pub(super) fn named(&self, strings: &[u8]) -> Option<&HookedFunction> {
        self.beginnings.contains(strings.first_chunk()?).then_some(())?;
        self.functions.iter().find(|function| strings.starts_with(function.name))
    }
}

/// Finds the originals, and stores their addresses in each function's `original`.
pub(super) fn find(functions: &[HookFunction], more: &[HookFunction]) -> HookTable {
    let malloc = lookup(c"malloc");
    let allocator = malloc.map_or(0, |malloc| malloc.definition);
    let c_library = lookup(c"gnu_get_libc_version").map_or(0, |found| found.definition);
    let is_c_librarys = module_of(allocator) == module_of(c_library);
    let of_memory = functions.iter().filter_map(|function| hooked_function(function, allocator, true));
    let of_loader = more.iter().filter_map(|function| hooked_function(function, allocator, false));
    let functions: Vec<HookedFunction> = of_memory.chain(of_loader).collect();
    let name_start = |function: &HookedFunction| function.name.first_chunk().copied();
    let mut beginnings: Vec<[u8; 4]> = functions.iter().filter_map(name_start).collect();
    beginnings.sort_unstable();
    beginnings.dedup();
    // SAFETY: dlsym with a literal name.
    let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) }.addr() as u64;
    let loader = if loader == 0 { loader_by_kernel() } else { loader };
    HookTable {
        functions,
        beginnings,
        allocator: if is_c_librarys { 0 } else { allocator },
        own: find as *const () as u64,
        loader,
    }
}

fn hooked_function(function: &HookFunction, allocator: u64, is_memory: bool) -> Option<HookedFunction> {
    let found = lookup(function.name)?;
    function.original.store(found.definition as usize, Ordering::Release);
    let name = function.name.to_bytes_with_nul();
    // The C++ library's operators call `malloc`, which records the block; an allocator's own do not.
    let is_operator = [b"_Zn".as_slice(), b"_Zd"].iter().any(|prefix| name.starts_with(prefix));
    if is_operator && module_of(found.definition) != module_of(allocator) {
        return None;
    }
    let is_mapping = [b"mmap\0".as_slice(), b"mmap64\0", b"munmap\0", b"mremap\0"].contains(&name);
    let (hook, is_block) = (function.hook as u64, is_memory && !is_mapping);
    Some(HookedFunction { name, hook, definition: found.definition, stub: found.stub, is_mapping, is_block })
}

#[derive(Clone, Copy)]
struct Definition {
    definition: u64,
    stub: u64,
}

fn lookup(name: &CStr) -> Option<Definition> {
    // SAFETY: dlsym with a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    if !is_stub(address) {
        return Some(Definition { definition: address.addr() as u64, stub: 0 });
    }
    let definition = definition_in_libraries(name)?;
    Some(Definition { definition, stub: address.addr() as u64 })
}

/// Returns whether this is an address that a program lends to a function which it does not define.
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

/// Returns the definition in the first library that has one, in load order: slots are bound in that order.
fn definition_in_libraries(name: &CStr) -> Option<u64> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `names` is what is passed below.
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
    // `dlsym` also searches a library's dependencies: these come in their own turn.
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

/// Keeps this module loaded forever: programs may have copied hooks.
pub(super) fn pin_this_module() {
    let Some(path) = path_of(find as *const c_void) else { return };
    // SAFETY: this module, by the loader's own name for it, is loaded already.
    unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
}
