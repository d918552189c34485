//! `dump_threads()` and `watchdog()`: write the stacks of all threads, even if the GIL is stuck.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use stackweave_capture::{CaptureStart, DumpOptions, WatchdogOptions, dump_all_threads, prepare_dumps};

use crate::errors::Error;
use crate::keywords::type_name;

/// The running watchdogs. Locked only briefly.
static WATCHDOGS: Mutex<Vec<Arc<stackweave_capture::Watchdog>>> = Mutex::new(Vec::new());

fn watchdogs() -> MutexGuard<'static, Vec<Arc<stackweave_capture::Watchdog>>> {
    WATCHDOGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the stacks of all threads, Python and native, to a file or file descriptor; by default to sys.stderr.
///
/// Native frames are written as module+offset. Each thread receives a signal and captures its own stack; threads that don't answer
/// within a second are listed with the reason.
///
/// >>> with open("stacks.txt", "w") as file:
/// ...     stackweave.dump_threads(file)
#[pyfunction]
#[pyo3(signature = (file=None))]
pub(crate) fn dump_threads(py: Python<'_>, file: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let fd = descriptor_of(py, file)?;
    prepare_dumps().map_err(Error::from)?;
    let options = DumpOptions { calling_thread: Some(CaptureStart::PythonCaller), ..DumpOptions::default() };
    dump_all_threads(fd, &options).map_err(Error::from)?;
    Ok(())
}

/// Returns the descriptor of a file, which must be open.
fn descriptor_of(py: Python<'_>, file: Option<&Bound<'_, PyAny>>) -> PyResult<i32> {
    let stderr = || py.import(intern!(py, "sys"))?.getattr(intern!(py, "stderr"));
    let file = file.cloned().map_or_else(stderr, Ok)?;
    if let Ok(fd) = file.extract::<i32>() {
        return if fd < 0 { Err(PyValueError::new_err("file is not a valid file descriptor")) } else { Ok(fd) };
    }
    let Ok(fileno) = file.getattr(intern!(py, "fileno")) else {
        let message = format!("file must be a file or a file descriptor, not {}", type_name(&file));
        return Err(PyTypeError::new_err(message));
    };
    fileno.call0()?.extract()
}

/// Dumps all threads, as dump_threads() does, if reset() is not called for timeout seconds.
///
/// The watchdog is a native thread that needs neither the GIL nor Python, so it works while the GIL is stuck in C code. It dumps once,
/// and again after the next reset(). With repeat it dumps after each timeout. With exit it exits the process immediately after the
/// dump, with status 1. The file, by default sys.stderr, may be closed in the meantime. The watchdog runs until cancel(), the end of
/// the with block or the end of the interpreter; dropping the result does not stop it. A forked child has no watchdog.
///
/// >>> with stackweave.watchdog(60) as watchdog:
/// ...     main()
/// >>> watchdog.dumps
/// 0
#[pyfunction]
#[pyo3(signature = (timeout, *, file=None, repeat=false, exit=false))]
pub(crate) fn watchdog(
    py: Python<'_>,
    timeout: f64,
    file: Option<&Bound<'_, PyAny>>,
    repeat: bool,
    exit: bool,
) -> PyResult<PyWatchdog> {
    let timeout = match Duration::try_from_secs_f64(timeout) {
        Ok(timeout) if !timeout.is_zero() => timeout,
        Err(_) if timeout > 0.0 => Duration::MAX,
        _ => return Err(PyValueError::new_err(format!("timeout must be greater than 0, but is {timeout}"))),
    };
    let fd = descriptor_of(py, file)?;
    stop_at_exit(py)?;
    let options = WatchdogOptions { timeout, repeat, exit };
    let started = stackweave_capture::Watchdog::start(fd, options).map_err(Error::from)?;
    let started = Arc::new(started);
    watchdogs().push(Arc::clone(&started));
    Ok(PyWatchdog { started })
}

/// Registers an exit handler, once, that cancels all watchdogs at the end of the interpreter.
fn stop_at_exit(py: Python<'_>) -> PyResult<()> {
    static IS_REGISTERED: Mutex<bool> = Mutex::new(false);
    let is_registered = std::mem::replace(&mut *IS_REGISTERED.lock().unwrap_or_else(PoisonError::into_inner), true);
    if !is_registered {
        let stop = wrap_pyfunction!(cancel_all, py)?;
        py.import(intern!(py, "atexit"))?.call_method1(intern!(py, "register"), (stop,))?;
    }
    Ok(())
}

#[pyfunction]
fn cancel_all(py: Python<'_>) {
    let all = std::mem::take(&mut *watchdogs());
    py.detach(|| all.iter().for_each(|watchdog| watchdog.cancel()));
}

/// A native thread that dumps all threads unless reset() is called in time. Made by watchdog().
///
/// >>> with stackweave.watchdog(60) as watchdog:
/// ...     main()
/// >>> watchdog.dumps, watchdog.running
/// (0, False)
#[pyclass(frozen, module = "stackweave", name = "Watchdog")]
#[derive(Debug)]
pub(crate) struct PyWatchdog {
    started: Arc<stackweave_capture::Watchdog>,
}

#[pymethods]
impl PyWatchdog {
    /// Restarts the timeout.
    fn reset(&self) {
        self.started.reset();
    }

    /// Stops the watchdog. Repeated calls have no effect.
    fn cancel(&self, py: Python<'_>) {
        watchdogs().retain(|watchdog| !Arc::ptr_eq(watchdog, &self.started));
        py.detach(|| self.started.cancel());
    }

    /// The number of dumps.
    #[getter]
    fn dumps(&self) -> u64 {
        self.started.dumps()
    }

    /// Whether the watchdog is running: it was not cancelled, and this is not a forked child.
    #[getter]
    fn running(&self) -> bool {
        self.started.is_running()
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (_kind, _error, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.cancel(py);
    }
}
