//! The two locks of the dynamic loader, for those who must know who holds them, or must not wait for them for ever.

/// The parts of a `pthread_mutex_t` that its ABI fixes.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct MutexParts {
    /// Whether it is locked, and waited for.
    pub lock: i32,
    /// How often its owner has locked it.
    pub count: u32,
    /// The thread that has it, by its number in the kernel; 0: none.
    pub owner: i32,
    /// How many threads use it.
    pub users: u32,
    /// Its type.
    pub kind: i32,
    /// The C library's own.
    pub spins: i32,
}

/// Where the locks are: mutexes of the loader, which never go away.
#[derive(Clone, Copy, Debug)]
pub struct LoaderLocks {
    /// Held while modules are loaded and unloaded.
    pub load: *mut MutexParts,
    /// Held while the list of modules changes, or is visited by `dl_iterate_phdr`.
    pub list: *mut MutexParts,
}

// SAFETY: the pointers are to data of the loader, which never goes away and is for all threads.
unsafe impl Send for LoaderLocks {}
// SAFETY: as above.
unsafe impl Sync for LoaderLocks {}
