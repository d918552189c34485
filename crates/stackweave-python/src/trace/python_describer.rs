//! The trace engine's queries of Python.

use core::ptr;

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use stackweave_store::label;
use stackweave_trace::{DescribedCall, Describer, Description};

use crate::capture_functions::captured;
use crate::keywords::EVERYTHING;
use crate::memory::suppress_recording_if_active;
use crate::recording::{details_of, name_of_this_thread};

/// Describes calls with the program's function, and queries modules of the interpreter.
pub(super) struct PythonDescriber {
    describe: Option<Py<PyAny>>,
}

impl PythonDescriber {
    pub(super) fn new(describe: Option<Py<PyAny>>) -> Self {
        Self { describe }
    }

    fn description(&self, py: Python<'_>, call: DescribedCall) -> PyResult<Option<Description>> {
        let mut description = Description::default();
        let mut is_described = call.native;
        if let Some(describe) = &self.describe {
            // SAFETY: the new frame keeps its code object alive.
            let code = unsafe { Bound::from_borrowed_ptr(py, ptr::with_exposed_provenance_mut(call.code as usize)) };
            // SAFETY: the new frame has its arguments there.
            let locals = unsafe { arguments_of(py, &code, call.locals)? };
            let result = describe.bind(py).call1((code, locals, call.matched))?;
            if let Ok(result) = result.cast::<PyTuple>() {
                is_described = true;
                let (name, details) = (result.get_item(0)?, result.get_item(1)?);
                if let Ok(name) = name.cast::<PyString>() {
                    description.label = label(&name.to_string_lossy(), "", 0);
                }
                if let Ok(details) = details.cast::<PyDict>() {
                    let details: Vec<_> = details.iter().collect();
                    description.details = details_of(py, &details)?;
                }
            }
        }
        if call.native {
            description.stack = captured(&EVERYTHING)?.stack;
        }
        Ok(is_described.then_some(description))
    }
}

const CO_VARARGS: u32 = 4;
const CO_VARKEYWORDS: u32 = 8;
/// From 3.14 on, the interpreter sets these bits in the address of an object whose reference is not counted.
const TAG_BITS: usize = 3;

/// Returns the arguments of a call that have a value, by name.
///
/// # Safety
/// `words` is 0, or the address of the words of a new frame of this code.
unsafe fn arguments_of<'py>(py: Python<'py>, code: &Bound<'py, PyAny>, words: u64) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    if words == 0 {
        return Ok(arguments);
    }
    let number = |name: &str| -> PyResult<u32> { code.getattr(name)?.extract() };
    let flags = number("co_flags")?;
    let count = number("co_argcount")? + number("co_kwonlyargcount")?;
    let more = u32::from(flags & CO_VARARGS != 0) + u32::from(flags & CO_VARKEYWORDS != 0);
    let names = code.getattr("co_varnames")?;
    for (index, name) in names.cast::<PyTuple>()?.iter().enumerate().take((count + more) as usize) {
        // SAFETY: guaranteed by the caller; a word is null or an object that the frame keeps alive.
        let value = unsafe {
            let word = ptr::with_exposed_provenance::<usize>(words as usize).add(index).read() & !TAG_BITS;
            Bound::from_borrowed_ptr_or_opt(py, ptr::with_exposed_provenance_mut(word))
        };
        let Some(value) = value else { continue };
        // From 3.11 on, a variable that inner functions use is in a cell.
        if value.get_type().name()? != "cell" {
            arguments.set_item(name, value)?;
        } else if let Ok(content) = value.getattr("cell_contents") {
            arguments.set_item(name, content)?;
        }
    }
    Ok(arguments)
}

/// Runs `work`, which may raise, and restores the exception that was set before.
fn preserving_exception<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
    // SAFETY: the engine calls with the GIL held.
    unsafe {
        Python::attach_unchecked(|py| {
            let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback);
            let result = work(py).ok();
            ffi::PyErr_Restore(kind, value, traceback);
            result
        })
    }
}

/// Runs `work` as [`preserving_exception`] does, without recording its memory. It must not run code of the program, whose memory
/// would be missing in a memory recording.
fn suppressed<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
    preserving_exception(|py| suppress_recording_if_active(py, || work(py)))
}

impl Describer for PythonDescriber {
    fn describe(&self, call: DescribedCall) -> Option<Description> {
        preserving_exception(|py| self.description(py, call)).flatten()
    }

    fn task_name(&self) -> Option<String> {
        suppressed(|py| {
            let modules = py.import("sys")?.getattr("modules")?;
            let Ok(asyncio) = modules.get_item("_asyncio") else { return Ok(None) };
            let running = asyncio.getattr("_get_running_loop")?.call0()?;
            if running.is_none() {
                return Ok(None);
            }
            // Up to 3.11 the module in C has no such function.
            let current = match asyncio.getattr("current_task") {
                Err(error) if error.is_instance_of::<PyAttributeError>(py) => {
                    modules.get_item("asyncio.tasks")?.getattr("current_task")?
                }
                current => current?,
            };
            let task = current.call1((running,))?;
            if task.is_none() { Ok(None) } else { task.call_method0("get_name")?.extract().map(Some) }
        })
        .flatten()
    }

    fn thread_name(&self) -> Option<String> {
        suppressed(name_of_this_thread).flatten()
    }

    fn without_memory_recording(&self, work: &mut dyn FnMut()) {
        // SAFETY: the engine calls with the GIL held.
        unsafe { Python::attach_unchecked(|py| suppress_recording_if_active(py, work)) };
    }

    fn kernel_threads(&self) -> Vec<(u64, u32)> {
        let known = suppressed(|py| {
            let Ok(threading) = py.import("sys")?.getattr("modules")?.get_item("threading") else {
                return Ok(Vec::new());
            };
            let mut known = Vec::new();
            for (ident, thread) in threading.getattr("_active")?.cast::<PyDict>()?.iter() {
                if let (Ok(ident), Ok(tid)) =
                    (ident.extract(), thread.getattr("_native_id").and_then(|id| id.extract()))
                {
                    known.push((ident, tid));
                }
            }
            Ok(known)
        });
        known.unwrap_or_default()
    }
}
