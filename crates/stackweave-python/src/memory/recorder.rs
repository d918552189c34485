//! `MemoryRecorder` as Python sees it.
//!
//! Who asks the writer does so without the GIL: a thread that waits for the writer inside an allocation keeps the GIL, and the
//! writer itself never wants it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use stackweave_core::RawFrame;
use stackweave_cpython::allocators::AllocatorHooks;
use stackweave_memory::{DumpSignal, Memory, PythonBlocks};
use stackweave_profile::memory::ForeignHooks;
use stackweave_store::locate_label;
use stackweave_symbolize::WithoutThreads;

use super::answers::{Answers, foreign_hooks};
use super::options::{MemorySetting, setting_of};
use super::quietly::quietly;
use crate::errors::Error;
use crate::recording::{Feed, frame_of, name_threads};

/// Records the memory of all threads into a recording that has begun with the same options.
#[pyclass(frozen, module = "stackweave._native")]
pub(super) struct MemoryRecorder {
    feed: Py<Feed>,
    setting: MemorySetting,
    memory: OnceLock<Memory>,
    /// Never held while anything waits.
    hooks: Mutex<Hooks>,
}

/// What else tells the recorder something, while it is on.
#[derive(Debug, Default)]
struct Hooks {
    python: Option<AllocatorHooks>,
    signal: Option<DumpSignal>,
    /// Threads that look up names would be seen.
    alone: Option<WithoutThreads>,
}

impl fmt::Debug for MemoryRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRecorder").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl MemoryRecorder {
    fn memory(&self) -> PyResult<&Memory> {
        self.memory.get().ok_or_else(|| Error::state("memory is not recorded yet: call start()").into())
    }

    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes to the recorder by itself. What Python's allocators are asked for is told from the start of the recorder on.
    fn install_hooks(&self) -> PyResult<()> {
        let mut hooks = self.hooks();
        if self.setting.options.python_allocators {
            // SAFETY: Python has called.
            hooks.python = Some(unsafe { AllocatorHooks::install::<PythonBlocks>() }.map_err(Error::from)?);
        }
        hooks.alone = Some(WithoutThreads::begin());
        let signal = self.setting.dump_signal.map(DumpSignal::install).transpose();
        hooks.signal = signal.map_err(|error| Error::start(error.to_string()))?;
        Ok(())
    }

    fn remove_hooks(&self, _py: Python<'_>) {
        let Hooks { python, signal, alone: _ } = std::mem::take(&mut *self.hooks());
        drop(signal);
        if let Some(mut hooks) = python {
            // SAFETY: attached, as the argument shows.
            unsafe { hooks.remove() };
        }
    }

    /// Asks, without the GIL, and makes objects of the answer.
    fn answer<'py, A: Send, R>(
        &self,
        py: Python<'py>,
        ask: impl Send + FnOnce(&Memory) -> A,
        make: impl FnOnce(&Answers<'py>, A) -> PyResult<R>,
    ) -> PyResult<R> {
        let memory = self.memory()?;
        quietly(py, || {
            let recorder = self.feed.get().recorder()?;
            name_threads(py, recorder);
            let (answer, threads) = py.detach(|| (ask(memory), recorder.threads()));
            make(&Answers::new(py, threads), answer)
        })
    }
}

#[pymethods]
impl MemoryRecorder {
    #[new]
    fn new(feed: Py<Feed>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self { feed, setting: setting_of(options)?, memory: OnceLock::new(), hooks: Mutex::default() })
    }

    /// Begins to record. Once. Returns a sentence if many allocations will be missing, because another tool has the hooks.
    fn start(&self, py: Python<'_>) -> PyResult<Option<String>> {
        if self.memory.get().is_some() {
            return Err(Error::state("a memory recorder can be started once").into());
        }
        if stackweave::has_sink() {
            let said = "another copy of Stackweave in this process records memory: stop that recording first";
            return Err(Error::start(said).into());
        }
        quietly(py, || {
            let recorder = self.feed.get().recorder()?.clone();
            let options = self.setting.options.clone();
            let begun = self.install_hooks().and_then(|()| {
                // Without the GIL: the loader's lock is wanted, and whoever has that may want the GIL.
                Ok(py.detach(|| Memory::start(recorder, options)).map_err(Error::from)?)
            });
            match begun {
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

    /// Leaves out what is allocated until resume().
    fn pause(&self) -> PyResult<()> {
        self.memory().map(Memory::pause)
    }

    /// Goes on.
    fn resume(&self) -> PyResult<()> {
        self.memory().map(Memory::resume)
    }

    /// Ends it; what is known can still be asked for, as long as the recording is there.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let memory = self.memory()?;
        quietly(py, || {
            py.detach(|| memory.stop());
            self.remove_hooks(py);
            name_threads(py, self.feed.get().recorder()?);
            Ok(())
        })
    }

    /// In a forked child: its recording begins, with nothing that the parent has taken.
    fn forked(&self, py: Python<'_>) {
        if let Some(memory) = self.memory.get() {
            quietly(py, || memory.begin_in_child());
        }
    }

    /// What is live, and what was at the peak.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.answer(py, Memory::snapshot, Answers::snapshot)
    }

    /// What was taken at an address, or is mapped there, and not given back.
    fn block<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.answer(
            py,
            |memory| memory.block(address),
            |answers, block| block.map(|block| answers.block(&block)).transpose(),
        )
    }

    /// All that is not given back.
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.answer(py, Memory::live_blocks, |answers, blocks| {
            let list = PyList::empty(py);
            for block in &blocks {
                list.append(answers.block(block)?)?;
            }
            Ok(list)
        })
    }

    /// Writes what is known now into the file.
    fn write_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.answer(py, Memory::write_snapshot, |_, _| Ok(()))
    }

    /// How it is doing: numbers by their names.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let put_back = self.hooks().python.as_ref().map_or(0, AllocatorHooks::put_back);
        let ask = |memory: &Memory| (memory.stats(), memory.ledger_stats());
        self.answer(py, ask, |answers, (hooks, ledgers)| answers.stats(&hooks, ledgers, put_back))
    }

    /// What the calling thread takes from now on has this tag. Gives the one that it had.
    fn set_tag<'py>(
        &self,
        py: Python<'py>,
        name: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let memory = self.memory()?;
        quietly(py, || {
            // SAFETY: attached, and the name is an object.
            let tag = name.map(|name| unsafe { frame_of(name.as_ptr()) }).transpose()?;
            Ok(memory
                .set_tag(tag)
                .and_then(|before: RawFrame| locate_label(before))
                .map(|tag| PyString::new(py, &tag.name)))
        })
    }
}

impl Drop for MemoryRecorder {
    fn drop(&mut self) {
        let _ = Python::try_attach(|py| {
            if let Some(memory) = self.memory.get() {
                py.detach(|| memory.stop());
            }
            self.remove_hooks(py);
        });
    }
}
