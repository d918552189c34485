//! The two locks of the dynamic loader, for code that must know their owners, or must not wait for them forever.

/// The fields of a `pthread_mutex_t` that its ABI fixes.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct MutexParts {
    /// Whether it is locked, and whether threads wait for it.
    pub lock: i32,
    /// Number of times that its owner has locked it.
    pub count: u32,
    /// The id of the thread that holds it; 0: none.
    pub owner: i32,
    /// Number of threads that use it.
    pub users: u32,
    /// Its type.
    pub kind: i32,
    /// Internal to the C library.
    pub spins: i32,
}

/// The addresses of the locks: mutexes of the loader, which exist forever.
#[derive(Clone, Copy, Debug)]
pub struct LoaderLocks {
    /// Held while modules are loaded and unloaded.
    pub load: *mut MutexParts,
    /// Held while the list of modules changes, or is visited by `dl_iterate_phdr`.
    pub list: *mut MutexParts,
}

// SAFETY: the pointers are to data of the loader, which exists forever and is shared by all threads.
unsafe impl Send for LoaderLocks {}
// SAFETY: the pointers are to data of the loader, which exists forever and is shared by all threads.
unsafe impl Sync for LoaderLocks {}
