//! The dynamic loader: which module holds an address, and whether any has been unloaded.
//!
//! A rule belongs to the code it was read for. When a library is unloaded and something else is mapped
//! in its place, its rules must never be used again, and a capture can't afford to ask the loader (22
//! to 27 ns, and a lock). glibc keeps two counters, of objects ever loaded and of objects loaded now;
//! their difference grows with every unload, and before any code of a later library can run, since both
//! change under the loader's lock. `dl_iterate_phdr` reports both; they live in `_rtld_global`, where
//! [`find_counters`] looks for them once. A capture then reads two words.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::platform::cfi::{Section, Table};
use crate::stats::UnloadWatch;

/// A loaded object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its unwind entries, if it has any.
    pub(crate) table: Option<Table<'static>>,
}

/// The counters' places, copied to each thread's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unloads {
    loads: *const u64,
    loaded: *const u32,
}

static LOADS: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());
static LOADED: AtomicPtr<u32> = AtomicPtr::new(ptr::null_mut());
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static WATCH: AtomicU8 = AtomicU8::new(0);

static ZERO_LOADS: u64 = 0;
static ZERO_LOADED: u32 = 0;

const IS_GLIBC: bool = cfg!(target_env = "gnu");
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// Looks the loader up. May be called many times, by many threads at once: each finds the same.
pub(crate) fn prepare() -> Unloads {
    if WATCH.load(Ordering::Acquire) == 0 {
        let watch = if IS_GLIBC && !IS_STATIC { prepare_glibc() } else { UnloadWatch::NeverUnloads };
        WATCH.store(1 + watch as u8, Ordering::Release);
    }
    match unload_watch() {
        UnloadWatch::Counters => {
            Unloads { loads: LOADS.load(Ordering::Relaxed), loaded: LOADED.load(Ordering::Relaxed) }
        }
        UnloadWatch::AskLoader => Unloads { loads: ptr::null(), loaded: ptr::null() },
        UnloadWatch::NeverUnloads => Unloads { loads: &raw const ZERO_LOADS, loaded: &raw const ZERO_LOADED },
    }
}

/// How unloads are noticed in this process.
pub(crate) fn unload_watch() -> UnloadWatch {
    match WATCH.load(Ordering::Acquire) {
        1 => UnloadWatch::Counters,
        2 => UnloadWatch::AskLoader,
        _ => UnloadWatch::NeverUnloads,
    }
}

fn prepare_glibc() -> UnloadWatch {
    // SAFETY: dlsym with a literal name.
    FIND_OBJECT.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Ordering::Relaxed);
    match find_counters() {
        Some((loads, loaded)) => {
            LOADS.store(loads.cast_mut(), Ordering::Relaxed);
            LOADED.store(loaded.cast_mut(), Ordering::Relaxed);
            UnloadWatch::Counters
        }
        None => UnloadWatch::AskLoader,
    }
}

impl Unloads {
    /// The number of unloads so far.
    #[inline(always)]
    pub(crate) fn count(self) -> u64 {
        if self.loads.is_null() {
            return ask_loader();
        }
        // SAFETY: both point into the loader's own data, or to constants, and never go away. Volatile
        // reads, since the loader changes them; each is one aligned word, and x86-64 shows stores of
        // another thread in order.
        unsafe { self.loads.read_volatile().wrapping_sub(u64::from(self.loaded.read_volatile())) }
    }
}

#[cold]
#[inline(never)]
fn ask_loader() -> u64 {
    unsafe extern "C" fn read(info: *mut libc::dl_phdr_info, _: usize, unloads: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `unloads` is what is given below.
        unsafe { *unloads.cast::<u64>() = (*info).dlpi_subs };
        1
    }
    let mut unloads = 0u64;
    // SAFETY: the callback fits and `unloads` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut unloads).cast()) };
    unloads
}

/// What `find_counters` searches, and what it found.
struct Search {
    words: *const u64,
    count: usize,
    found: Option<(*const u64, *const u32)>,
}

/// Finds the loader's counters in `_rtld_global`.
///
/// The struct begins with the first namespace: a pointer to its first object, then the number of
/// objects loaded. The count of loads comes after the loader's recursive locks (the last one directly
/// before it), and must equal what the loader reports. Both are compared inside a `dl_iterate_phdr`
/// callback, which holds the lock under which they change. Exactly one place may fit.
fn find_counters() -> Option<(*const u64, *const u32)> {
    // SAFETY: dlsym with a literal name.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) };
    if global.is_null() {
        return None;
    }
    let mut search = Search { words: global.cast(), count: symbol_size(global)? / 8, found: None };
    // SAFETY: the callback fits and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(match_counters), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn match_counters(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    /// A `pthread_mutex_t` directly before the counter: 40 bytes, its kind in the fifth 32-bit word.
    const LOCK_WORDS: usize = size_of::<libc::pthread_mutex_t>() / 8;
    // SAFETY: `search` is what `find_counters` passed; the loader's info is valid.
    let (search, info) = unsafe { (&mut *search.cast::<Search>(), &*info) };
    // SAFETY: `words` and `count` span the symbol `_rtld_global`.
    let words = unsafe { core::slice::from_raw_parts(search.words, search.count) };
    let loaded = info.dlpi_adds.wrapping_sub(info.dlpi_subs);
    if words.len() < 2 || u64::from(words[1] as u32) != loaded {
        return 1;
    }
    let follows_recursive_lock = |at: usize| words[at - LOCK_WORDS + 2] as u32 == libc::PTHREAD_MUTEX_RECURSIVE as u32;
    let mut matches =
        (2 + LOCK_WORDS..words.len()).filter(|at| words[*at] == info.dlpi_adds && follows_recursive_lock(*at));
    if let (Some(at), None) = (matches.next(), matches.next()) {
        search.found = Some((&raw const words[at], (&raw const words[1]).cast()));
    }
    1
}

