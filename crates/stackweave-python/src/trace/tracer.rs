//! The Python class `Tracer`.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stackweave_trace::{Trace, TraceOptions};

use super::options::options_of;
use super::statistics::dict_of;
use crate::errors::Error;
use crate::memory::suppress_recording_if_active;
use crate::python_source::source;
use crate::recording::Feed;

/// The interval of checks whether other threads are still in the middle of an event.
const CHECK_INTERVAL: Duration = Duration::from_micros(200);

/// Traces the calls of all threads into a recording that has started.
#[pyclass(frozen, module = "stackweave._native")]
pub(super) struct Tracer {
    feed: Py<Feed>,
    /// The options, until the trace is started.
    options: Mutex<Option<TraceOptions>>,
    trace: Mutex<Option<Trace>>,
    /// The process whose thread holds the lock of the trace, or held it last.
    locked_by: AtomicU32,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").finish_non_exhaustive()
    }
}

/// Waits until no other thread is in the middle of an event. Such a thread may wait for a writer without the GIL.
fn wait_for_others(py: Python<'_>) {
    // SAFETY: the GIL is held.
    while unsafe { Trace::is_busy() } {
        py.detach(|| thread::sleep(CHECK_INTERVAL));
    }
}

impl Tracer {
    /// Locks the trace. It never waits for the lock with the GIL held, because the thread that holds the lock may run finalizers of
    /// the garbage collector, which may release the GIL. If the lock was held at a fork, the child returns `None`, because the
    /// thread that held it does not exist in the child.
    fn with_trace<R>(&self, py: Python<'_>, work: impl FnOnce(&mut Trace) -> R) -> Option<R> {
        let this_process = std::process::id();
        loop {
            match self.trace.try_lock() {
                Ok(mut trace) => {
                    self.locked_by.store(this_process, Ordering::Relaxed);
                    return trace.as_mut().map(work);
                }
                Err(TryLockError::Poisoned(trace)) => return trace.into_inner().as_mut().map(work),
                Err(TryLockError::WouldBlock) if self.locked_by.load(Ordering::Relaxed) != this_process => {
                    return None;
                }
                Err(TryLockError::WouldBlock) => py.detach(|| thread::sleep(CHECK_INTERVAL)),
            }
        }
    }
}

#[pymethods]
impl Tracer {
    #[new]
    fn new(feed: Py<Feed>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self {
            feed,
            options: Mutex::new(Some(options_of(options)?)),
            trace: Mutex::new(None),
            locked_by: AtomicU32::new(std::process::id()),
        })
    }

    /// Starts to trace; can be called once.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let source = source().ok_or_else(|| Error::start("calls can't be traced in this interpreter"))?;
        let recorder = self.feed.get().recorder()?.clone();
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner).take();
        let options = options.ok_or_else(|| Error::state("a trace can be started once"))?;
        wait_for_others(py);
        // SAFETY: the GIL is held, and no exception is set: Python has called.
        let started = suppress_recording_if_active(py, || unsafe { Trace::start(recorder, source, options) });
        let trace = started.map_err(Error::from)?;
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
        self.feed.get().set_traced(true);
        Ok(())
    }

    /// Stops tracing until resume(). Ends the open calls.
    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        wait_for_others(py);
        // SAFETY: the GIL is held, and no thread is in the middle of an event.
        let paused = suppress_recording_if_active(py, || self.with_trace(py, |trace| unsafe { trace.pause() }));
        Ok(paused.unwrap_or(Ok(())).map_err(Error::from)?)
    }

    /// Traces again.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        wait_for_others(py);
        // SAFETY: as above; no exception is set: Python has called.
        let resumed = suppress_recording_if_active(py, || self.with_trace(py, |trace| unsafe { trace.resume() }));
        Ok(resumed.unwrap_or(Ok(())).map_err(Error::from)?)
    }

    /// Stops the trace, and returns its statistics.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        wait_for_others(py);
        suppress_recording_if_active(py, || {
            // SAFETY: as above.
            let stopped = self.with_trace(py, |trace| unsafe { trace.stop() });
            let stats = stopped.ok_or_else(|| Error::state("the trace has not started"))?.map_err(Error::from)?;
            self.feed.get().set_traced(false);
            dict_of(py, &stats)
        })
    }

    /// Starts the recording of a forked child with the open calls.
    fn forked(&self, py: Python<'_>) {
        // SAFETY: the GIL is held.
        self.with_trace(py, |trace| unsafe { trace.forked() });
    }

    /// Records garbage collections. It is added to gc.callbacks.
    #[pyo3(signature = (phase, info, /))]
    #[expect(clippy::unused_self, reason = "a method for Python")]
    fn gc_callback(&self, phase: &str, info: &Bound<'_, PyDict>) -> PyResult<()> {
        let number = |name: &str| -> PyResult<u64> {
            Ok(info.get_item(name)?.and_then(|value| value.extract().ok()).unwrap_or(0))
        };
        // SAFETY: the GIL is held.
        unsafe {
            match phase {
                "start" => stackweave_trace::start_collection(number("generation")?),
                "stop" => stackweave_trace::end_collection(number("collected")?, number("uncollectable")?),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let trace = self.trace.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = trace.take() {
            drop_trace(trace);
        }
    }
}

/// Stops a trace that was dropped without a call of stop().
fn drop_trace(mut trace: Trace) {
    let _ = Python::try_attach(|py| {
        wait_for_others(py);
        // SAFETY: the GIL is held, and no thread is in the middle of an event.
        drop(unsafe { trace.stop() });
    });
}
