//! What the engine asks Python.

use core::ptr;

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use stackweave_store::label;
use stackweave_trace::{DescribedCall, Describer, Description};

use crate::capture_functions::captured;
use crate::keywords::EVERYTHING;
use crate::memory::quietly_if_recorded;
use crate::recording::{details_of, name_of_this_thread};

/// Asks the function that the program has given, and the interpreter's own modules.
pub(super) struct Asker {
    describe: Option<Py<PyAny>>,
}

impl Asker {
    pub(super) fn new(describe: Option<Py<PyAny>>) -> Self {
        Self { describe }
    }

    fn description(&self, py: Python<'_>, call: DescribedCall) -> PyResult<Option<Description>> {
        let mut description = Description::default();
        let mut is_told = call.native;
        if let Some(describe) = &self.describe {
            // SAFETY: the frame that begins keeps its code object alive.
            let code = unsafe { Bound::from_borrowed_ptr(py, ptr::with_exposed_provenance_mut(call.code as usize)) };
            // SAFETY: the frame that begins has its arguments there.
            let locals = unsafe { arguments_of(py, &code, call.locals)? };
            let answer = describe.bind(py).call1((code, locals, call.matched))?;
            if let Ok(answer) = answer.cast::<PyTuple>() {
                is_told = true;
                let (name, details) = (answer.get_item(0)?, answer.get_item(1)?);
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
        Ok(is_told.then_some(description))
    }
}

/// `CO_VARARGS`, `CO_VARKEYWORDS`.
const MORE_POSITIONAL: u32 = 4;
const MORE_KEYWORDS: u32 = 8;
/// From 3.14 on a word may have these bits set, of an object that is not counted here.
const TAGS: usize = 3;

/// The arguments of a call, by name: those that have a value, and are not the program's cells.
///
/// # Safety
/// The words of a frame of this code, which begins, are at `words`, or that is 0.
unsafe fn arguments_of<'py>(py: Python<'py>, code: &Bound<'py, PyAny>, words: u64) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    if words == 0 {
        return Ok(arguments);
    }
    let number = |name: &str| -> PyResult<u32> { code.getattr(name)?.extract() };
    let flags = number("co_flags")?;
    let count = number("co_argcount")? + number("co_kwonlyargcount")?;
    let more = u32::from(flags & MORE_POSITIONAL != 0) + u32::from(flags & MORE_KEYWORDS != 0);
    let names = code.getattr("co_varnames")?;
    for (place, name) in names.cast::<PyTuple>()?.iter().enumerate().take((count + more) as usize) {
        // SAFETY: the caller's promise; a word is null or an object that the frame keeps alive.
        let value = unsafe {
            let word = ptr::with_exposed_provenance::<usize>(words as usize).add(place).read() & !TAGS;
            Bound::from_borrowed_ptr_or_opt(py, ptr::with_exposed_provenance_mut(word))
        };
        let Some(value) = value else { continue };
        // A variable that inner functions use, too, from 3.11 on.
        if value.get_type().name()? != "cell" {
            arguments.set_item(name, value)?;
        } else if let Ok(inside) = value.getattr("cell_contents") {
            arguments.set_item(name, inside)?;
        }
    }
    Ok(arguments)
}

/// Runs something that may raise, and leaves the exception that was set as it was.
fn undisturbed<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
    // SAFETY: the engine asks with the GIL held, in the middle of the program.
    unsafe {
        Python::attach_unchecked(|py| {
            let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut traceback);
            let answer = work(py).ok();
            ffi::PyErr_Restore(kind, value, traceback);
            answer
        })
    }
}

/// The same for what is ours alone: nothing of the program's runs in it, so that nothing it takes or gives back is lost to
/// who records memory.
fn unseen<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
    undisturbed(|py| quietly_if_recorded(py, || work(py)))
}

impl Describer for Asker {
    fn describe(&self, call: DescribedCall) -> Option<Description> {
        undisturbed(|py| self.description(py, call)).flatten()
    }

    fn task_name(&self) -> Option<String> {
        unseen(|py| {
            let modules = py.import("sys")?.getattr("modules")?;
            let Ok(asyncio) = modules.get_item("_asyncio") else { return Ok(None) };
            let running = asyncio.getattr("_get_running_loop")?.call0()?;
            if running.is_none() {
                return Ok(None);
            }
            // Python's own only if there is none in C, up to 3.11.
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
        unseen(name_of_this_thread).flatten()
    }

    fn unseen(&self, work: &mut dyn FnMut()) {
        // SAFETY: the engine asks with the GIL held.
        unsafe { Python::attach_unchecked(|py| quietly_if_recorded(py, work)) };
    }

    fn kernel_threads(&self) -> Vec<(u64, u32)> {
        let known = unseen(|py| {
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
