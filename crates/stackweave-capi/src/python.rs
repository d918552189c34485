//! The Python of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_capture::RegisteredSource;
use stackweave_cpython::{GilUnavailable, PythonSource, with_gil};

use crate::border::{Fault, call};
use crate::handles::Handles;
use crate::stats::stackweave_stats;
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_PYTHON, STACKWEAVE_TOO_MANY,
};

/// What Python is registered by.
static REGISTERED: Handles<RegisteredSource, 1> = Handles::new();
/// Its handle; 0: Python is not enabled.
static HANDLE: AtomicU64 = AtomicU64::new(0);

/// Finds the Python in this process, in whichever library it is, and adds its frames to every capture that asks for
/// STACKWEAVE_PYTHON from now on, on all threads. Doing so again changes nothing.
///
/// The only call that needs the GIL, once: if the thread does not have it, it waits for it. So it is to be called when the
/// host starts, without a lock that a Python thread may wait for. With a Python exception set it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_enable_python() -> stackweave_status {
    call(|| {
        if HANDLE.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        with_gil(register).map_err(|reason| unavailable(&reason))?
    })
}

fn unavailable(reason: &GilUnavailable) -> Fault {
    let status = match reason {
        GilUnavailable::ExceptionSet => STACKWEAVE_BAD_ARGUMENT,
        _ => STACKWEAVE_NO_PYTHON,
    };
    Fault::new(status, reason.to_string())
}

/// With the GIL held, so that no two threads are here, but for what Python runs on the way.
fn register() -> Result<(), Fault> {
    let source = PythonSource::install().map_err(|reason| Fault::new(STACKWEAVE_NO_PYTHON, reason.to_string()))?;
    if HANDLE.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let too_many = || Fault::new(STACKWEAVE_TOO_MANY, "256 sources have been registered, or a Python other than this");
    let registered = stackweave_capture::register_source(Arc::new(*source)).ok_or_else(too_many)?;
    let busy = |_| Fault::new(STACKWEAVE_BUSY, "another thread disables Python");
    HANDLE.store(REGISTERED.insert(registered).map_err(busy)?, Ordering::Release);
    Ok(())
}

/// Leaves Python's frames out of captures from now on. Those of stacks that were captured keep their names. Waits for
/// captures of other threads. Nothing if Python is not enabled; needs no GIL, and may be called after Python's end.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_disable_python() -> stackweave_status {
    call(|| {
        drop(REGISTERED.take(HANDLE.swap(0, Ordering::AcqRel)));
        Ok(())
    })
}

pub(crate) fn add_to(stats: stackweave_stats) -> stackweave_stats {
    if HANDLE.load(Ordering::Acquire) == 0 {
        return stats;
    }
    // It is installed: that is looked up.
    let Ok(source) = PythonSource::install() else { return stats };
    let python = source.stats();
    stackweave_stats {
        python_codes: python.codes.into(),
        python_code_bytes: python.code_bytes as u64,
        python_is_enabled: true,
        python_is_direct: python.fallback_reason.is_none(),
        ..stats
    }
}
