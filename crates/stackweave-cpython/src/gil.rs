//! Taking the GIL, for callers that can't know whether they have it.

use core::ffi::{c_int, c_void};

use crate::interpreter::first_of;
use crate::symbols::Symbols;
use crate::unavailable::Unavailable;

/// Why nothing was done with the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GilUnavailable {
    /// There is no interpreter, or it lacks a function.
    #[error("{0}")]
    Python(#[source] Unavailable),
    /// The interpreter is not initialised, or not any more.
    #[error("Python is not initialised")]
    NotInitialized,
    /// The interpreter is shutting down, and this thread does not have the GIL.
    #[error("Python is shutting down")]
    Finalizing,
    /// This thread has an exception that is on its way to somebody.
    #[error("a Python exception is set")]
    ExceptionSet,
}

/// Runs `body` with the GIL held. If this thread does not have it, it waits for it: so it must not have a lock that
/// whoever has the GIL may want.
pub fn with_gil<R>(body: impl FnOnce() -> R) -> Result<R, GilUnavailable> {
    let symbols = Symbols::find().ok_or(GilUnavailable::Python(Unavailable::NoInterpreter))?;
    // SAFETY: the signatures are those of the headers of 3.9 to 3.15.
    let functions = unsafe { Functions::look_up(symbols) }.map_err(GilUnavailable::Python)?;
    // SAFETY: the first two only read words. The GIL is taken when the interpreter is there, and given back by the guard.
    unsafe {
        if (functions.is_initialized)() == 0 {
            return Err(GilUnavailable::NotInitialized);
        }
        let is_held = (functions.check)() != 0;
        // A thread that waits for the GIL of an interpreter that shuts down is stopped for ever.
        if !is_held && functions.is_finalizing.is_some_and(|is_finalizing| is_finalizing() != 0) {
            return Err(GilUnavailable::Finalizing);
        }
        let _held = Held { state: (functions.ensure)(), release: functions.release };
        if (functions.exception)().is_null() { Ok(body()) } else { Err(GilUnavailable::ExceptionSet) }
    }
}

struct Functions {
    is_initialized: unsafe extern "C" fn() -> c_int,
    is_finalizing: Option<unsafe extern "C" fn() -> c_int>,
    check: unsafe extern "C" fn() -> c_int,
    ensure: unsafe extern "C" fn() -> c_int,
    release: unsafe extern "C" fn(c_int),
    exception: unsafe extern "C" fn() -> *mut c_void,
}

impl Functions {
    /// # Safety
    /// The symbols are those of a Python 3.
    unsafe fn look_up(symbols: Symbols) -> Result<Self, Unavailable> {
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

/// Gives the GIL back, also when the body panics.
struct Held {
    state: c_int,
    release: unsafe extern "C" fn(c_int),
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the state is what taking the GIL returned, on this thread.
        unsafe { (self.release)(self.state) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_says_so() {
        let ran = with_gil(|| ());
        assert_eq!(ran, Err(GilUnavailable::Python(Unavailable::NoInterpreter)));
    }
}
