//! Hooks of the loader's own functions.
//!
//! Each makes way for the original by a jump: `dlopen` looks for libraries by its caller's search paths, and gives them to what
//! it loads; `dlsym(RTLD_NEXT)` searches after its caller. So what they do is what they do without us. A library's functions
//! are found by `dlsym`: there what was loaded before is led to the hooks, before anything of it can be called.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::platform::interpose::{Function, arch, refresh};

static DLOPEN: AtomicUsize = AtomicUsize::new(0);
static DLMOPEN: AtomicUsize = AtomicUsize::new(0);
static DLSYM: AtomicUsize = AtomicUsize::new(0);
static DLVSYM: AtomicUsize = AtomicUsize::new(0);

/// Whether a library was ever loaded that prefers its own dependencies' symbols. What a slot that is not yet bound would be
/// bound to is not known then.
static ANY_DEEP_BINDING: AtomicBool = AtomicBool::new(false);

pub(super) fn any_deep_binding() -> bool {
    ANY_DEEP_BINDING.load(Ordering::Relaxed)
}

pub(super) fn functions() -> [Function; 4] {
    [
        Function { name: c"dlopen", hook: arch::stackweave_memory_dlopen as *const () as usize, original: &DLOPEN },
        Function { name: c"dlmopen", hook: arch::stackweave_memory_dlmopen as *const () as usize, original: &DLMOPEN },
        Function { name: c"dlsym", hook: arch::stackweave_memory_dlsym as *const () as usize, original: &DLSYM },
        Function { name: c"dlvsym", hook: arch::stackweave_memory_dlvsym as *const () as usize, original: &DLVSYM },
    ]
}

fn note_mode(mode: c_int) {
    if mode & libc::RTLD_DEEPBIND != 0 {
        ANY_DEEP_BINDING.store(true, Ordering::Relaxed);
    }
}

pub(super) extern "C" fn choose_dlopen(_name: *const c_char, mode: c_int) -> usize {
    note_mode(mode);
    DLOPEN.load(Ordering::Relaxed)
}

pub(super) extern "C" fn choose_dlmopen(_space: c_long, _name: *const c_char, mode: c_int) -> usize {
    note_mode(mode);
    DLMOPEN.load(Ordering::Relaxed)
}

pub(super) extern "C" fn choose_dlsym(_handle: *mut c_void, _name: *const c_char) -> usize {
    refresh::refresh_now();
    DLSYM.load(Ordering::Relaxed)
}

pub(super) extern "C" fn choose_dlvsym(_handle: *mut c_void, _name: *const c_char, _version: *const c_char) -> usize {
    refresh::refresh_now();
    DLVSYM.load(Ordering::Relaxed)
}
