//! Detects whether any code for which rules were read has been unloaded.
//!
//! A rule belongs to the code for which it was read. When a library is unloaded and something else is mapped at
//! its addresses, its rules must never be used again, and a capture cannot query the loader each time (22 to 27
//! ns, and a lock). glibc counts all objects ever loaded and those loaded now, both under the lock that also
//! guards their mapping; so one of the counts has changed before code of a later library can run.
//! `dl_iterate_phdr` reports them; they are in `_rtld_global`, where [`find_counters`] searches for them once. A
//! capture then reads two words, and only when one has changed queries the loader whether something was unloaded
//! or only loaded. See `docs/decisions/001-unload-watch.md`.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::loader_locks::LoaderLocks;
use crate::platform::list_lock;
use crate::platform::loaded_objects::{visit_and_wait, visit_loaded_objects};
use crate::platform::registered_code;
use crate::stats::UnloadWatch;

/// The loads and unloads that a thread knows of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// The loader's counters; null when they were not found.
    loads: *const u64,
    loaded: *const u32,
    seen_loader: u64,
    seen_removals: u64,
    /// Unloads according to the loader.
    seen_unloads: u64,
}

static LOADS: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());
static LOADED: AtomicPtr<u32> = AtomicPtr::new(ptr::null_mut());
/// 0 until known, then 1 plus an [`UnloadWatch`].
static KIND: AtomicU8 = AtomicU8::new(0);

/// The value for an unknown number of unloads.
const UNKNOWN_UNLOADS: u64 = u64::MAX;

static NO_LOADS: u64 = 0;
static NONE_LOADED: u32 = 0;

/// Returns how unloads are detected in this process. Determines it in the first call; concurrent calls find the
/// same.
pub(crate) fn kind() -> UnloadWatch {
    let known = KIND.load(Ordering::Acquire);
    if known == 0 {
        let kind = find_kind();
        KIND.store(1 + kind as u8, Ordering::Release);
        return kind;
    }
    [UnloadWatch::Counters, UnloadWatch::QueryLoader, UnloadWatch::NeverUnloads][usize::from(known - 1) % 3]
}

/// Returns the counter of loads, if it was found.
pub(crate) fn loads_counter() -> Option<NonNull<u64>> {
    (kind() == UnloadWatch::Counters).then(|| NonNull::new(LOADS.load(Ordering::Relaxed))).flatten()
}

/// Returns the loader's locks, if they were found.
pub(crate) fn loader_locks() -> Option<LoaderLocks> {
    (kind() == UnloadWatch::Counters).then(list_lock::known).flatten()
}

fn find_kind() -> UnloadWatch {
    if !cfg!(target_env = "gnu") || cfg!(target_feature = "crt-static") {
        return UnloadWatch::NeverUnloads;
    }
    let Some((loads, loaded)) = find_counters() else { return UnloadWatch::QueryLoader };
    LOADS.store(loads.cast_mut(), Ordering::Relaxed);
    LOADED.store(loaded.cast_mut(), Ordering::Relaxed);
    list_lock::find(loads);
    UnloadWatch::Counters
}

impl Watch {
    /// Creates a watch that has seen everything up to now.
    pub(crate) fn new() -> Self {
        Self { seen_unloads: query_unloads(), ..Self::without_query() }
    }

    /// Creates a watch for a thread whose first capture may be in a signal handler: once [`kind`] is known, the
    /// loader is queried only if its counters were not found. The price is that the first load is treated as an
    /// unload.
    pub(crate) fn without_query() -> Self {
        let (loads, loaded) = match kind() {
            UnloadWatch::Counters => {
                (LOADS.load(Ordering::Relaxed).cast_const(), LOADED.load(Ordering::Relaxed).cast_const())
            }
            UnloadWatch::QueryLoader => (ptr::null(), ptr::null()),
            UnloadWatch::NeverUnloads => (&raw const NO_LOADS, &raw const NONE_LOADED),
        };
        let mut watch = Self { loads, loaded, seen_loader: 0, seen_removals: 0, seen_unloads: UNKNOWN_UNLOADS };
        watch.seen_loader = watch.loader();
        watch.seen_removals = registered_code::removals();
        watch
    }

    /// Returns whether nothing was loaded, unloaded or deregistered since the last check.
    #[inline(always)]
    pub(crate) fn is_unchanged(&self) -> bool {
        self.loader() == self.seen_loader && registered_code::removals() == self.seen_removals
    }

