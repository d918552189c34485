//! Detects the death of code objects: its address is removed from the table, because a later code object at that
//! address has another name.
//!
//! All code objects, of all interpreters and versions, die through `tp_dealloc` of their type. That pointer is replaced
//! by a function that removes the address and then calls the original. For the reasons see docs/decisions/003.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::code_table::{CODES, WatchedCodeIds};
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::ObjectPointer;
use crate::unavailable::Unavailable;
use crate::walk::CodeIds;

/// The handling of the death of code objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathWatch {
    /// Each death is detected.
    Watching,
    /// Deaths can't be detected here, so code objects that are seen with the GIL held are kept alive forever.
    Pinning,
}

impl DeathWatch {
    /// Returns the name that statistics use.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Watching => "watching",
            Self::Pinning => "pinning",
        }
    }
}

type Destructor = unsafe extern "C" fn(ObjectPointer);

/// `tp_dealloc` in `PyTypeObject`: after the object's header (reference count, type, size), the name and two sizes.
const DESTRUCTOR: u64 = 48;
const EVALUATION: c_int = 258;

/// The previous `tp_dealloc`. Set before [`on_death`] can be called.
static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// # Safety
/// The interpreter calls it, with a code object that has no references left.
unsafe extern "C" fn on_death(code: ObjectPointer) {
    CODES.remove(code as u64);
    let original = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: `install` stored the interpreter's own function, or that of other code that wrapped it and calls it.
    unsafe { core::mem::transmute::<*mut c_void, Destructor>(original)(code) }
}

/// Begins to watch, once and forever, and tests whether that works. Needs the GIL, and no exception set.
pub(crate) fn install(interpreter: &'static Interpreter) -> DeathWatch {
    static INSTALLED: Mutex<Option<DeathWatch>> = Mutex::new(None);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    *installed.get_or_insert_with(|| {
        stay_loaded();
        // SAFETY: the address is that of `PyCode_Type`, which is data that the interpreter itself writes to.
        unsafe { wrap_destructor(interpreter.code_type) };
        // SAFETY: the caller holds the GIL.
        let works = unsafe { detects_a_death(interpreter) };
        if works { DeathWatch::Watching } else { DeathWatch::Pinning }
    })
}

/// # Safety
/// `code_type` is the address of a `PyTypeObject`.
unsafe fn wrap_destructor(code_type: u64) {
    let address = (code_type + DESTRUCTOR) as usize as *mut *mut c_void;
    // SAFETY: an aligned pointer in a live type. Other code may wrap it at the same moment, in another interpreter.
    let destructor = unsafe { AtomicPtr::from_ptr(address) };
    let mut before = destructor.load(Ordering::Acquire);
    loop {
        ORIGINAL.store(before, Ordering::Release);
        match destructor.compare_exchange(before, on_death as *mut c_void, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => before = now,
        }
    }
}

/// Keeps this library loaded: the interpreter calls it from now on.
fn stay_loaded() {
    // SAFETY: the name that the loader returns is a C string that lives as long as the library; the library is loaded,
    // so opening it again runs nothing.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(on_death as *const c_void, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// Creates a code object, adds it to the table, drops it, and returns whether that was detected.
///
/// # Safety
/// The GIL is held.
unsafe fn detects_a_death(interpreter: &'static Interpreter) -> bool {
    let Ok(compiler) = CodeCompiler::look_up(interpreter) else { return false };
    // SAFETY: the functions get valid arguments; the code object is ours until it is dropped.
    unsafe {
        let code = (compiler.compile)(c"0".as_ptr(), c"<stackweave death watch>".as_ptr(), EVALUATION);
        if code.is_null() {
            (compiler.clear_error)();
            return false;
        }
        let address = code as u64;
        let is_known = WatchedCodeIds(interpreter).id_of(address).is_ok() && CODES.id_at(address).is_some();
        let deaths = CODES.deaths();
        (compiler.decrement)(code);
        let is_removed = CODES.id_at(address).is_none() && CODES.deaths() != deaths;
        if !is_removed {
            CODES.remove(address);
        }
        is_known && is_removed
    }
}

struct CodeCompiler {
    compile: unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> ObjectPointer,
    clear_error: unsafe extern "C" fn(),
    decrement: unsafe extern "C" fn(ObjectPointer),
}

impl CodeCompiler {
    fn look_up(interpreter: &Interpreter) -> Result<Self, Unavailable> {
        let symbols = interpreter.symbols;
        // SAFETY: the signatures are those of the documentation, the same in every version.
        unsafe {
            Ok(Self {
                compile: first_of(symbols, &[c"Py_CompileString"])?,
                clear_error: first_of(symbols, &[c"PyErr_Clear"])?,
                decrement: first_of(symbols, &[c"Py_DecRef"])?,
            })
        }
    }
}
