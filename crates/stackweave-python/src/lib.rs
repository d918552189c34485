//! `stackweave._native`: what the Python package is made of. It converts, holds the GIL rightly and maps errors; what it
//! converts is done in the other crates.

#![allow(clippy::doc_markdown, reason = "the comments on what Python sees are its docstrings")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod answering;
mod called_back;
mod capture_functions;
mod command;
mod dynamo;
mod errors;
mod frame;
mod import_finder;
mod keywords;
mod memory;
mod memory_sink;
mod outputs;
mod plain_frames;
mod python_extra_frames;
mod python_frame_source;
mod python_place;
mod python_source;
mod recording;
mod registration;
mod resolving;
mod same_process;
mod stats;
mod symbolizing;
mod thread_stacks;
mod timing;
mod trace;
mod traceback_answers;
mod traceback_object;
mod traceback_type;
mod type_object;
mod usage;
mod watching;

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_store::thread_words::thread_words;

/// The native part of stackweave.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    refuse_subinterpreters()?;
    refuse_after_finalization()?;
    refuse_without_thread_words()?;
    keywords::prepare(py);
    python_source::install(py);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add_to(module)?;
    module.add_class::<frame::PyFrame>()?;
    module.add_class::<registration::Registration>()?;
    module.add_class::<import_finder::ImportFinder>()?;
    module.add_class::<watching::Watchdog>()?;
    traceback_type::add_to(module)?;
    recording::add_to(module)?;
    trace::add_to(module)?;
    memory::add_to(module)?;
    dynamo::add_to(module)?;
    timing::add_to(module)?;
    usage::add_to(module)?;
    capture_functions::add_to(module)?;
    module.add_function(wrap_pyfunction!(frame::rebuild_frame, module)?)?;
    module.add_function(wrap_pyfunction!(traceback_answers::rebuild_traceback, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::symbolize, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::to_json, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::resolve_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::traceback_of, module)?)?;
    module.add_function(wrap_pyfunction!(plain_frames::plain_frames, module)?)?;
    module.add_function(wrap_pyfunction!(plain_frames::plain_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(thread_stacks::thread_stacks, module)?)?;
    module.add_function(wrap_pyfunction!(stats::stats, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::copy_to_output, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::write_output, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::free_name, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::others_of_same_run, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::remove_recordings_of_run, module)?)?;
    module.add_function(wrap_pyfunction!(watching::dump_threads, module)?)?;
    module.add_function(wrap_pyfunction!(watching::watchdog, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_file, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_call, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_code, module)?)?;
    module.add_function(wrap_pyfunction!(command::call_untraced, module)?)?;
    module.add_function(wrap_pyfunction!(python_frame_source::register_frame_source, module)?)?;
    module.add_function(wrap_pyfunction!(python_extra_frames::register_extra_frames, module)?)?;
    // PyO3 lists what it has added; the package lists what is public.
    module.delattr("__all__")?;
    answering::begin();
    Ok(())
}

/// What is static here belongs to one interpreter, the main one, whose number is 0.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: an interpreter is importing this module.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "stackweave can be imported in the main interpreter only, not in a subinterpreter",
        )),
    }
}

/// Types, strings and callbacks of the first interpreter are kept for ever. In one that is initialized after it was finalized they
/// are of no use, and on 3.12 to free one of them aborts the process.
fn refuse_after_finalization() -> PyResult<()> {
    static IS_IMPORTED: AtomicBool = AtomicBool::new(false);
    const MARK: &CStr = c"stackweave._native";
    // SAFETY: an interpreter is importing this module. The dict is the interpreter's own, borrowed, and lasts as long as it does;
    // references that are made here are given back.
    unsafe {
        let state = ffi::PyInterpreterState_GetDict(ffi::PyInterpreterState_Get());
        if state.is_null() {
            return Err(PyImportError::new_err("the interpreter has no memory for what stackweave keeps"));
        }
        let is_marked = !ffi::PyDict_GetItemString(state, MARK.as_ptr()).is_null();
        if IS_IMPORTED.swap(true, Ordering::Relaxed) && !is_marked {
            return Err(PyImportError::new_err(
                "stackweave can't be imported again after Py_Finalize: it belongs to the interpreter that was finalized",
            ));
        }
        match ffi::PyDict_SetItemString(state, MARK.as_ptr(), ffi::Py_True()) {
            0 => Ok(()),
            _ => Err(PyErr::fetch(Python::assume_attached())),
        }
    }
}

/// Captures in signal handlers, and hooks of allocators, need the words of threads where no first use allocates them.
fn refuse_without_thread_words() -> PyResult<()> {
    thread_words().map_err(errors::Error::from)?;
    Ok(())
}
