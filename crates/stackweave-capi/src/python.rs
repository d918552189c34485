//! Adds the Python interpreter of this process as a frame source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stackweave_capture::RegisteredSource;
use stackweave_cpython::{GilUnavailable, PythonSource, with_gil};

use crate::boundary::{CallError, call};
use crate::handle_table::HandleTable;
use crate::stats::stackweave_stats;
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_PYTHON, STACKWEAVE_TOO_MANY,
};

/// The registration of Python.
static REGISTERED: HandleTable<RegisteredSource, 1> = HandleTable::new();
/// The handle of the registration; 0 while Python is not enabled.
static HANDLE: AtomicU64 = AtomicU64::new(0);

/// Finds the Python interpreter of this process, in any library, and adds its frames to all later captures that request
/// STACKWEAVE_CAPTURE_PYTHON, on all threads. Repeated calls have no effect.
///
/// This is the only function that needs the GIL, once: it waits for it if the thread does not hold it. Call it when the host
/// starts, without a lock that a Python thread may wait for. It fails if a Python exception is set.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_enable_python() -> stackweave_status {
    call(|| {
        if HANDLE.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        with_gil(register).map_err(|reason| unavailable(&reason))?
    })
}

fn unavailable(reason: &GilUnavailable) -> CallError {
    let status = match reason {
        GilUnavailable::ExceptionSet => STACKWEAVE_BAD_ARGUMENT,
        _ => STACKWEAVE_NO_PYTHON,
    };
    CallError::new(status, reason.to_string())
}

/// Registers Python. The GIL is held, so another thread can run this only while Python code runs inside.
fn register() -> Result<(), CallError> {
    let source = PythonSource::install().map_err(|reason| CallError::new(STACKWEAVE_NO_PYTHON, reason.to_string()))?;
    if HANDLE.load(Ordering::Acquire) != 0 {
        return Ok(());
    }
    let too_many = || CallError::new(STACKWEAVE_TOO_MANY, "256 frame sources, or another Python, have been registered");
    let registered = stackweave_capture::register_source(Arc::new(*source)).ok_or_else(too_many)?;
    let busy = |_| CallError::new(STACKWEAVE_BUSY, "another thread is disabling Python");
    HANDLE.store(REGISTERED.insert(registered).map_err(busy)?, Ordering::Release);
    Ok(())
}

/// Omits Python frames from later captures. Frames of captured stacks keep their names. Waits for captures of other threads.
/// Has no effect if Python is not enabled. Does not need the GIL, and may be called after Python has been finalized.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_disable_python() -> stackweave_status {
    call(|| {
        drop(REGISTERED.remove(HANDLE.swap(0, Ordering::AcqRel)));
        Ok(())
    })
}

/// Adds the statistics of Python, if it is enabled.
pub(crate) fn add_to(stats: stackweave_stats) -> stackweave_stats {
    if HANDLE.load(Ordering::Acquire) == 0 {
        return stats;
    }
    // Python is installed already, so this only looks up the source.
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