fn symbol_size(symbol: *const c_void) -> Option<usize> {
    const RTLD_DL_SYMENT: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: c_int) -> c_int;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    let mut entry: *mut c_void = ptr::null_mut();
    // SAFETY: all pointers are to locals of the right types.
    let found = unsafe { dladdr1(symbol, info.as_mut_ptr(), &raw mut entry, RTLD_DL_SYMENT) };
    if found == 0 || entry.is_null() {
        return None;
    }
    // SAFETY: on success `entry` points to the symbol table's entry.
    Some(unsafe { (*entry.cast::<libc::Elf64_Sym>()).st_size } as usize)
}

/// The module that holds `pc`.
pub(crate) fn find_module(pc: u64) -> Option<Module> {
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    if find.is_null() {
        return find_by_iteration(pc);
    }
    // SAFETY: the symbol has this type in every C library that has it.
    let find = unsafe { core::mem::transmute::<*mut c_void, FindObject>(find) };
    let mut object = MaybeUninit::<Object>::uninit();
    // SAFETY: the address is only compared; `object` is large enough for the result.
    if unsafe { find(ptr::without_provenance_mut(pc as usize), object.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled in on success.
    let object = unsafe { object.assume_init() };
    let (start, end) = (object.start.addr() as u64, object.end.addr() as u64);
    let module = Module { start, end, table: None };
    if object.unwind_header.is_null() {
        return Some(module);
    }
    // SAFETY: the module is loaded, its first page holds its program headers if it begins with an ELF
    // header, and the link map's first field is the load bias.
    let segments = unsafe { Segments::of_image(object.start, *object.link_map) };
    match segments {
        Some(segments) => Some(Module { table: segments.table(object.unwind_header.addr() as u64), ..module }),
        None => find_by_iteration(pc),
    }
}

/// `_dl_find_object` of glibc 2.35 and later: lock-free and async-signal-safe.
type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

/// glibc's `struct dl_find_object`.
#[repr(C)]
struct Object {
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
    /// The program headers in the first page of a loaded image.
    ///
    /// # Safety
    /// `image` is the start of a loaded module whose first page is readable.
    unsafe fn of_image(image: *const c_void, bias: u64) -> Option<Self> {
        const FIRST_PAGE: u64 = 4096;
        // SAFETY: the header lies in the first page.
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
        // SAFETY: the constructor vouches for pointer and count, and the module is loaded.
        unsafe { core::slice::from_raw_parts(self.headers, self.count) }.iter()
    }

    /// The address range of the loadable segment that holds `address`.
    fn holding(&self, address: u64) -> Option<(u64, u64)> {
        self.iter().filter(|header| header.p_type == libc::PT_LOAD).find_map(|header| {
            let start = self.bias.wrapping_add(header.p_vaddr);
            (address.wrapping_sub(start) < header.p_memsz).then_some((start, header.p_filesz))
        })
    }

    fn table(&self, unwind_header: u64) -> Option<Table<'static>> {
        let (address, length) = self.holding(unwind_header)?;
        let pointer = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the file's part of a loaded segment is mapped and readable while the module stays
        // loaded; the table is dropped when any module is unloaded.
        let bytes = unsafe { core::slice::from_raw_parts(pointer, length as usize) };
        Table::from_header(Section { bytes, address }, unwind_header).ok()
    }
}

/// For C libraries without `_dl_find_object`. Takes the loader's lock.
#[cold]
fn find_by_iteration(pc: u64) -> Option<Module> {
    struct Wanted {
        pc: u64,
        module: Option<Module>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, size: usize, wanted: *mut c_void) -> c_int {
        debug_assert!(size >= offset_of!(libc::dl_phdr_info, dlpi_adds));
        // SAFETY: the loader passes valid data, and `wanted` is what is given below.
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
        wanted.module = start.zip(end).map(|(start, end)| Module { start, end, table });
        1
    }
    let mut wanted = Wanted { pc, module: None };
    // SAFETY: the callback fits and `wanted` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut wanted).cast()) };
    wanted.module
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_of_a_function() -> u64 {
        (libc::strlen as unsafe extern "C" fn(*const i8) -> usize) as *const c_void as u64
    }

    #[test]
    fn both_ways_find_the_same_module() {
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

    #[test]
    fn counters_follow_the_loader() {
        let unloads = prepare();
        assert_eq!(unload_watch(), UnloadWatch::Counters);
        let before = unloads.count();
        assert_eq!(before, ask_loader());
        // SAFETY: a library of the C library, loaded and unloaded.
        unsafe {
            let library = libc::dlopen(c"libnss_dns.so.2".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            assert_eq!((unloads.count(), ask_loader()), (before, before));
            libc::dlclose(library);
        }
        assert_eq!(unloads.count(), ask_loader());
    }
}
