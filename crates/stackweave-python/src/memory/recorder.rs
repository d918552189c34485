//! The Python class `AllocationHooks`.
//!
//! Queries of the writer release the GIL. A thread that waits for the writer inside an allocation keeps the GIL, which is safe
//! because the writer never takes it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use stackweave_core::RawFrame;
use stackweave_cpython::allocators::AllocatorHooks;
use stackweave_memory::{DumpSignal, MemoryRecorder, PythonBlocks};
use stackweave_profile::memory::ForeignHooks;
use stackweave_store::locate_label;
use stackweave_symbolize::WithoutThreads;

use super::options::{MemorySettings, settings_of};
use super::snapshot_dicts::{SnapshotDicts, foreign_hooks};
use super::suppress::suppress_recording;
use crate::errors::Error;
use crate::recording::{Feed, frame_of, name_threads};

/// Records the memory of all threads into a recording that has begun with the same options.
#[pyclass(frozen, module = "stackweave._native")]
pub(super) struct AllocationHooks {
    feed: Py<Feed>,
    settings: MemorySettings,
    memory: OnceLock<MemoryRecorder>,
    /// Never locked during a wait.
    hooks: Mutex<InstalledHooks>,
}

/// The hooks that are installed while memory is recorded, beside those of the allocator functions.
#[derive(Debug, Default)]
struct InstalledHooks {
    python: Option<AllocatorHooks>,
    signal: Option<DumpSignal>,
    /// Disables the symbolizer's threads, whose allocations would be recorded.
    without_threads: Option<WithoutThreads>,
}

impl fmt::Debug for AllocationHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocationHooks").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl AllocationHooks {
    fn memory(&self) -> PyResult<&MemoryRecorder> {
        self.memory.get().ok_or_else(|| Error::state("memory is not recorded yet: call start()").into())
    }

    fn hooks(&self) -> MutexGuard<'_, InstalledHooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installs the hooks. Python's allocators are recorded from the start of the recorder on.
    fn install_hooks(&self) -> PyResult<()> {
        let mut hooks = self.hooks();
        if self.settings.options.python_allocators {
            // SAFETY: Python has called.
            hooks.python = Some(unsafe { AllocatorHooks::install::<PythonBlocks>() }.map_err(Error::from)?);
        }
        hooks.without_threads = Some(WithoutThreads::begin());
        let signal = self.settings.dump_signal.map(DumpSignal::install).transpose();
        hooks.signal = signal.map_err(|error| Error::start(error.to_string()))?;
        Ok(())
    }

    fn remove_hooks(&self, _py: Python<'_>) {
        let InstalledHooks { python, signal, without_threads: _ } = std::mem::take(&mut *self.hooks());
        drop(signal);
        if let Some(mut hooks) = python {
            // SAFETY: attached, as the argument shows.
            unsafe { hooks.remove() };
        }
    }

    /// Queries the writer without the GIL, and converts the result to Python objects.
    fn query_writer<'py, A: Send, R>(
        &self,
        py: Python<'py>,
        query: impl Send + FnOnce(&MemoryRecorder) -> A,
        convert: impl FnOnce(&SnapshotDicts<'py>, A) -> PyResult<R>,
    ) -> PyResult<R> {
        let memory = self.memory()?;
        suppress_recording(py, || {
            let recorder = self.feed.get().recorder()?;
            name_threads(py, recorder);
            let (result, threads) = py.detach(|| (query(memory), recorder.threads()));
            convert(&SnapshotDicts::new(py, threads), result)
        })
    }
}

