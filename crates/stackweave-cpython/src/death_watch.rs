//! When a code object dies, its address is forgotten: a code object that is made there later has another name.
//!
//! All code objects, of all interpreters and versions, die through `tp_dealloc` of their type. That pointer is
//! replaced by a function that forgets the address and then does what was to be done. Why this way:
//! docs/decisions/003.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::code_table::{CODES, Watched};
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::Object;
use crate::unavailable::Unavailable;
use crate::walk::CodeIds;

/// How the death of code objects is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathWatch {
    /// Each death is noticed.
    Watching,
    /// Deaths can't be noticed here, so code objects that are seen with the GIL held never die.
    Pinning,
}

impl DeathWatch {
    /// In a word or two.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Watching => "watching",
            Self::Pinning => "pinning",
        }
    }
}

type Destructor = unsafe extern "C" fn(Object);

/// `tp_dealloc` in `PyTypeObject`: after the object's header (reference count, type, size), the name and two sizes.
const DESTRUCTOR: u64 = 48;
const EVALUATION: c_int = 258;

/// What `tp_dealloc` was before. Set before anybody can call [`on_death`].
static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// # Safety
/// The interpreter calls it, with a code object that nobody refers to any more.
unsafe extern "C" fn on_death(code: Object) {
    CODES.forget(code as u64);
    let original = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: `install` put the interpreter's own function there, or that of someone who came before and calls it.
    unsafe { core::mem::transmute::<*mut c_void, Destructor>(original)(code) }
}

/// Begins to watch, once and for good, and tries whether it works. Needs the GIL, and no exception set.
pub(crate) fn install(interpreter: &'static Interpreter) -> DeathWatch {
    static INSTALLED: Mutex<Option<DeathWatch>> = Mutex::new(None);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    *installed.get_or_insert_with(|| {
        stay_loaded();
        // SAFETY: the address is that of `PyCode_Type`, which is data that the interpreter itself writes to.
        unsafe { wrap_destructor(interpreter.code_type) };
        // SAFETY: the caller holds the GIL.
        let works = unsafe { notices_a_death(interpreter) };
        if works { DeathWatch::Watching } else { DeathWatch::Pinning }
    })
}

/// # Safety
/// `code_type` is the address of a `PyTypeObject`.
unsafe fn wrap_destructor(code_type: u64) {
    let address = (code_type + DESTRUCTOR) as usize as *mut *mut c_void;
    // SAFETY: an aligned pointer in a live type. Others may wrap it at the same moment, in another interpreter.
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

/// The library that this code is in stays loaded: the interpreter calls into it from now on.
fn stay_loaded() {
    // SAFETY: the name that the loader gives is a C string that lives as long as the library; it is loaded, so that
    // opening it again runs nothing.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(on_death as *const c_void, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// Makes a code object, enters it in the table, drops it, and sees whether it is forgotten.
///
/// # Safety
/// The GIL is held.
unsafe fn notices_a_death(interpreter: &'static Interpreter) -> bool {
    let Ok(maker) = Maker::look_up(interpreter) else { return false };
    // SAFETY: the functions get what they ask for; the code object is ours until it is dropped.
    unsafe {
        let code = (maker.compile)(c"0".as_ptr(), c"<stackweave death watch>".as_ptr(), EVALUATION);
        if code.is_null() {
            (maker.clear_error)();
            return false;
        }
        let address = code as u64;
        let is_known = Watched(interpreter).id_of(address).is_ok() && CODES.id_at(address).is_some();
        let deaths = CODES.deaths();
        (maker.decrement)(code);
        let is_forgotten = CODES.id_at(address).is_none() && CODES.deaths() != deaths;
        if !is_forgotten {
            CODES.forget(address);
        }
        is_known && is_forgotten
    }
}

struct Maker {
    compile: unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> Object,
    clear_error: unsafe extern "C" fn(),
    decrement: unsafe extern "C" fn(Object),
}

impl Maker {
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