    /// Returns whether code was unloaded, after a change. In a signal handler, or while another thread waits for
    /// it, the loader is not queried: then the result is true.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_lost_code(&mut self, in_signal_handler: bool) -> bool {
        let (loader, removals) = (self.loader(), registered_code::removals());
        let unloads = if in_signal_handler { UNKNOWN_UNLOADS } else { query_unloads() };
        let is_lost = removals != self.seen_removals || unloads != self.seen_unloads || unloads == UNKNOWN_UNLOADS;
        (self.seen_loader, self.seen_removals, self.seen_unloads) = (loader, removals, unloads);
        is_lost
    }

    /// Returns both counters as one word, which changes with every load and unload.
    #[inline(always)]
    fn loader(&self) -> u64 {
        if self.loads.is_null() {
            return query_unloads();
        }
        // SAFETY: both point to the loader's own data, or to constants, and exist forever. Volatile reads, because
        // the loader changes them; each is one aligned word, and on x86-64 another thread's stores are seen in
        // order.
        unsafe { self.loads.read_volatile() << 32 | u64::from(self.loaded.read_volatile()) }
    }
}

/// Returns how many objects the loader has unloaded, in all namespaces; [`UNKNOWN_UNLOADS`] if it cannot be
/// queried now.
#[cold]
#[inline(never)]
fn query_unloads() -> u64 {
    unsafe extern "C" fn read(info: *mut libc::dl_phdr_info, _: usize, unloads: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `unloads` is the variable below.
        unsafe { *unloads.cast::<u64>() = (*info).dlpi_subs };
        1
    }
    let mut unloads = 0u64;
    // SAFETY: the callback has the right signature, and `unloads` outlives the call.
    let is_answered = unsafe { visit_loaded_objects(read, (&raw mut unloads).cast()) };
    if is_answered { unloads } else { UNKNOWN_UNLOADS }
}

/// The input and the result of `find_counters`.
struct CounterSearch {
    words: *const u64,
    count: usize,
    found: Option<(*const u64, *const u32)>,
}

/// Finds the loader's counters in `_rtld_global`.
///
/// The struct begins with the first namespace: a pointer to its first object, then the number of objects loaded.
/// The count of loads follows the loader's recursive locks (the last one directly precedes it), and must equal
/// what the loader reports. Both are compared inside a `dl_iterate_phdr` callback, which holds the lock under
/// which they change. Exactly one address may match.
fn find_counters() -> Option<(*const u64, *const u32)> {
    // SAFETY: dlsym with a literal name.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) };
    if global.is_null() {
        return None;
    }
    let mut search = CounterSearch { words: global.cast(), count: symbol_size(global)? / 8, found: None };
    // SAFETY: the callback has the right signature, and `search` outlives the call.
    unsafe { visit_and_wait(match_counters, (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn match_counters(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    /// A `pthread_mutex_t` directly precedes the counter: 40 bytes, its kind in the fifth 32-bit word.
    const LOCK_WORDS: usize = size_of::<libc::pthread_mutex_t>() / 8;
    // SAFETY: `find_counters` passes `search`; the loader's info is valid.
    let (search, info) = unsafe { (&mut *search.cast::<CounterSearch>(), &*info) };
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
    // SAFETY: all pointers are to local variables of the right types.
    let found = unsafe { dladdr1(symbol, info.as_mut_ptr(), &raw mut entry, RTLD_DL_SYMENT) };
    if found == 0 || entry.is_null() {
        return None;
    }
    // SAFETY: on success `entry` points to the symbol table's entry.
    Some(unsafe { (*entry.cast::<libc::Elf64_Sym>()).st_size } as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unloading_loses_code() {
        assert_eq!(kind(), UnloadWatch::Counters);
        let mut watch = Watch::new();
        // SAFETY: a small library without other users, loaded and unloaded.
        unsafe {
            let library = libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null());
            assert!(!watch.is_unchanged());
            // Other tests may load libraries at the same time.
            while !watch.is_unchanged() {
                assert!(!watch.has_lost_code(false), "only loaded");
            }
            libc::dlclose(library);
        }
        assert!(!watch.is_unchanged());
        assert!(watch.has_lost_code(false), "unloaded");
    }

    #[test]
    fn the_counter_of_loads_is_incremented_by_loads() {
        let counter = loads_counter().unwrap();
        // SAFETY: the loader's own word.
        let read = || unsafe { counter.as_ptr().read_volatile() };
        let before = read();
        // SAFETY: a small library without other users, loaded and unloaded.
        unsafe { libc::dlclose(libc::dlopen(c"libBrokenLocale.so.1".as_ptr(), libc::RTLD_NOW)) };
        assert!(read() > before);
    }

    #[test]
    fn a_watch_without_query_is_unchanged_and_treats_the_next_load_as_an_unload() {
        let mut watch = Watch::without_query();
        assert!(watch.has_lost_code(false));
        while !watch.is_unchanged() {
            watch.has_lost_code(false);
        }
        assert!(watch.is_unchanged());
    }

    #[test]
    fn a_signal_handler_assumes_an_unload() {
        let mut watch = Watch::new();
        assert!(watch.has_lost_code(true));
    }
}
