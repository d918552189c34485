//! The interpreter's functions that get and set allocators, and their structs: the same from 3.10 to 3.15.

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

use super::Domain;
use super::error::AllocatorError;
use crate::interpreter::{first_of, is_free_threaded};
use crate::symbols::SymbolLookup;

pub(super) type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub(super) type Calloc = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
pub(super) type Realloc = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void;
pub(super) type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);
pub(super) type FreeArena = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);

/// `PyMemAllocatorEx`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct PyMemAllocatorEx {
    pub(super) context: *mut c_void,
    pub(super) malloc: Option<Malloc>,
    pub(super) calloc: Option<Calloc>,
    pub(super) realloc: Option<Realloc>,
    pub(super) free: Option<Free>,
}

impl PyMemAllocatorEx {
    const NONE: Self = Self { context: core::ptr::null_mut(), malloc: None, calloc: None, realloc: None, free: None };

    fn words(&self) -> [usize; 5] {
        [
            self.context.addr(),
            self.malloc.map_or(0, |function| function as usize),
            self.calloc.map_or(0, |function| function as usize),
            self.realloc.map_or(0, |function| function as usize),
            self.free.map_or(0, |function| function as usize),
        ]
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

/// `PyObjectArenaAllocator`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ArenaAllocator {
    pub(super) context: *mut c_void,
    pub(super) allocate: Option<Malloc>,
    pub(super) free: Option<FreeArena>,
}

impl ArenaAllocator {
    const NONE: Self = Self { context: core::ptr::null_mut(), allocate: None, free: None };

    fn words(&self) -> [usize; 3] {
        [
            self.context.addr(),
            self.allocate.map_or(0, |function| function as usize),
            self.free.map_or(0, |function| function as usize),
        ]
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

/// The functions by which a build without the GIL stops its other threads.
#[derive(Clone, Copy, Debug)]
struct StopTheWorld {
    this_interpreter: unsafe extern "C" fn() -> *mut c_void,
    stop: unsafe extern "C" fn(*mut c_void),
    start: unsafe extern "C" fn(*mut c_void),
}

#[derive(Debug)]
pub(super) struct AllocatorApi {
    get: unsafe extern "C" fn(c_int, *mut PyMemAllocatorEx),
    set: unsafe extern "C" fn(c_int, *mut PyMemAllocatorEx),
    get_arena: unsafe extern "C" fn(*mut ArenaAllocator),
    set_arena: unsafe extern "C" fn(*mut ArenaAllocator),
    malloc: [unsafe extern "C" fn(usize) -> *mut c_void; 2],
    free: [unsafe extern "C" fn(*mut c_void); 2],
    holds_gil: unsafe extern "C" fn() -> c_int,
    is_initialized: unsafe extern "C" fn() -> c_int,
    world: Option<StopTheWorld>,
}

impl AllocatorApi {
    pub(super) fn find() -> Result<&'static Self, AllocatorError> {
        static API: OnceLock<AllocatorApi> = OnceLock::new();
        if let Some(api) = API.get() {
            return Ok(api);
        }
        let api = Self::look_up()?;
        Ok(API.get_or_init(|| api))
    }

    fn look_up() -> Result<Self, AllocatorError> {
        let symbols = SymbolLookup::find().ok_or(crate::Unavailable::NoInterpreter)?;
        // SAFETY: the signatures are those of the headers of 3.10 to 3.15.
        unsafe {
            let world = if is_free_threaded(symbols)? { Some(StopTheWorld::look_up(symbols)?) } else { None };
            Ok(Self {
                get: first_of(symbols, &[c"PyMem_GetAllocator"])?,
                set: first_of(symbols, &[c"PyMem_SetAllocator"])?,
                get_arena: first_of(symbols, &[c"PyObject_GetArenaAllocator"])?,
                set_arena: first_of(symbols, &[c"PyObject_SetArenaAllocator"])?,
                malloc: [first_of(symbols, &[c"PyMem_Malloc"])?, first_of(symbols, &[c"PyObject_Malloc"])?],
                free: [first_of(symbols, &[c"PyMem_Free"])?, first_of(symbols, &[c"PyObject_Free"])?],
                holds_gil: first_of(symbols, &[c"PyGILState_Check"])?,
                is_initialized: first_of(symbols, &[c"Py_IsInitialized"])?,
                world,
            })
        }
    }

    pub(super) fn holds_gil(&self) -> bool {
        // SAFETY: both functions only read words, and may be called by any thread.
        unsafe { (self.is_initialized)() != 0 && (self.holds_gil)() != 0 }
    }

    pub(super) fn has_no_gil(&self) -> bool {
        self.world.is_some()
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn get(&self, domain: Domain) -> PyMemAllocatorEx {
        let mut allocator = PyMemAllocatorEx::NONE;
        // SAFETY: the call writes the struct.
        unsafe { (self.get)(domain as c_int, &raw mut allocator) };
        allocator
    }

    /// # Safety
    /// As for [`AllocatorApi::get`]; and the allocator's functions serve every block of the domain, forever.
    pub(super) unsafe fn set(&self, domain: Domain, mut allocator: PyMemAllocatorEx) {
        // SAFETY: the call copies the struct; passed on to the caller.
        unsafe { (self.set)(domain as c_int, &raw mut allocator) };
    }

    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn get_arena(&self) -> ArenaAllocator {
        let mut allocator = ArenaAllocator::NONE;
        // SAFETY: the call writes the struct.
        unsafe { (self.get_arena)(&raw mut allocator) };
        allocator
    }

    /// # Safety
    /// As for [`AllocatorApi::set`], for arenas.
    pub(super) unsafe fn set_arena(&self, mut allocator: ArenaAllocator) {
        // SAFETY: the call copies the struct; passed on to the caller.
        unsafe { (self.set_arena)(&raw mut allocator) };
    }

    /// Allocates a block of the domain, and frees it.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn allocate_and_free(&self, domain: Domain) {
        let number = domain as usize - 1;
        // SAFETY: passed on to the caller; null may be freed, too.
        unsafe { (self.free[number])((self.malloc[number])(1)) };
    }

    /// Runs `body` while no other thread calls an allocator: it could combine the function of one allocator with the
    /// context of another.
    ///
    /// # Safety
    /// The GIL is held, or in a build without it the thread is attached.
    pub(super) unsafe fn alone<R>(&self, body: impl FnOnce() -> R) -> R {
        let Some(world) = &self.world else { return body() };
        // SAFETY: the thread has an interpreter, whose threads continue after `body`, which neither waits nor panics.
        unsafe {
            let interpreter = (world.this_interpreter)();
            (world.stop)(interpreter);
            let result = body();
            (world.start)(interpreter);
            result
        }
    }
}

impl StopTheWorld {
    /// # Safety
    /// The symbols are those of an interpreter.
    unsafe fn look_up(symbols: SymbolLookup) -> Result<Self, AllocatorError> {
        // SAFETY: the signatures are those of the headers of 3.14 and 3.15.
        unsafe {
            Ok(Self {
                this_interpreter: first_of(symbols, &[c"PyInterpreterState_Get"])?,
                stop: first_of(symbols, &[c"_PyEval_StopTheWorld"]).map_err(|_| AllocatorError::ThreadsRun)?,
                start: first_of(symbols, &[c"_PyEval_StartTheWorld"]).map_err(|_| AllocatorError::ThreadsRun)?,
            })
        }
    }
}
