//! nongnu libunwind's `unw_backtrace`, which is its fast path. It is loaded at run time.

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::OnceLock;

use super::{CaptureFn, Unwinder, shared_library};

pub(crate) const NAME: &str = "libunwind";

type UnwBacktrace = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;

static ENTRY: OnceLock<UnwBacktrace> = OnceLock::new();

pub(super) fn load() -> Unwinder {
    let symbol = shared_library::open(c"libunwind.so.8").and_then(|library| library.symbol(c"unw_backtrace"));
    let install = |symbol: *const c_void| {
        // SAFETY: the symbol is libunwind's function of this name, which has this signature.
        ENTRY.get_or_init(|| unsafe { mem::transmute::<*const c_void, UnwBacktrace>(symbol) });
        capture as CaptureFn
    };
    Unwinder {
        name: NAME,
        version,
        capture: symbol.map(install).map_err(|_| "not installed".to_owned()),
        needs_frame_pointers: false,
        remembers_addresses: true,
    }
}

fn version() -> String {
    let file = ENTRY.get().map(|&entry| shared_library::describe(entry as *const c_void, "libunwind8"));
    format!("{}, unw_backtrace", file.unwrap_or_default())
}

unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let Some(unw_backtrace) = ENTRY.get() else { return 0 };
    let size = c_int::try_from(max).unwrap_or(c_int::MAX);
    // SAFETY: the caller passes `max` words, and libunwind writes at most `size` of them.
    let count = unsafe { unw_backtrace(buffer, size) };
    usize::try_from(count).unwrap_or(0)
}
