//! Takes the GIL, for callers that don't know whether they hold it.

use core::ffi::{c_int, c_void};

use crate::interpreter::first_of;
use crate::symbols::SymbolLookup;
use crate::unavailable::Unavailable;

/// The reason why `with_gil` did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GilUnavailable {
    /// There is no interpreter, or it lacks a function.
    #[error("{0}")]
    Python(#[source] Unavailable),
    /// The interpreter is not initialised, or no longer.
    #[error("Python is not initialised")]
    NotInitialized,
    /// The interpreter is shutting down, and this thread does not hold the GIL.
    #[error("Python is shutting down")]
    Finalizing,
    /// A Python exception is propagating on this thread.
    #[error("a Python exception is set")]
    ExceptionSet,
}

/// Runs `body` with the GIL held. If this thread does not hold it, the call waits for it: so it must not hold a lock
/// that the holder of the GIL may wait for.
pub fn with_gil<R>(body: impl FnOnce() -> R) -> Result<R, GilUnavailable> {
    let symbols = SymbolLookup::find().ok_or(GilUnavailable::Python(Unavailable::NoInterpreter))?;
    // SAFETY: the signatures are those of the headers of 3.9 to 3.15.
    let functions = unsafe { GilFunctions::look_up(symbols) }.map_err(GilUnavailable::Python)?;
    // SAFETY: the first two only read words. The GIL is taken while the interpreter exists, and released by the guard.
    unsafe {
        if (functions.is_initialized)() == 0 {
            return Err(GilUnavailable::NotInitialized);
        }
        let is_held = (functions.check)() != 0;
        // A thread that waits for the GIL while the interpreter shuts down is stopped forever.
        if !is_held && functions.is_finalizing.is_some_and(|is_finalizing| is_finalizing() != 0) {
            return Err(GilUnavailable::Finalizing);
        }
        let _guard = GilGuard { state: (functions.ensure)(), release: functions.release };
        if (functions.exception)().is_null() { Ok(body()) } else { Err(GilUnavailable::ExceptionSet) }
    }
}

struct GilFunctions {
    is_initialized: unsafe extern "C" fn() -> c_int,
    is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
    check: unsafe extern "C" fn() -> c_int,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    exception: unsafe extern "C" fn() -> *mut c_void,
}

impl GilFunctions {
    /// # Safety
    /// The symbols are those of a Python 3.
    unsafe fn look_up(symbols: SymbolLookup) -> Result<Self, Unavailable> {
        // SAFETY: passed on to the caller.
        unsafe {
            Ok(Self {
                is_initialized: first_of(symbols, &[c"Py_IsInitialized"])?,
                is_finalizing: first_of(symbols, &[c"Py_IsFinalizing", c"_Py_IsFinalizing"]).ok(),
                check: first_of(symbols, &[c"PyGILState_Check"])?,
                ensure: first_of(symbols, &[c"PyGILState_Ensure"])?,
                release: first_of(symbols, &[c"PyGILState_Release"])?,
                exception: first_of(symbols, &[c"PyErr_Occurred"])?,
            })
        }
    }
}

/// Releases the GIL, also when the body panics.
struct GilGuard {
    state: c_int,
    release: unsafe extern "C" fn(c_int),
}

impl Drop for GilGuard {
    fn drop(&mut self) {
        // SAFETY: the state is the result of `PyGILState_Ensure` on this thread.
        unsafe { (self.release)(self.state) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_has_no_gil() {
        let ran = with_gil(|| ());
        assert_eq!(ran, Err(GilUnavailable::Python(Unavailable::NoInterpreter)));
    }
}