#[pymethods]
impl AllocationHooks {
    #[new]
    fn new(feed: Py<Feed>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self { feed, settings: settings_of(options)?, memory: OnceLock::new(), hooks: Mutex::default() })
    }

    /// Starts to record; can be called once. Returns a message if many allocations will be missing because another tool has
    /// installed hooks.
    fn start(&self, py: Python<'_>) -> PyResult<Option<String>> {
        if self.memory.get().is_some() {
            return Err(Error::state("a memory recorder can be started once").into());
        }
        if stackweave::has_sink() {
            let message = "another copy of Stackweave in this process records memory: stop that recording first";
            return Err(Error::start(message).into());
        }
        suppress_recording(py, || {
            let recorder = self.feed.get().recorder()?.clone();
            let options = self.settings.options.clone();
            let started = self.install_hooks().and_then(|()| {
                // Release the GIL, because this takes the loader's lock, whose owner may wait for the GIL.
                Ok(py.detach(|| MemoryRecorder::start(recorder, options)).map_err(Error::from)?)
            });
            match started {
                Ok(memory) => {
                    let foreign = foreign_hooks(&memory.stats()).filter(ForeignHooks::is_large_part);
                    let set = self.memory.set(memory);
                    set.map_err(|_| Error::state("a memory recorder can be started once"))?;
                    Ok(foreign.map(|found| found.sentence()))
                }
                Err(error) => {
                    self.remove_hooks(py);
                    Err(error)
                }
            }
        })
    }

    /// Stops recording allocations until resume().
    fn pause(&self) -> PyResult<()> {
        self.memory().map(MemoryRecorder::pause)
    }

    /// Records allocations again.
    fn resume(&self) -> PyResult<()> {
        self.memory().map(MemoryRecorder::resume)
    }

    /// Stops recording. Queries are still answered until the recording is stopped.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let memory = self.memory()?;
        suppress_recording(py, || {
            py.detach(|| memory.stop());
            self.remove_hooks(py);
            name_threads(py, self.feed.get().recorder()?);
            Ok(())
        })
    }

    /// Starts the recording of a forked child, without the allocations of the parent.
    fn forked(&self, py: Python<'_>) {
        if let Some(memory) = self.memory.get() {
            suppress_recording(py, || memory.begin_in_child());
        }
    }

    /// Returns the live memory and the memory at the peak.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.query_writer(py, MemoryRecorder::snapshot, SnapshotDicts::snapshot)
    }

    /// Returns the live block or mapping at an address.
    fn block<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.query_writer(
            py,
            |memory| memory.block(address),
            |dicts, block| block.map(|block| dicts.block(&block)).transpose(),
        )
    }

    /// Returns all live blocks.
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.query_writer(py, MemoryRecorder::live_blocks, |dicts, blocks| {
            let list = PyList::empty(py);
            for block in &blocks {
                list.append(dicts.block(block)?)?;
            }
            Ok(list)
        })
    }

    /// Writes a snapshot to the file.
    fn write_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.query_writer(py, MemoryRecorder::write_snapshot, |_, _| Ok(()))
    }

    /// Returns the statistics of the hooks and ledgers by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reinstallations = self.hooks().python.as_ref().map_or(0, AllocatorHooks::reinstallations);
        let query = |memory: &MemoryRecorder| (memory.stats(), memory.ledger_stats());
        self.query_writer(py, query, |dicts, (hooks, ledgers)| dicts.stats(&hooks, ledgers, reinstallations))
    }

    /// Sets the tag of the calling thread's later allocations. Returns the previous tag.
    fn set_tag<'py>(
        &self,
        py: Python<'py>,
        name: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let memory = self.memory()?;
        suppress_recording(py, || {
            // SAFETY: attached, and the name is an object.
            let tag = name.map(|name| unsafe { frame_of(name.as_ptr()) }).transpose()?;
            Ok(memory
                .set_tag(tag)
                .and_then(|before: RawFrame| locate_label(before))
                .map(|tag| PyString::new(py, &tag.name)))
        })
    }
}

impl Drop for AllocationHooks {
    fn drop(&mut self) {
        let _ = Python::try_attach(|py| {
            if let Some(memory) = self.memory.get() {
                py.detach(|| memory.stop());
            }
            self.remove_hooks(py);
        });
    }
}
