//! Hooks of the loader's own functions.
//!
//! Each jumps to its original, because these functions use their caller: `dlopen` searches its caller's search paths,
//! also for what it loads in turn; `dlsym(RTLD_NEXT)` searches after its caller. They work as they do without us. A
//! program calls functions of a new library through `dlsym`: its hook first hooks what was loaded before, so that
//! nothing of it is called earlier.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::platform::interpose::{HookFunction, arch, refresh};

static DLOPEN: AtomicUsize = AtomicUsize::new(0);
static DLMOPEN: AtomicUsize = AtomicUsize::new(0);
static DLSYM: AtomicUsize = AtomicUsize::new(0);
static DLVSYM: AtomicUsize = AtomicUsize::new(0);

/// Whether a library was ever loaded that prefers its own dependencies' symbols. Then the binding of an unbound slot
/// can't be predicted.
static ANY_DEEP_BINDING: AtomicBool = AtomicBool::new(false);

pub(super) fn any_deep_binding() -> bool {
    ANY_DEEP_BINDING.load(Ordering::Relaxed)
}

pub(super) fn functions() -> [HookFunction; 4] {
    [
        HookFunction { name: c"dlopen", hook: arch::stackweave_memory_dlopen as *const () as usize, original: &DLOPEN },
        HookFunction {
            name: c"dlmopen",
            hook: arch::stackweave_memory_dlmopen as *const () as usize,
            original: &DLMOPEN,
        },
        HookFunction { name: c"dlsym", hook: arch::stackweave_memory_dlsym as *const () as usize, original: &DLSYM },
        HookFunction { name: c"dlvsym", hook: arch::stackweave_memory_dlvsym as *const () as usize, original: &DLVSYM },
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
